-- examples/custom_syncer.lua, with a shell of this machine in the place of ssh.

local support = require "support"

describe("examples/custom_syncer.lua", function()
  local dir

  support.with_directory(function(made)
    dir = made
    -- Called as ssh is: host, command.
    support.write(dir .. "/rsh", '#!/bin/sh\necho "$@" >>"$LOG"\nshift\nexec sh -c "$1"\n')
    os.execute(("chmod +x '%s/rsh'; mkdir -p '%s/out/logs' '%s/out/empty'"):format(dir, dir, dir))
    support.write(dir .. "/out/model.bin", "weights")
    support.write(dir .. "/out/logs/it's a log", "step 1\n")
    support.write(dir .. "/out/half.tmp", "x")
  end)

  local function run(uri)
    return support.sh(("cd '%s' && LOG='%s/log' RSH='%s/rsh' CKPT_LUADIR='%s/lua' "
      .. "TUNE_CHECKPOINT_CLOUD_RETRY_WAIT_TIME_S=0 timeout 60 "
      .. "'%s/libexec/ckpt-script' '%s/examples/custom_syncer.lua' out \"%s\""):format(dir, dir,
      dir, support.root, support.build, support.root, uri))
  end

  it("brings a directory there and back, without what is excluded, and deletes it", function()
    local text, code = run("ssh://backup" .. dir .. "/it's there/run")
    assert.equal(0, code, text)
    assert.matches("uploaded out\ndownloaded to out.copy\ndeleted ssh://backup", text)
    assert.equal("weights", support.read(dir .. "/out.copy/model.bin"))
    assert.equal("step 1\n", support.read(dir .. "/out.copy/logs/it's a log"))
    assert.equal("empty\nlogs\nmodel.bin\n",
      (support.sh(("cd '%s/out.copy' && ls"):format(dir)):gsub("%s+$", "\n")))
    assert.equal("", (support.sh(("ls \"%s/it's there\""):format(dir)):gsub("%s+$", "")))
    assert.matches("^backup mkdir %-p ", support.read(dir .. "/log"))
  end)

  it("fails when the other machine does, after three tries, and tells what it said", function()
    support.write(dir .. "/rsh",
      '#!/bin/sh\necho try >>"$LOG"\necho "no route to $1" >&2\nexit 255\n')
    local text, code = run("ssh://backup/run")
    assert.not_equal(0, code)
    assert.matches("no route to backup", text)
    assert.equal("try\ntry\ntry\n", support.read(dir .. "/log"))
  end)

  it("refuses a place that it cannot reach", function()
    local text, code = run("s3://bucket/run")
    assert.not_equal(0, code)
    assert.matches("s3://bucket/run is not ssh://HOST/PATH", text, 1, true)
    assert.is_nil(support.read(dir .. "/log"))
  end)
end)
