--- adaptdl 0.2.11's saving and loading, written down once more, without files: what was recorded of
--- it is compared with this, also where the library does something better (docs/contract.md).

local model = {}

local PREFIX = "^checkpoint%-([^/]*)"

--- A tree of the recordings' `entries`: what stands in a file by its path, true by a directory's.
---@param entries { type: "file"|"dir", path: string, data?: string }[]
---@return table<string, string|true>
function model.tree(entries)
  local tree = {}
  for _, entry in ipairs(entries) do
    for above in entry.path:gmatch "()/" do tree[entry.path:sub(1, above)] = true end
    tree[entry.path .. (entry.type == "dir" and "/" or "")] = entry.data or true
  end
  return tree
end

-- int() of Python for the names that there are: blanks, a sign, underscores between digits, one
-- digit of another script; as digits, as there are more than a number holds, "0" for one below 0.
-- nil: it raises.
local function integer(text)
  local digits = text:gsub("٣", "3"):match "^%s*([+-]?[%d_]+)%s*$"
  if not digits or digits:find "^[+-]?_" or digits:find "_$" or digits:find "__" then return nil end
  if digits:find "^%-" then return "0" end
  return (digits:gsub("[_+]", ""):gsub("^0+(%d)", "%1"))
end

local function greater(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

--- What a load of a state answers: as recorded, but that `raises` is a list of the texts of which
--- it has one, since the order of a directory decides.
---@param case table
---@param state string
---@param is_set boolean whether there is a checkpoint path
---@param is_there boolean whether it is on the disk
---@return table
function model.load(case, state, is_set, is_there)
  local answer = { returned = false, calls = {}, log = {}, raises = {} }
  if not is_set then return answer end
  if not is_there then
    answer.returned = nil
    answer.raises[1] = "FileNotFoundError: [Errno 2] No such file or directory: '$ROOT'"
    return answer
  end
  local tree = model.tree(case.entries)
  if not next(tree) then
    answer.log = { "INFO: No checkpoint found in $ROOT." }
    return answer
  end
  local number = "0"
  for path in pairs(tree) do
    local suffix = path:match(PREFIX)
    local found = suffix and integer(suffix)
    if found and greater(found, number) then number = found end
    if suffix and not found then
      table.insert(answer.raises, ("ValueError: invalid literal for int() with base 10: '%s'")
        :format(suffix))
    end
  end
  if #answer.raises > 0 then
    answer.returned = nil
    return answer
  end
  if number ~= ("%d"):format(case.num_restarts - 1) then
    table.insert(answer.log, ("WARNING: Cannot find checkpoint from the last restart. Loading "
      .. "checkpoint from restart %s."):format(number))
  end
  local path = ("checkpoint-%s/%s"):format(number, state)
  if type(tree[path]) == "string" then
    answer.returned, answer.value, answer.calls = true, tree[path], { "load" }
  else
    table.insert(answer.log, ("WARNING: Cannot find state file $ROOT/%s."):format(path))
  end
  return answer
end

local STAGE = "_checkpoint/"

local function moved(tree, from, to)
  local out = {}
  for path, data in pairs(tree) do
    if path:sub(1, #from) == from then path = to .. path:sub(#from + 1) end
    out[path] = data
  end
  return out
end

local function below(tree, dir)
  for path in pairs(tree) do
    if path:sub(1, #dir) == dir and path ~= dir then return true end
  end
  return false
end

-- Writes a state into the staging directory. Returns an error, as recorded.
local function write(tree, name, data)
  local path = STAGE .. name
  if name == "" then
    return { "IsADirectoryError", 21, "[Errno 21] Is a directory: '$ROOT/" .. path .. "'" }
  end
  local plain = path:gsub("^[^/]+/%.%./", "")
  local parent = plain:match "^(.*/)"
  if parent and not tree[parent] then
    return { "FileNotFoundError", 2, "[Errno 2] No such file or directory: '$ROOT/" .. path .. "'" }
  end
  tree[plain] = data
end

-- Renames the staging directory and removes the others. Returns the tree, and an error.
local function commit(tree, target)
  local both = ("'$ROOT/%s' -> '$ROOT/%s'"):format(STAGE:sub(1, -2), target)
  if tree[target] then
    return tree, { "NotADirectoryError", 20, "[Errno 20] Not a directory: " .. both }
  end
  if below(tree, target .. "/") then
    return tree, { "OSError", 39, "[Errno 39] Directory not empty: " .. both }
  end
  local out, failure = {}, nil
  for path, data in pairs(moved(tree, STAGE, target .. "/")) do
    local top = path:match "^[^/]*"
    local is_old = top:sub(1, 11) == "checkpoint-" and top ~= target
    if not is_old or path == top then out[path] = data end
    if is_old and path == top then
      failure = { "NotADirectoryError", 20, "[Errno 20] Not a directory: '$ROOT/" .. path .. "'" }
    end
  end
  return out, failure
end

--- What the saves of a case lead to: a list of { returned, exception }, what was called of each
--- state, and the tree.
---@param case table
---@param is_set boolean whether there is a checkpoint path
---@param raises? integer the state whose save raises when it has written "part"
---@return table[] outcomes
---@return string[][] calls
---@return table<string, string|true> tree
function model.save(case, is_set, raises)
  local tree, calls, outcomes = model.tree(case.entries), {}, {}
  local writes = case.rank == 0 and is_set
  for i in ipairs(case.states) do calls[i] = {} end
  for round = 1, case["repeat"] do
    local failure
    if writes then tree[STAGE] = true end
    for i, state in ipairs(case.states) do
      table.insert(calls[i], "sync")
      if writes then
        failure = write(tree, state[1], i == raises and "part" or state[2])
        if i == raises then failure = { "RuntimeError", nil, "save failed" } end
        if failure then break end
        table.insert(calls[i], "save")
      end
    end
    if writes and not failure then
      tree, failure = commit(tree, ("checkpoint-%d"):format(case.num_restarts))
    end
    outcomes[round] = { returned = writes and not failure and "$ROOT" or nil, exception = failure }
  end
  return outcomes, calls, tree
end

return model
