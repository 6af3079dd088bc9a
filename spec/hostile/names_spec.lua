-- Names that would speak to a terminal, or show as others: no verb lets them through.

local place = require "place"
local support = require "support"
local sh, ckpt = place.sh, place.ckpt

-- C1's CSI, raw and in UTF-8; ESC; a line's end; overrides and isolates of direction.
local NAMES = {
  "checkpoint-1-\194\155" .. "31mred", "checkpoint-2-\155" .. "31mred", "checkpoint-3-\27[31mred",
  "checkpoint-4-\nforged line", "checkpoint-5-\226\128\174gpj.exe", "checkpoint-6-\226\129\166x",
  "checkpoint-7-\216\156y", "checkpoint-8-\226\128\143z", "checkpoint-9-\194\133w",
}
local UNITS = " --unit 'checkpoint-*/' --settle 0 --marker model.bin"
-- This one is harmless, and is shown as it is.
local FINE = "checkpoint-10-gr\195\188\195\159e-\230\151\165"

local dir

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- What of a text a terminal would obey, or would show elsewhere than it stands.
local function harm(text)
  for _, pattern in ipairs {
    "[%z\1-\8\11-\31\127]", "\194[\128-\159]", "\216\156", "\226\128[\142\143\170-\174]",
    "\226\129[\166-\169]",
  } do
    local at = text:find(pattern)
    if at then return ("%q in %q"):format(pattern, text:sub(math.max(1, at - 20), at + 20)) end
  end
  local valid = text:gsub("[\194-\223][\128-\191]", "")
    :gsub("[\224-\239][\128-\191][\128-\191]", "")
    :gsub("[\240-\244][\128-\191][\128-\191][\128-\191]", "")
  local byte = valid:match "[\128-\255]"
  return byte and ("the byte %d is no UTF-8"):format(byte:byte()) or nil
end

local function make(where)
  for _, name in ipairs(NAMES) do
    local path = quoted(where .. "/" .. name)
    sh(("mkdir -p %s; echo x >%s/model.bin; echo '{}' >%s/trainer_state.json")
      :format(path, path, path))
  end
  local path = where .. "/" .. FINE
  sh(("mkdir -p '%s'; echo x >'%s/model.bin'; echo '{}' >'%s/trainer_state.json'")
    :format(path, path, path))
end

describe("a name that would speak to a terminal", function()
  setup(function()
    dir = place.begin()
    make "out"
    support.write(dir .. "/all.lua", 'return { api = 1, queue = "all", keep = keep.all() }')
    support.write(dir .. "/policy.lua", 'return { api = 1, queue = "all", keep = keep.last(3) }')
  end)
  teardown(function() os.execute("rm -rf " .. dir) end)

  local function is_harmless(args, part)
    local out, code = ckpt(args)
    local bad = harm(out)
    assert(not bad, ("%s (%d): %s\n%s"):format(args, code, bad or "", out:gsub("%c", "?")))
    if part then assert(out:find(part, 1, true), args .. ": no " .. part .. " in\n" .. out) end
  end

  it("is shown by no verb as it is", function()
    is_harmless("sync out --to store -n" .. UNITS, FINE)
    is_harmless("sync out --to store -v -p all.lua" .. UNITS, FINE)
    is_harmless("ls store", FINE)
    is_harmless("ls store --json", FINE)
    is_harmless("verify store", FINE)
    is_harmless("verify store --json", FINE)
    is_harmless("plan store -p policy.lua", FINE)
    is_harmless("plan store -p policy.lua --json", FINE)
    is_harmless("latest store")
    is_harmless("show store --json")
    is_harmless("gc store -v")
    is_harmless("rm store --all -n", FINE)
    for _, name in ipairs(NAMES) do
      local word = quoted(name)
      is_harmless("show store " .. word)
      is_harmless("show store --json " .. word)
      is_harmless("why " .. word .. " --dir out --to store")
      is_harmless("why --json " .. word .. " --dir out --to store")
      is_harmless("ls " .. quoted("nowhere/" .. name))
      is_harmless("pin store " .. word)
    end
    -- A path is for the next command: as it is in a pipe, and harmless on a terminal.
    local name = NAMES[1]
    local out = ckpt("restore store " .. quoted(name) .. " --dir back -n -q")
    assert(out:find("back/" .. name, 1, true), out)
    if select(2, sh "command -v script") == 0 then
      is_harmless(("-V >/dev/null; script -qec %s /dev/null | tr -d '\r'")
        :format(quoted(support.runner .. " restore store " .. quoted(name) .. " --dir back -n")),
        "back/checkpoint-1-\\xc2\\x9b")
    end
    is_harmless("status out")
  end)

  it("is shown by no run as it is, nor by its end", function()
    is_harmless("run --dir out2 --to store2 -v" .. UNITS .. " -- sh -c 'cp -r out/* out2/; "
      .. "\"$0\" status out2; \"$0\" ls store2' " .. quoted(support.runner))
    is_harmless("ls store2", FINE)
  end)

  it("is quoted by no error or log line of the Lua library as it is", function()
    support.write(dir .. "/script.lua", [[
      local ckpt, log = require "ckpt", require "ckpt.base.log"
      local bad = "checkpoint-\194\155m \155 \27[3m \226\128\174x \216\156 \194\133"
      log.warn("it is " .. bad)
      log.error("%s", ("x"):rep(3) .. "\0\127" .. bad)
      for _, item in ipairs(ckpt.list(ckpt.fs.cwd() .. "/store")) do log.info("%s", item.name) end
      error("cannot take " .. bad)]])
    is_harmless("exec script.lua", FINE)
  end)

  it("comes back from JSON as it was", function()
    local out = ckpt "ls store --json"
    local cjson, seen = require "cjson", {}
    for line in out:gmatch "[^\n]+" do
      local name = cjson.decode(line).name:gsub("%%(%x%x)", function(hex)
        return string.char(tonumber(hex, 16))
      end)
      seen[name] = true
    end
    for _, name in ipairs(NAMES) do assert(seen[name], ("it is lost: %q"):format(name)) end
    assert(seen[FINE])
  end)
end)
