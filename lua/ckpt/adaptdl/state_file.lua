--- The file of one state: hands it to the state's own functions, and sees to it that no failed
--- write is lost without a word.

jit.off(true, true)
local ffi = require "ffi"
local fs = require "ckpt.prims.fs"
local log = require "ckpt.base.log"
local restarts = require "ckpt.adaptdl.restarts"

ffi.cdef "int ferror(void *stream);"

local state_file = {}

-- The names of the errors that opening and closing a file are likely to meet, by errno.
local NAMES = { [2] = "ENOENT", [13] = "EACCESS", [28] = "ENOSPACE", [122] = "ENOSPACE" }

local function failure(text, errno) return nil, text, NAMES[errno] or "EIO" end

--- Tells whether the result of a state's function is a failure, as Lua's files report one: nil (or
--- false) and a text.
---@param first any
---@param text any
---@param name any
---@return boolean failed
---@return string? text
---@return string? name
function state_file.outcome(first, text, name)
  if first or type(text) ~= "string" then return false end
  return true, text, type(name) == "string" and name or NAMES[name] or "EIO"
end

-- Flushes and closes. A write that failed before counts, even if nobody looked at its result: the
-- stream remembers it.
local function finish(file, path)
  if io.type(file) == "closed file" then return true end
  local fine, text, errno = file:flush()
  local is_torn = ffi.C.ferror(file) ~= 0
  file:close()
  if not fine then return failure(("%s: %s"):format(path, text), errno) end
  if is_torn then return failure(path .. ": a write failed; is there space left?", nil) end
  return true
end

--- Writes a state into a new file. Raises what its `save` raises.
---@param state ckpt.State
---@param path string
---@return true?
---@return string? text
---@return string? name
function state_file.save(state, path)
  local file, text, errno = io.open(path, "wb")
  if not file then return failure(text, errno) end
  local results = { pcall(state.save, state, file) }
  local done, why, name = finish(file, path)
  if not results[1] then error(results[2], 0) end
  local failed, said, kind = state_file.outcome(results[2], results[3], results[4])
  -- The message of a Lua file about a failed write names neither the file nor the action.
  if failed and type(results[4]) == "number" then
    said = ("cannot write %s: %s"):format(path, said)
  end
  if failed then return nil, said, kind end
  return done, why, name
end

-- Hands a file to the state's `load`: true, or the failure.
local function read(state, path)
  local file, text, errno = io.open(path, "rb")
  if not file then
    local _, said, kind = failure(text, errno)
    return { text = said, name = kind }
  end
  local results = { pcall(state.load, state, file) }
  if io.type(file) == "file" then file:close() end
  if not results[1] then return { raised = results[2], text = tostring(results[2]) } end
  local failed, said, kind = state_file.outcome(results[2], results[3], results[4])
  return failed and { text = said, name = kind } or true
end

--- Loads a state from the first of some restarts that has a regular file of it and can be loaded.
--- False: none has one.
---@param state ckpt.State
---@param root string the checkpoint path
---@param name string the state's
---@param numbers string[] of restarts, the best first
---@return boolean? loaded
---@return string? text
---@return string? name
function state_file.load(state, root, name, numbers)
  local first
  for place, number in ipairs(numbers) do
    local path = fs.join(root, restarts.name(number), name)
    if place > 1 then log.warn(("falling back to the checkpoint of restart %s"):format(number)) end
    local found, text, kind = fs.stat(path)
    local outcome = { text = text, name = kind }
    if (found and found.type ~= "file") or (not found and kind == "ENOENT") then
      log.warn(("there is no state file %s"):format(path))
      outcome = nil
    elseif found then
      outcome = read(state, path)
    end
    if outcome == true then return true end
    if outcome and place < #numbers then
      log.warn(("%s cannot be loaded: %s"):format(path, outcome.text))
    end
    first = first or outcome
  end
  if not first then return false end
  if first.raised ~= nil then error(first.raised, 0) end
  return nil, first.text, first.name
end

return state_file
