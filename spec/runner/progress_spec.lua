-- restore, verify and the start of a run show how far they are: a line on a terminal that is drawn
-- anew, and nothing of it anywhere else.

local place = require "place"
local support = require "support"
local sh, has = place.must_sh, place.has
local CKPT = support.runner
local TERMINAL = support.root .. "/spec/runner/terminal.py"

-- What each of many files has; the store is slow with them.
local BYTES, FILES = 3000, 64

-- On a terminal (but one), with that store. All at once, as they mostly wait.
local slow = {
  restore = "restore store --dir back",
  verify = "verify store",
  run = "run --dir new --to store --continue-run -p builtin -- true",
  quiet = "verify -q store",
  plain = "verify --json store",
}

local dir, with_slow_store

local function save(name, files)
  sh(("mkdir -p %s && cd %s && head -c %d /dev/zero | split -a 2 -b %d - part. && " ..
    "echo '{}' >trainer_state.json"):format(name, name, files * BYTES, BYTES))
end

local function run_slow()
  local commands = {}
  for name, args in pairs(slow) do
    local terminal = name == "plain" and "" or TERMINAL
    commands[#commands + 1] = ("{ %s env %s '%s' %s; echo $? >%s.code; } >%s.txt 2>&1 &")
      :format(terminal, with_slow_store, CKPT, args, name, name)
  end
  commands[#commands + 1] = "wait"
  sh(table.concat(commands, "\n"))
end

local function shown(name)
  local text = support.read(("%s/%s.txt"):format(dir, name))
  assert.are.equal("0\n", support.read(("%s/%s.code"):format(dir, name)), text)
  return text
end

-- The lines that were drawn, each in the place of the last one; before this text comes, the last is
-- taken away.
local function must_be_drawn(text, doing, after)
  local count, before = 0, -1
  local stop = text:find("\r\27[K" .. after, 1, true)
  assert.is_truthy(stop, text)
  for line in text:sub(1, stop):gmatch("\r\27%[K(ckpt%-lua: [^\r\n]*)\r") do
    has(line, "ckpt-lua: " .. doing .. " checkpoint-3: ")
    -- With three digits of speed the line is as long as a terminal's, and ends a letter earlier.
    assert.is_truthy(line:find(" of 188 KiB %(%d+%%%), [%d.]+ %a+/s, %d+ s left?$"), line)
    assert.is_true(#line < 80, line)
    local percent = tonumber(line:match("%((%d+)%%%)"))
    assert.is_true(percent > before and percent <= 100, text)
    count, before = count + 1, percent
  end
  assert.is_true(count >= 2, text)
end

describe("progress", function()
  setup(function()
    dir = place.begin()
    with_slow_store = ("SLOW_BYTES=%d %s"):format(BYTES, place.preload "spec/runner/slow_read.c")
    save("large/checkpoint-3", FILES)
    save("small/checkpoint-4", 1)
    for from, to in pairs { large = "store", small = "little" } do
      sh(("'%s' sync %s --to %s --settle 0 -p builtin"):format(CKPT, from, to))
    end
    run_slow()
  end)

  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  it("of a restore is a line that is drawn anew", function()
    local text = shown("restore")
    must_be_drawn(text, "restoring", "back/checkpoint-3\r\n")
    has(text, "\r\nckpt-lua: restored checkpoint-3 (65 files, 188 KiB) to back\r\n")
  end)

  it("of a verify, too", function()
    must_be_drawn(shown("verify"), "verifying", "ok   checkpoint-3 (65 files, 188 KiB)\r\n")
  end)

  it("of the restore at the start of a run, too", function()
    must_be_drawn(shown("run"), "restoring", "ckpt-lua: resume from ")
  end)

  it("is not shown with -q", function()
    assert.are.equal("ok   checkpoint-3 (65 files, 188 KiB)\r\n", shown("quiet"))
  end)

  it("is not worth a line when all is quickly over", function()
    assert.are.equal(
      "a/checkpoint-4\r\nckpt-lua: restored checkpoint-4 (2 files, 2.9 KiB) to a\r\n",
      sh(("'%s' '%s' restore little --dir a"):format(TERMINAL, CKPT)))
  end)

  it("is nothing without a terminal", function()
    local text = sh(("'%s' restore little --dir b 2>err.txt"):format(CKPT))
    assert.are.equal("b/checkpoint-4\n", text)
    assert.are.equal("ckpt-lua: restored checkpoint-4 (2 files, 2.9 KiB) to b\n",
      support.read(dir .. "/err.txt"))
    local slowly = shown("plain")
    assert.is_truthy(slowly:match('^{"ok":true,[^\n]*}\n$'), slowly)
  end)
end)
