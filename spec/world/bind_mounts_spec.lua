-- The watched directory, the state and the target never lie in one another, by whatever mounts they
-- are named: a target that is saved would be saved again, for ever.

local support = require "support"
local CKPT, sh = support.runner, support.sh

local dir

local BOUND = [[cd '%s' && unshare -m sh -c '
  mount --make-rprivate / && %s && exec timeout 20 "$0" %s' '%s']]

-- In a mount namespace of its own, with `mounts` in place: what `args` says, and its code.
local function bound(mounts, args)
  return sh(BOUND:format(dir, mounts, args, CKPT))
end

local function refused(mounts, args)
  local text, code = bound(mounts, args)
  assert.are.equal(2, code, text)
  assert.is_truthy(text:find("must not lie in one another", 1, true), text)
end

local function taken(mounts, args)
  local text, code = bound(mounts, args)
  assert.are.equal(0, code, text)
  assert.is_truthy(text:find("1 committed", 1, true), text)
end

local function test(what, fn)
  it(what, function()
    local text, code = sh "unshare -m mount --make-rprivate /"
    if code ~= 0 then return pending("not on this machine: " .. text) end
    fn()
  end)
end

support.with_directory(function(made)
  dir = made
  sh(([[cd '%s' && mkdir -p w/out/sub/deep w/out/checkpoint-1 w/beside alias away "sp ace" &&
    echo x >w/out/checkpoint-1/model.bin && echo '{}' >w/out/checkpoint-1/trainer_state.json]])
    :format(dir))
end)

describe("a target in the watched directory", function()
  test("is refused where that is mounted elsewhere, too", function()
    refused("mount --bind w/out alias", "sync w/out --to alias/store")
    refused("mount --bind w/out \"sp ace\"", "sync w/out --to \"sp ace/store\"")
  end)
  test("is refused where only a part of that is mounted elsewhere", function()
    refused("mount --bind w/out/sub alias", "sync w/out --to alias/store")
    refused("mount --bind w/out/sub/deep alias", "sync w/out --to alias")
  end)
  test("is refused where what is above that is mounted elsewhere", function()
    refused("mount --bind w alias", "sync w/out --to alias/out/store")
    refused("mount --bind w alias", "sync alias/out --to w/out/sub/store")
    refused("mount -t tmpfs none w/out/sub && mount --rbind w alias",
      "sync w/out --to alias/out/sub/store")
  end)
  test("is refused where that is not there yet", function()
    refused("mount --bind w alias", "run --dir w/new --to alias/new/store -- true")
  end)
end)

describe("a watched directory in its target", function()
  test("is refused through mounts", function()
    refused("mount --bind w/out alias", "sync alias --to w --state away/state")
    refused("mount --bind w alias", "sync alias/out --to w")
    refused("mount --bind w alias", "run --dir alias/new/out --to w/new -- true")
  end)
end)

describe("a state directory in the watched directory", function()
  test("is refused through mounts", function()
    refused("mount --bind w/out/sub alias", "sync w/out --to away/store --state alias/state")
    refused("mount --bind w alias", "sync w/out --to w/beside --state alias/beside/state")
  end)
end)

describe("an archive in the directory that it is made of", function()
  test("is refused through mounts", function()
    local text, code = bound("mount --bind w/out/sub alias", "pack w/out alias/out.tar")
    assert.are.equal(2, code, text)
    assert.is_truthy(text:find("it would pack itself", 1, true), text)
  end)
end)

describe("what lies beside one another", function()
  test("stays allowed through mounts", function()
    taken("mount --bind w alias", "sync w/out --to alias/store --settle 0")
    taken("mount --bind w/beside alias", "sync w/out --to alias/store2 --settle 0")
    taken("mount -t tmpfs none alias && mkdir -p alias/out", "sync w/out --to alias/out --settle 0")
    -- What is mounted over it hides it.
    taken("mkdir w/out/over && mount -t tmpfs none away && mount --bind away alias",
      "sync w/out --to alias/store --settle 0")
  end)
end)
