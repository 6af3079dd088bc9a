--- JSON by lua-cjson: what others report, and records of ours. What must be Python's to the byte,
--- or keep its order, its empty lists or all digits of its numbers, is ckpt.base.json's.

jit.off(true, true)
local cjson = require "ckpt.base.need_cjson"
local core = require "ckpt.core"

local plain_json = {}

--- What stands for `null`.
plain_json.null = cjson.null

--- Entries of a record of ours, which holds one for each file.
plain_json.ENTRIES_MAX = 400000

local own, made_in

-- The settings of `cjson` itself are the host's. A codec looks at the decimal point of the locale
-- when it is made, and a program may set another one. It is not made anew each time: what is made
-- in a finalizer of a state that is being closed is freed when cjson is not loaded any more.
local function codec()
  local locale = os.setlocale(nil, "numeric")
  if not own or locale ~= made_in then
    own, made_in = cjson.new(), locale
    own.encode_sparse_array(true, 1, 0) -- a list with holes is an object
    own.encode_keep_buffer(false) -- that would be freed before the last finalizers run
  end
  return own
end
codec()

--- Returns the JSON text of a value; a table without anything is `{}`. lua-cjson writes 14 digits
--- of a number, and texts as they are: it is for UTF-8 and whole numbers below 10^14.
---@param value any
---@return string
function plain_json.encode(value)
  -- It escapes each slash, which need not be.
  return (codec().encode(value):gsub("\\/", "/"))
end

--- Returns the value of a JSON text. NaN and Infinity are numbers, as Python writes them. A text
--- that would take more than 64 MiB as a tree is refused before it is one, because most texts that
--- are read here others wrote; so is one of more than 1000 levels.
---@param text string
---@param entries? integer it is a record of up to so many entries, whatever they take
---@return any value nil if it is no JSON
---@return string? problem
function plain_json.decode(text, entries)
  local fine, problem = core.weigh(text, entries)
  if not fine then return nil, problem end
  local is_json, value = pcall(codec().decode, text)
  if is_json then return value end
  return nil, value
end

--- Tells whether a text is that of an object: as a table an empty one is the same as an empty list.
---@param text string
---@return boolean
function plain_json.is_object(text) return text:find("^[ \t\r\n]*{") ~= nil end

return plain_json
