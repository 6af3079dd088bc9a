--- Facts that a Lua table cannot hold about the JSON that it stands for: whether an empty one is a
--- list, the order of its keys, and how a number was written. They are kept beside the tables, not
--- in them.

jit.off(true, true)
local cjson = require "ckpt.base.need_cjson"

local weak = { __mode = "k" }
local lists, orders = setmetatable({}, weak), setmetatable({}, weak)
local literals = setmetatable({}, weak)

local marks = {}

--- It is the same value as cjson's, so that tables that other code decoded can be written.
marks.null = cjson.null

function marks.list(value)
  lists[value] = true
  return value
end

function marks.is_list(value) return lists[value] == true end

function marks.object(value, keys)
  orders[value] = keys
  return value
end

function marks.is_object(value) return orders[value] ~= nil end

--- Returns the keys that have a place, in order.
function marks.order_of(value) return orders[value] or {} end

--- Makes a number that is kept as it was written.
function marks.written(text)
  local value = setmetatable({}, { __tostring = function() return text end })
  literals[value] = text
  return value
end

function marks.literal(value) return literals[value] end

return marks
