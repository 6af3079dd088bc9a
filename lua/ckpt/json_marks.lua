--- What a Lua table cannot say about the JSON that it stands for: whether an empty one is a list,
--- the order of its keys, and how a number was written. Kept beside the tables, not in them.

local weak = { __mode = "k" }
local lists, orders = setmetatable({}, weak), setmetatable({}, weak)
local literals = setmetatable({}, weak)

local marks = {}

--- The same value as cjson's, if that is installed: what other code decoded can be written.
local has_cjson, cjson = pcall(require, "cjson")
marks.null = has_cjson and cjson.null
  or setmetatable({}, { __tostring = function() return "null" end })

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

--- The keys that have a place, in order.
function marks.order_of(value) return orders[value] or {} end

--- A number that is kept as it was written.
function marks.written(text)
  local value = setmetatable({}, { __tostring = function() return text end })
  literals[value] = text
  return value
end

function marks.literal(value) return literals[value] end

return marks
