-- A file system that gives all files one owner and one mode, as NFS with its users squashed, CIFS
-- and FUSE do: what we make there is not ours by its looks, and is ours all the same. And one that
-- keeps a file that is open under another name when it is removed, as NFS and FUSE do.

local place = require "place"
local support = require "support"
local sh = place.sh
local CKPT = support.runner

local dir

local SQUASHED = "--force-user=nobody --force-group=nogroup -p 0755 --chown-ignore --chmod-ignore"

local function mounted(options, command)
  local text, code = sh("mkdir -p real there && bindfs " .. options .. " real there")
  if code ~= 0 then return pending("no bindfs, or no FUSE: " .. text) end
  return place.must_sh((command:gsub("%%CKPT", "'" .. CKPT .. "'")))
end

before_each(function()
  dir = place.begin()
  sh("mkdir -p src/checkpoint-1 && echo x >src/checkpoint-1/model && touch src/checkpoint-1/DONE")
end)
after_each(function()
  sh("fusermount -u -z there 2>/dev/null || umount -l there 2>/dev/null")
  os.execute("rm -rf '" .. dir .. "'")
end)

describe("where what is open stays until it is closed", function()
  it("a restore ends well, and leaves nothing behind", function()
    local text = mounted("", [[%CKPT sync src --to store --marker DONE --settle 0 -q &&
      %CKPT restore store --dir there/out &&
      cmp src/checkpoint-1/model there/out/checkpoint-1/model &&
      %CKPT run --dir there/new --to store --continue-run -- test -e there/new/checkpoint-1/model &&
      find there -name '.ckpt-restore*']])
    assert.is_nil(text:find("there/[^\n]*%.ckpt%-restore"), text)
  end)
end)

describe("where all files have another owner", function()
  it("a checkpoint is restored, and an archive unpacked", function()
    mounted(SQUASHED, [[%CKPT sync src --to store --marker DONE --settle 0 -q &&
      %CKPT restore store --dir there/out &&
      cmp src/checkpoint-1/model there/out/checkpoint-1/model &&
      %CKPT pack src a.tar && %CKPT unpack a.tar --dir there/un &&
      cmp src/checkpoint-1/model there/un/checkpoint-1/model]])
  end)

  it("a run that was killed is followed by the next one at once", function()
    mounted(SQUASHED, [[run() { %CKPT run --dir there/out --to store --run r -- sh -c "$1"; }
      run 'kill -9 $PPID; exec sleep 100' >said 2>&1
      run true]])
  end)

  it("what was staged by a save that was cut short is removed", function()
    mounted(SQUASHED, [[%CKPT sync src --to there/store --marker DONE --settle 0 -q &&
      mkdir there/store/.ckpt/staging/0.0123456789abcdef0123456789abcdef &&
      echo x >there/store/.ckpt/staging/0.0123456789abcdef0123456789abcdef/f &&
      %CKPT gc there/store --grace-delete 0s && ! ls there/store/.ckpt/staging/0.* 2>/dev/null]])
  end)
end)
