--- The mutants of the object library: spec/contract/mutants/PART.lua each return a list of
--- { item, file, from, to }: in `file`, where `from` stands exactly once, `to` in its place breaks
--- the behaviour that the item names.

local support = require "support"

local mutation = {}

---@class Mutant
---@field item integer
---@field file string below the project's root
---@field from string
---@field to string
---@field name string where it is written down

--- All mutants, or those of one part.
---@param part? string
---@return table<integer, Mutant[]> # by item
function mutation.load(part)
  local of = {}
  local pipe = assert(io.popen("ls spec/contract/mutants/*.lua"))
  for path in pipe:lines() do
    local name = path:match("([^/]+)%.lua$")
    for index, mutant in ipairs((not part or part == name) and dofile(path) or {}) do
      mutant.name = ("%s[%d]"):format(name, index)
      of[mutant.item] = of[mutant.item] or {}
      table.insert(of[mutant.item], mutant)
    end
  end
  pipe:close()
  return of
end

--- The mutated text of its file, or nil and why the mutant would prove nothing.
---@param mutant Mutant
---@return string?, string?
function mutation.apply(mutant)
  local text = support.read(mutant.file)
  local from, to = text:find(mutant.from, 1, true)
  if not from then return nil, "its text is not in " .. mutant.file end
  if text:find(mutant.from, to + 1, true) then return nil, "its text is there twice" end
  if mutant.from == mutant.to then return nil, "it changes nothing" end
  local mutated = text:sub(1, from - 1) .. mutant.to .. text:sub(to + 1)
  local chunk, why = loadstring(mutated, "=" .. mutant.file)
  if not chunk then return nil, "it does not load: " .. why end
  return mutated
end

return mutation
