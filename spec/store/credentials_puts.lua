-- Run by credentials_spec.sh: puts and reads small objects for so many seconds, with whatever keys
-- its environment leads to. credentials_puts.lua NAME SECONDS [PAUSE]

local ckpt = require "ckpt"

local name, seconds, pause = arg[1], tonumber(arg[2]), tonumber(arg[3] or "0.2")
local place, text = ckpt.store.open("s3://ckpt-test/keys/" .. name)
if not place then
  io.stderr:write(text, "\n")
  os.exit(1, true)
end
local began, puts = os.time(), 0
repeat
  puts = puts + 1
  local key, bytes = ("n-%04d"):format(puts), name .. puts
  local ok, why = place:put(key, bytes)
  if ok then
    local got
    got, why = place:get(key)
    ok = got == bytes
  end
  if not ok then
    io.stderr:write(("put %d: %s\n"):format(puts, tostring(why)))
    os.exit(1, true)
  end
  os.execute("sleep " .. pause)
until os.time() - began >= seconds
print(puts)
