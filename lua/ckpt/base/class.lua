--- Classes of the object model: `local Syncer = class("Syncer")`, a subclass by
--- `Syncer:extend("Mine")`, an object by `Mine(...)`, which calls `Mine.init(object, ...)`.
---
--- Methods are looked up along the parents. A class may give its objects metamethods
--- (`function Class:__tostring()`); a class that extends it later has them too.

jit.off(true, true)

local METAMETHODS = { "__tostring", "__concat", "__len", "__eq", "__lt", "__le", "__call" }

local class_of = setmetatable({}, { __mode = "k" }) -- metatable of objects -> class

local make

---@class ckpt.Class
---@field name string
---@field parent? ckpt.Class
---@field extend fun(self, name: string): ckpt.Class

local function construct(class, ...)
  local object = setmetatable({}, class.__objects)
  if class.init then class.init(object, ...) end
  return object
end

function make(name, parent)
  local class = { name = name, parent = parent }
  class.__objects = { __index = class }
  for _, known in ipairs(parent and METAMETHODS or {}) do
    class.__objects[known] = parent.__objects[known]
  end
  class.extend = function(self, child) return make(child, self) end
  class_of[class.__objects] = class
  return setmetatable(class, {
    __index = parent,
    __call = construct,
    __tostring = function() return "class " .. name end,
    -- A metamethod counts only where the metatable itself has it.
    __newindex = function(self, key, value)
      rawset(self, key, value)
      for _, known in ipairs(METAMETHODS) do
        if key == known then self.__objects[key] = value end
      end
    end,
  })
end

---@class ckpt.class
---@overload fun(name: string): ckpt.Class
local class = {}

--- Returns the class of an object; nil for any other value.
---@param object any
---@return ckpt.Class?
function class.of(object)
  local meta = type(object) == "table" and getmetatable(object)
  return meta and class_of[meta] or nil
end

--- Tells whether `object` was made by this class or by one that extends it.
---@param object any
---@param wanted ckpt.Class
---@return boolean
function class.is(object, wanted)
  local at = class.of(object)
  while at and at ~= wanted do at = rawget(at, "parent") end
  return at ~= nil
end

return setmetatable(class, { __call = function(_, name) return make(name, nil) end })
