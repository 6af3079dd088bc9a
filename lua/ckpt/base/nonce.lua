--- 128 random bits as 32 lower-case hexadecimal digits: a name that nobody else has.

jit.off(true, true)

---@return string
return function()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(16)
  file:close()
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end
