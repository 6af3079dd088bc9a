--- lua-cjson, or an error that says how to get it.

jit.off(true, true)
local is_there, cjson = pcall(require, "cjson")
if not is_there then
  error("ckpt needs lua-cjson: install it (Debian: apt-get install lua-cjson; else: luarocks "
    .. "install lua-cjson), or add where it is to LUA_CPATH", 0)
end

return cjson
