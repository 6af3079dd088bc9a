--- What `make install` leaves works wherever it is moved, for anybody, with an empty environment,
--- and without the tree that it was made from, which is out of sight while the installed is used.

package.path = "./spec/?.lua;" .. package.path
local support = require "support"

-- The build that is installed is the one under test.
local MAKE = "unset MAKEFLAGS MAKELEVEL PREFIX DESTDIR; make -s SETUP=no "
  .. (support.build == support.root .. "/build" and "" or "BUILD='" .. support.build .. "' ")

-- An engine of a C program, and the policy that it names.
local HOST = [[
#include <ckpt.h>
#include <stdio.h>

int main(void) {
  ckpt *engine;
  ckpt_run *run;
  const char *const policies[] = {"retention", NULL}, *const markers[] = {"w.pt", NULL};
  ckpt_run_options options = {.size = sizeof options, .dir = "out", .to = "store", .quiet_s = -1};
  ckpt_completion done = {.size = sizeof done};
  ckpt_run_status status = {.size = sizeof status};
  ckpt_event ended = {.size = sizeof ended, .kind = CKPT_EVENT_EXIT, .clean = 1};
  options.policies = policies;
  options.markers = markers;
  int rc = ckpt_open(&engine, NULL);
  if (rc == 0) rc = ckpt_run_open(engine, &run, &options);
  if (rc == 0) rc = ckpt_run_start(run);
  if (rc == 0) rc = ckpt_notify(run, &ended, NULL);
  do {
    if (rc == 0 && ckpt_dispatch(engine, 1000) < 0) rc = -1;
    while (rc == 0 && ckpt_next(engine, &done))
      if (done.kind == CKPT_COMMITTED) puts(done.unit);
    if (rc == 0) ckpt_run_get_status(run, &status);
  } while (rc == 0 && status.pending);
  if (rc < 0) puts(ckpt_error(engine));
  ckpt_close(engine);
  return rc < 0;
}
]]

-- The same by hand of a LuaJIT.
local SCRIPT = [[
  local ckpt = require "ckpt"
  local engine = assert(ckpt.open())
  local run = assert(engine:run { dir = "out", to = "store", quiet = 0.1,
    policies = { "retention" }, markers = { "w.pt" } })
  assert(run:start())
  assert(run:notify { kind = "exit", clean = true })
  for _ = 1, 100 do
    assert(engine:dispatch(100))
    if run:status().pending == 0 then break end
  end
  assert(run:status().committed == 1, "nothing was committed")
  engine:close()
  ckpt.Checkpoint.from_directory(assert(ckpt.fs.absolute("out")))
  print("done")
]]

local function sh(command)
  local out, code = support.sh(command)
  assert(code == 0, command .. ": " .. out)
  return out
end

local function exists(path) return (select(2, support.sh("test -e '" .. path .. "'"))) == 0 end

