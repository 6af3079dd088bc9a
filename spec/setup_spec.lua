-- Guards .ci/setup: quick and silent when all is there, clear when it cannot help.

local support = require "support"

describe("the setup", function()
  local dir

  support.with_directory(function(made) dir = made end)

  -- A program of the machine, for the setup alone; each call is noted in the file "calls".
  local function fake(name, text)
    support.write(dir .. "/" .. name,
      ("#!/bin/bash\necho \"%s $*\" >>%s/calls\n%s\n"):format(name, dir, text))
    os.execute("chmod +x " .. dir .. "/" .. name)
  end

  local function setup()
    for _, name in ipairs { "env", "bash", "sleep" } do
      os.execute(("ln -sf $(command -v %s) %s/%s"):format(name, dir, name))
    end
    local out, status = support.sh("PATH=" .. dir ..
      " SETUP_PAUSE=0 /bin/bash .ci/setup </dev/null")
    return out, status, support.read(dir .. "/calls") or ""
  end

  -- All packages but one are installed.
  local all = "for p; do printf 'installed:%s ' \"$p\"; done"
  local some = all:gsub("do ", "do [[ $p == strace ]] || ")

  it("asks dpkg once and is silent when all is there", function()
    fake("dpkg-query", all)
    local out, status, calls = setup()
    assert.equal("", out)
    assert.equal(0, status)
    assert.equal(1, select(2, calls:gsub("\n", "")))
  end)

  it("installs as root what is missing, and only that", function()
    fake("dpkg-query", some)
    fake("id", "echo 0")
    fake("apt-get", "exit 0")
    local _, status, calls = setup()
    assert.equal(0, status)
    assert.truthy(calls:find("apt%-get [^\n]* update\n"))
    assert.truthy(calls:find("apt%-get [^\n]* install %-%-no%-install%-recommends strace\n"))
  end)

  it("goes through sudo, and asks for no password without a terminal", function()
    fake("dpkg-query", some)
    fake("id", "echo 1000")
    fake("sudo", "shift; exec \"$@\"")
    fake("apt-get", "exit 0")
    local _, status, calls = setup()
    assert.equal(0, status)
    assert.truthy(calls:find("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get", 1, true))
  end)

  it("tries twice, then says what is missing", function()
    fake("dpkg-query", some)
    fake("id", "echo 0")
    fake("apt-get", "exit 100")
    local out, status, calls = setup()
    assert.equal(1, status)
    assert.equal(2, select(2, calls:gsub("update\n", "")))
    assert.truthy(out:find("could not install strace", 1, true))
  end)

  it("is done when the second try works", function()
    fake("dpkg-query", some)
    fake("id", "echo 0")
    fake("apt-get", "[[ -e " .. dir .. "/once ]] || { : >" .. dir .. "/once; exit 100; }")
    local _, status = setup()
    assert.equal(0, status)
  end)

  it("says what to do where there is neither root nor sudo", function()
    fake("dpkg-query", some)
    fake("id", "echo 1000")
    local out, status = setup()
    assert.equal(1, status)
    assert.truthy(out:find("missing: strace. Run 'make setup' as root", 1, true))
  end)

  it("says what to do where there is no dpkg", function()
    local out, status = setup()
    assert.equal(1, status)
    assert.truthy(out:find("no Debian", 1, true))
    assert.truthy(out:find("SETUP=no", 1, true))
  end)
end)
