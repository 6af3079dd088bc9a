-- A file target that a group shares: its members write to it in turn, whoever made what is there.
-- Root plays both of them.

local place = require "place"
local support = require "support"
local has, sh, sh_ends = place.has, place.sh, place.sh_ends

local GROUP = 5151
local dir

-- ckpt-lua by a user of the group; the state directory is the user's own.
local function by(user, code, args)
  return sh_ends(code, ("umask 002; HOME=%s XDG_RUNTIME_DIR= setpriv --reuid %d --regid %d " ..
    "--clear-groups '%s' %s"):format(dir, user, GROUP, support.runner, args))
end

local function save(user, where, ...)
  place.save(where, ...)
  sh(("chown -R %d:%d %s"):format(user, GROUP, where))
end

local function outside_of_group(path)
  return sh(("find %s ! -type l \\( ! -group %d -o ! -perm -060 \\) -printf '%%p %%M %%g\\n'")
    :format(path, GROUP))
end

local function shared(name, body)
  it(name, function()
    if place.needs "test $(id -u) = 0 && setpriv --reuid 5001 --clear-groups true" then body() end
  end)
end

describe("a target that a group shares", function()
  place.with_directory(function(made)
    dir = made
    sh(("chmod 755 . ; mkdir one two; chown 5001:%d one; chown 5002:%d two; mkdir st; " ..
      "chgrp %d st; chmod 2775 st; install -d -m 2775 -g %d st/exp"):format(GROUP, GROUP, GROUP,
      GROUP))
  end)

  shared("is written to by one after the other, and what they make is the group's", function()
    save(5001, "one/out", 1, 2)
    by(5001, 0, "sync one/out --to st/exp --settle 0 --run shared")
    assert.are.equal("", outside_of_group("st/exp"))
    save(5002, "two/out", 3, 4)
    by(5002, 0, "sync two/out --to st/exp --settle 0 --run shared")
    save(5001, "one/out", 5)
    by(5001, 0, "run --dir one/out --to st/exp --settle 0 --run shared -- true")
    assert.are.equal("", outside_of_group("st/exp"))
    assert.are.equal("checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4 checkpoint-5",
      place.listed("st/exp"))
    by(5002, 0, "verify st/exp")
  end)

  shared("is pinned, marked, dropped and collected by another than who saved", function()
    save(5001, "one/out", 1, 2, 3)
    by(5001, 0, "sync one/out --to st/exp --settle 0")
    by(5002, 0, "pin st/exp checkpoint-1")
    by(5002, 0, "mark bad st/exp checkpoint-2")
    by(5001, 0, "mark good st/exp checkpoint-2")
    by(5001, 0, "unpin st/exp checkpoint-1")
    by(5002, 0, "rm st/exp checkpoint-1 --grace-delete 0")
    by(5001, 0, "rm st/exp checkpoint-2")
    by(5002, 0, "gc st/exp --grace-delete 0")
    assert.are.equal("checkpoint-3", place.listed("st/exp"))
    assert.are.equal("", sh("ls -d st/exp/checkpoint-[12] 2>/dev/null"))
    by(5002, 0, "restore st/exp --dir two/back")
  end)

  shared("has groups below it in which each member makes directories", function()
    save(5001, "one/out/a", 1)
    by(5001, 0, "sync one/out --to st/exp --settle 0 --run shared")
    save(5002, "two/out/a", 2)
    save(5002, "two/out/b", 1)
    sh(("chown 5002:%d two/out"):format(GROUP))
    by(5002, 0, "sync two/out --to st/exp --settle 0 --run shared")
    assert.are.equal("", outside_of_group("st/exp"))
    by(5001, 0, "rm st/exp --all")
  end)

  shared("that 1.0 began says what its owner has to do", function()
    save(5001, "one/out", 1)
    by(5001, 0, "sync one/out --to st/exp --settle 0 --run shared")
    sh("chmod 0700 st/exp/.ckpt/tmp")
    has(by(5002, 7, "pin st/exp checkpoint-1"), "chmod 2770")
    sh("chmod 2770 st/exp/.ckpt/tmp")
    by(5002, 0, "pin st/exp checkpoint-1")
  end)
end)