describe("what is installed", function()
  if support.sanitized then
    return it("is the plain build", function() pending("the plain build runs this one") end)
  end

  local dir, place, isolated

  -- Puts this in front of a command: another user, and nothing of the project to be seen.
  local function isolate()
    local hidden = ("mount -t tmpfs none '%s'; "):format(support.root)
    if support.build:sub(1, #support.root + 1) ~= support.root .. "/" then
      hidden = hidden .. ("mount -t tmpfs none '%s'; "):format(support.build)
    end
    local is_root = support.sh("id -u"):match("^0\n")
    local user = is_root and "setpriv --reuid=65534 --regid=65534 --clear-groups " or ""
    for _, way in ipairs { is_root and "unshare -m" or "unshare -rm" } do
      local try = way .. " sh -c 'set -e; cd /; %sexec " .. user .. "\"$@\"' sh "
      try = try:format(hidden:gsub("'", "'\\''"))
      if select(2, support.sh(try .. "true")) == 0 then return try end
    end
    return user
  end

  setup(function()
    dir = support.directory()
    sh(MAKE .. ("install DESTDIR='%s/first' PREFIX=/opt/ckpt"):format(dir))
    place = dir .. "/moved/to a/place"
    sh(("mkdir -p '%s/moved/to a' && mv '%s/first/opt/ckpt' '%s'"):format(dir, dir, place))
    isolated = isolate()
  end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  local work

  before_each(function()
    work = sh(("mktemp -d '%s/work.XXXXXX'"):format(dir)):match("%S+")
    sh(("mkdir '%s/out' '%s/out/checkpoint-7' && echo x >'%s/out/checkpoint-7/w.pt'")
      :format(work, work, work))
  end)

  --- Runs a script in `work`. Returns all that it printed; it must end well.
  local function run(script)
    support.write(work .. "/script.sh", script)
    sh(("chmod 755 '%s' && chmod -R a+rwX '%s'"):format(dir, work))
    return sh(("%s env -i PATH=/usr/bin:/bin P='%s' bash -euc 'cd \"%s\"; . ./script.sh'")
      :format(isolated, place, work))
  end

  it("names neither where it was made nor where it was put first", function()
    local made = support.sh(("grep -rlF -e '%s' -e '%s' '%s'"):format(
      support.root, dir .. "/first", place))
    assert.are.equal("", made)
  end)

  it("is out of the project's sight", function()
    if not isolated:find("unshare", 1, true) then return pending("no mounts here") end
    assert.are.equal("gone\n", run(("[ -e '%s/engine' ] || echo gone"):format(support.root)))
  end)

  it("runs a job with a policy by its name", function()
    local out = run([[
      echo 'mkdir -p out/checkpoint-8; echo x >out/checkpoint-8/w.pt' >job.sh
      "$P/bin/ckpt-lua" run --dir out --to store -p retention -o last=1 --marker w.pt --settle 0 \
        -- sh job.sh
      "$P/bin/ckpt-lua" ls store
      "$P/bin/ckpt-lua" pack out/checkpoint-8 x.tar.gz]])
    assert.truthy(out:find("\ncheckpoint-8 ", 1, true), out)
  end)

  it("runs a script that requires ckpt", function()
    support.write(work .. "/x.lua", SCRIPT)
    assert.truthy(run('"$P/bin/ckpt-lua" exec x.lua'):find("done\n$"))
  end)

  it("runs tests of policies", function()
    support.write(work .. "/p_test.lua", [[
      it("keeps the newest", function()
        local names = require("ckpt").testing.policy("retention", { last = 1 }):keep(2)
        assert.equal("checkpoint-2", names[#names])
      end)]])
    local out = run('"$P/bin/ckpt-lua" policy test p_test.lua --coverage')
    assert.truthy(out:find("1 success / 0 failures / 0 errors", 1, true), out)
    assert.truthy(out:find "retention.lua: %d+ of %d+ lines", out)
  end)

  it("is a module of any LuaJIT", function()
    support.write(work .. "/x.lua", SCRIPT)
    assert.truthy(run([[LUA_PATH="$P/share/lua/5.1/?.lua;$P/share/lua/5.1/?/init.lua" \
      LUA_CPATH="$P/lib/lua/5.1/?.so;;" luajit x.lua]]):find("done\n$"))
  end)

  it("is a shared library for C", function()
    support.write(work .. "/host.c", HOST)
    assert.are.equal("checkpoint-7\n", run([[
      export PKG_CONFIG_PATH=$P/lib/pkgconfig
      eval "cc -o host host.c $(pkg-config --cflags --libs ckpt)"
      readelf -d host | grep -q 'NEEDED.*libckpt.so.0'
      LD_LIBRARY_PATH=$P/lib ./host]]))
  end)

  it("is a static library for C", function()
    support.write(work .. "/host.c", HOST)
    assert.are.equal("checkpoint-7\n", run([[
      export PKG_CONFIG_PATH=$P/lib/pkgconfig
      eval "cc -o host host.c $(pkg-config --static --cflags --libs ckpt |
        sed 's/-lckpt/-l:libckpt.a/')"
      if readelf -d host | grep libckpt; then exit 1; fi
      CKPT_LIBEXEC=$P/libexec/ckpt-lua CKPT_POLICIES=$P/share/ckpt-lua/policies ./host]]))
  end)

  it("goes, and nothing else goes with it", function()
    local root = dir .. "/second"
    sh(MAKE .. ("install DESTDIR='%s'"):format(root))
    local mine = root .. "/usr/local/share/ckpt-lua/policies/mine.lua"
    support.write(mine, "return {}\n")
    sh(MAKE .. ("uninstall DESTDIR='%s'"):format(root))
    assert.are.equal(mine .. "\n", sh(("find '%s' ! -type d"):format(root)))
    assert.are.equal("", sh(("find '%s' -mindepth 4 -type d -name '*ckpt*' -empty"):format(root)))
  end)

  it("has Slurm's plugin if that was asked for", function()
    local root = dir .. "/plugin"
    local install = MAKE .. "install SPANK_PLUGIN=yes DESTDIR='" .. root .. "'"
    assert.are.equal("", sh(("find '%s' -path '*slurm*'"):format(place)))
    if not exists "/usr/include/slurm/spank.h" then
      local out, code = support.sh(install)
      assert.truthy(code ~= 0 and out:find("there is no slurm/spank.h", 1, true), out)
      return
    end
    sh(install)
    local folder = root .. "/usr/local/lib/ckpt-lua/slurm/"
    assert.truthy(exists(folder .. "spank_ckpt.so"))
    support.write(work .. "/x.sh", 'echo "$1" >out/said')
    sh(([[cd '%s' && env CKPT_TASK_DIR=out CKPT_TASK_TO=store CKPT_TASK_COMMAND=sh \
      CKPT_TASK_OPTIONS='--marker w.pt --settle 0' PATH=/usr/bin:/bin '%sckpt-task' x.sh 'two words'
      ]]):format(work, folder))
    assert.are.equal("two words\n", support.read(work .. "/out/said"))
    sh(MAKE .. ("uninstall SPANK_PLUGIN=yes DESTDIR='%s'"):format(root))
    assert.are.equal("", sh(("find '%s' ! -type d"):format(root)))
  end)
end)
