-- Root restores and unpacks in a directory that belongs to somebody else, who moves things about
-- meanwhile: nothing that root makes lands where that user may not write.

package.path = "./spec/?.lua;" .. package.path
local support = require "support"
local CKPT = support.runner

local TRIES = 4
local dir

local function sh(command) return support.sh(("cd '%s' && { %s\n}"):format(dir, command)) end

local function ckpt(args)
  local text, code = sh(("'%s' %s"):format(CKPT, args))
  return code, text
end

local function is_root()
  local _, code = support.sh("[ \"$(id -u)\" = 0 ] && setpriv --reuid 1234 --clear-groups true")
  return code == 0
end

-- As user 1234, who owns the directory $1: waits for what begins with $2 (or appears in that very
-- name), gives its name to a link to $3, where only root may write, and says so. Until $4 is there.
local SWAP = [[
echo ready
while [ ! -e "$4" ]; do
  for p in "$1/$2"*; do
    case $p in *.x) continue ;; esac
    [ -d "$p" ] && [ ! -L "$p" ] || continue
    if [ "$p" = "$1/$2" ]; then
      for q in "$p"/????????????????????????????????; do p=$q; done
      [ -d "$p" ] || continue
    fi
    mv "$p" "$p.x" && ln -s "$3" "$p" && echo swapped && exit
  done
done 2>/dev/null
]]

local function attack(where, prefix, command)
  sh("rm -f stop; chown 1234 home; chmod 755 . home; mkdir -p victim; chmod 755 victim")
  return sh(([[
    setpriv --reuid 1234 --clear-groups timeout 20 sh swap.sh %s %s "$PWD/victim" stop >swap.txt &
    for i in $(seq 200); do grep -q ready swap.txt && break; sleep 0.02; done
    %s
    echo "code $?"
    : >stop; wait; cat swap.txt
  ]]):format(where, prefix, command))
end

local function nothing_elsewhere(text)
  assert.are.equal("", (sh("find victim -mindepth 1 | head -n 3")), text)
end

before_each(function()
  dir = support.directory()
  support.write(dir .. "/swap.sh", SWAP)
  sh([[mkdir -p src/checkpoint-1 home
    for i in 1 2 3 4 5 6; do head -c 3000000 /dev/urandom >src/checkpoint-1/a$i; done
    echo planted >src/checkpoint-1/zz; ln -s zz src/checkpoint-1/link; echo x >src/checkpoint-1/DONE
  ]])
end)
after_each(function() os.execute("rm -rf '" .. dir .. "'") end)

describe("root, in the directory of another user,", function()
  it("restores into what it made itself, whatever takes its name", function()
    if not is_root() then return pending("needs root, and setpriv for a second user") end
    local code, text = ckpt("sync src --to store --marker DONE -q")
    assert.are.equal(0, code, text)
    local won = 0
    for try = 1, TRIES do
      sh("rm -rf home/out; mkdir home/out; chown 1234 home/out")
      if try % 2 == 0 then -- a directory for a fixed name stands there before
        sh("chmod 755 . home; setpriv --reuid 1234 --clear-groups mkdir home/out/.ckpt-restore")
      end
      local said = attack("home/out", ".ckpt-restore",
        ("'%s' restore store --dir home/out"):format(CKPT))
      nothing_elsewhere(said)
      if said:find("swapped", 1, true) then won = won + 1 end
    end
    assert.is_true(won > 0) -- it was tried, and gained nothing
  end)

  it("uses no staging that stands there: a directory of theirs, or a link", function()
    if not is_root() then return pending("needs root, and setpriv for a second user") end
    ckpt("sync src --to store --marker DONE -q")
    for _, plant in ipairs { "mkdir %s", "ln -s \"$PWD/victim\" %s", "echo x >%s" } do
      sh("rm -rf home/out victim; mkdir home/out victim; chmod 755 . home; chown 1234 home/out")
      local _, planted = sh(("setpriv --reuid 1234 --clear-groups sh -c '%s'")
        :format(plant:format("home/out/.ckpt-restore")))
      assert.are.equal(0, planted)
      local code, text = ckpt("restore store --dir home/out")
      assert.are.equal(0, code, text)
      nothing_elsewhere(text)
      assert.are.equal("planted\n", support.read(dir .. "/home/out/checkpoint-1/zz"))
      local _, theirs = sh("[ \"$(stat -c %u home/out/.ckpt-restore)\" = 1234 ]")
      assert.are.equal(0, theirs) -- and it is left alone
    end
  end)

  it("unpacks into what it made itself", function()
    if not is_root() then return pending("needs root, and setpriv for a second user") end
    local code, text = ckpt("pack src a.tar")
    assert.are.equal(0, code, text)
    local won = 0
    for _ = 1, TRIES do
      sh("rm -rf home/o home/.o*")
      local said = attack("home", ".o.", ("'%s' unpack a.tar --dir home/o"):format(CKPT))
      nothing_elsewhere(said)
      if said:find("swapped", 1, true) then won = won + 1 end
    end
    assert.is_true(won > 0)
  end)

  it("is not sent elsewhere by a link of that user: it is told, and what to do", function()
    if not is_root() then return pending("needs root, and setpriv for a second user") end
    ckpt("sync src --to store --marker DONE -q")
    ckpt("pack src a.tar")
    sh([[mkdir -p victim; ln -s ../victim home/out; chown -h 1234 home/out]])
    for _, args in ipairs { "restore store --dir home/out", "restore store --dir home/out/deeper",
      "run --dir home/out --to store --continue-run -- true", "unpack a.tar --dir home/out/o" } do
      local code, text = ckpt(args)
      assert.are_not.equal(0, code, text)
      assert.is_truthy(text:find("user 1234", 1, true), text)
      nothing_elsewhere(text)
    end
    sh("rm home/out; ln -s ../victim home/out") -- a link of its own leads where it leads
    local code, text = ckpt("restore store --dir home/out")
    assert.are.equal(0, code, text)
    assert.are.equal("planted\n", support.read(dir .. "/victim/checkpoint-1/zz"))
  end)
end)
