-- `ckpt-lua why`: for each way in which a file is not in the store, the true cause, while the run
-- is alive and after its end. Real processes, real files, a real store.

local json = require "cjson"
local place = require "place"
local support = require "support"
local has = place.has
local CKPT, sh, read, write = support.runner, support.sh, support.read, support.write

local dir

-- Shell functions for jobs. `pause NAME`: says that all is there, and waits for the test.
local JOB = [[
save() {
  mkdir -p "$CKPT_DIR/.new" && echo "$1" >"$CKPT_DIR/.new/model.bin" &&
  mv "$CKPT_DIR/.new" "$CKPT_DIR/$1"
}
pause() {
  touch "at-$1"; i=0
  until [ -e "go-$1" ] || [ $i -gt 3000 ]; do sleep 0.02; i=$((i + 1)); done
}
cd "$CKPT_DIR/.."
]]

local function start(job, args)
  write(dir .. "/job.sh", JOB .. job)
  local line = "echo $$ >pid; export CKPT_POLICIES='%s/policies'\n"
    .. "exec '%s' run --dir out --to store %s -- sh job.sh\n"
  place.background(line:format(support.root, CKPT, args or ""))
end

local function finish()
  local _, said = place.ended()
  write(dir .. "/ended", "")
  return said
end

local function at(name) place.await_file("at-" .. name) end
local function go(name) write(dir .. "/go-" .. name, "") end

-- Code 4 is for what nobody knows, and for nothing else.
local function why(name, args)
  local text, code = place.ckpt(("why '%s' %s --json"):format(name, args or "--dir out"))
  local found = json.decode(text)
  assert.are.equal(found.cause == "not-seen" and 4 or 0, code, text)
  return found
end

-- Waits until the cause is this one: what the run sees comes a moment later.
local function because(cause, name, args)
  local last
  for _ = 1, 250 do
    last = why(name, args)
    if last.cause == cause then return last end
    os.execute("sleep 0.04")
  end
  error(("%s: %s (%s), not %s"):format(name, last.cause, last.text, cause))
end

-- At once: nothing can change any more.
local function is(cause, name, args)
  local found = why(name, args)
  assert.equal(cause, found.cause, name .. ": " .. found.text)
  return found
end

before_each(function() dir = place.begin() end)
after_each(function()
  local pid = read(dir .. "/pid")
  if pid and not read(dir .. "/ended") then sh("kill -9 " .. pid) end
  sh("rm -rf '" .. dir .. "'")
end)

describe("why", function()
  it("tells what is no checkpoint from what is not complete", function()
    start([[
cd out
echo x >junk.xyz; echo x >model.tmp; echo x >a.skip
mkdir checkpoint-7 5 exp1 exp2 target; echo x >5/model.bin
ln -s target checkpoint-2
mkfifo pipe.pt
(echo x; exec sleep 30) >open.pt & holder=$!
echo x >closed.h5x; echo x >exp1/same.ubj; echo x >exp2/same.ubj
mkdir checkpoint-8; echo x >checkpoint-8/training_args.bin; echo x >checkpoint-8/model.tmp
mkdir step-1; echo x >step-1/.metadata; sleep 0.05; echo x >step-1/__0_0.distcp
mkdir checkpoint-9; echo x >checkpoint-9/model.bin
echo x >gone.ubj; sleep 1.5; rm gone.ubj
cd ..; pause 1
kill $holder
]], "-p builtin --exclude '*.skip'")
    at("1")
    local function never_units()
      has(is("no-unit", "junk.xyz").text, "is nearest")
      has(is("no-unit", "5").text, "{step}/")
      has(is("excluded", "model.tmp").text, "*.tmp")
      has(is("excluded", "a.skip").text, "*.skip")
      has(is("excluded", "checkpoint-8/model.tmp").text, "*.tmp")
      is("link", "checkpoint-2")
      is("special", "pipe.pt")
      is("not-seen", "nothing.pt")
      has(is("not-seen", "x").text,
        "nothing of the name x is here, nor was it ever seen by a run, nor at file://")
      local text, code = place.ckpt "why x --dir out"
      assert.are.equal(4, code, text)
      is("not-seen", "checkpoint-99")
      is("outside", "/etc/passwd")
      is("state-file", "out.ckpt/journal.jsonl")
      is("directory", "out")
      has(is("ambiguous", "same.ubj").text, "exp1/same.ubj, exp2/same.ubj")
      is("removed", "gone.ubj")
    end
    because("open", "open.pt")
    has(is("open", "open.pt").text, "open.pt is being written")
    has(because("empty", "checkpoint-7").text, "holds no file")
    local first = because("not-quiet", "checkpoint-9").text
    has(first, "of 30 s")
    support.await("a figure of now", function()
      local later = is("not-quiet", "checkpoint-9").text
      return later:match "quiet ([%d.]+) of" ~= first:match "quiet ([%d.]+) of"
    end)
    support.await("the same in status", function()
      return place.must "status out":find("waiting +checkpoint%-9[:,].-quiet [%d.]+ of 30 s")
    end)
    has(because("marker-missing", "checkpoint-8").text, "trainer_state.json")
    is("marker-missing", "checkpoint-8/training_args.bin")
    has(because("marker-old", "step-1").text, ".metadata")
    is("not-quiet", "exp1/same.ubj")
    never_units()
    local out = sh(("cd '%s' && '%s' why out/checkpoint-8 --dir out"):format(dir, CKPT))
    has(out, "out/checkpoint-8: marker-missing\n")
    go("1")
    finish()
    never_units()
    is("committed", "checkpoint-9")
    has(is("marker-missing", "checkpoint-8").text, "trainer_state.json is missing")
    is("marker-old", "step-1")
    is("empty", "checkpoint-7")
    is("committed", dir .. "/out/checkpoint-9/model.bin", "") -- found from the path
    is("committed", "checkpoint-9", "--state out.ckpt")
    is("committed", "checkpoint-9", "--to store") -- another machine: the log alone
    has(is("not-seen", "checkpoint-10", "--to store").text, "store")
    sh(("mkdir '%s/other'"):format(dir))
    has(is("other-store", "checkpoint-9", "--dir out --to other").text, "store")
    sh(("rm -rf '%s/out/checkpoint-9'"):format(dir))
    has(is("committed", "checkpoint-9").text, " since ")
  end)

  it("names the condition of a policy that fails", function()
    write(dir .. "/rule.lua", [[
return { api = 1,
  complete = all { done.marker "DONE", done.superset_of_previous(), done.quiet "1s" },
  ready = function(e) if e.checkpoint.step == 5 then return false, "five is never ready" end end,
  sync = function(e)
    if e.checkpoint.step == 4 then return "skip", "four is unlucky" end
    return "sync"
  end,
}]])
    start([[
put() { mkdir -p out/checkpoint-$1; shift; for f; do echo x >$f; done; }
put 1 out/checkpoint-1/model.bin out/checkpoint-1/opt.bin out/checkpoint-1/DONE; pause 1
put 2 out/checkpoint-2/model.bin out/checkpoint-2/opt.bin
put 3 out/checkpoint-3/model.bin out/checkpoint-3/DONE
put 4 out/checkpoint-4/model.bin out/checkpoint-4/opt.bin out/checkpoint-4/DONE
put 5 out/checkpoint-5/model.bin out/checkpoint-5/opt.bin out/checkpoint-5/DONE
mkdir -p out/a/checkpoint-6 out/b/checkpoint-7
echo x >out/a/checkpoint-6/.null_marker; echo x >out/b/checkpoint-7/.temp_marker
for d in a/checkpoint-6 b/checkpoint-7; do echo x >out/$d/model.bin; echo x >out/$d/DONE; done
pause 2
]], "-p ./rule.lua -p default --grace 2s --settle 1s")
    at("1")
    because("committed", "checkpoint-1")
    go("1")
    at("2")
    has(because("marker-missing", "checkpoint-2").text, "marker DONE is missing")
    has(because("superset-missing", "checkpoint-3").text, "lacks opt.bin, which checkpoint-1 had")
    local skipped = because("skipped", "checkpoint-4")
    has(skipped.text, "rule")
    has(skipped.text, "four is unlucky")
    has(because("not-ready", "checkpoint-5").text, "five is never ready")
    because("null-marker", "checkpoint-6")
    because("temp-marker", "checkpoint-7")
    sh("kill " .. read(dir .. "/pid"))
    finish()
    has(is("marker-missing", "checkpoint-2").text, "marker DONE is missing")
    has(is("superset-missing", "checkpoint-3").text, "opt.bin")
    has(is("skipped", "checkpoint-4").text, "four is unlucky")
    has(is("not-ready", "checkpoint-5").text, "five is never ready")
    is("null-marker", "checkpoint-6")
    is("temp-marker", "checkpoint-7")
    has(is("not-seen", "checkpont-12").text, "checkpoint-{step}/")
  end)

  it("tells a store that refuses from one that is tried again", function()
    write(dir .. "/again.lua", [[
return { api = 1, queue = "newest",
  on_error = function(e) if e.checkpoint.step < 4 then return "retry", 4 end end }]])
    start([[
pause 0
save checkpoint-1; pause 1
save checkpoint-2; pause 2
save checkpoint-4; pause 3
]], "-p ./again.lua --grace 2s")
    at("0")
    -- A file stands where the engine puts what it moves: even root cannot write below it.
    sh(("cd '%s' && rm -rf store && echo x >store"):format(dir))
    go("0")
    at("1")
    local found = because("retrying", "checkpoint-1")
    has(found.text, "try 1 of 8")
    go("1")
    at("2")
    because("let-go", "checkpoint-1")
    because("retrying", "checkpoint-2")
    go("2")
    at("3")
    has(because("refused", "checkpoint-4").text, "store")
    sh("kill " .. read(dir .. "/pid"))
    finish()
    is("refused", "checkpoint-4")
    is("let-go", "checkpoint-1")
  end)

  it("names a newer writer", function()
    start("save checkpoint-1; pause 1; save checkpoint-2; pause 2; save checkpoint-3; pause 3",
      "-p builtin --run same --on-fenced detach")
    at("1")
    because("committed", "checkpoint-1")
    local newer = "cd '%s' && '%s' run -p builtin --dir out2 --to store --run same --take-over "
      .. "--restore never -- sh -c 'mkdir .n && echo x >.n/m && mv .n out2/checkpoint-50'"
    local out, code = sh(newer:format(dir, CKPT))
    assert.equal(0, code, out)
    go("1")
    at("2")
    has(because("fenced", "checkpoint-2").text, "no more")
    go("2")
    at("3")
    because("fenced", "checkpoint-3")
    go("3")
    finish()
    is("fenced", "checkpoint-2")
    is("fenced", "checkpoint-3")
  end)

  it("knows what was there before the run", function()
    sh(("cd '%s' && mkdir -p out/checkpoint-4 out/checkpoint-5 && cd out && "
      .. "echo x >checkpoint-4/training_args.bin && echo x >checkpoint-5/model.bin"):format(dir))
    is("not-watched", "checkpoint-5")
    start("printf 'PK\\003\\004 torn' >out/.t && mv out/.t out/torn.npz; pause 1",
      "-p builtin --unit 'checkpoint-{step}/' --unit '*.npz'")
    at("1")
    is("quarantined", "checkpoint-4")
    because("unproven", "checkpoint-5")
    because("torn", "torn.npz")
    go("1")
    finish()
    is("quarantined", "checkpoint-4")
    is("unproven", "checkpoint-5")
    is("torn", "torn.npz")
  end)

  it("knows what is no longer kept", function()
    write(dir .. "/keep.lua", "return { api = 1, keep = keep.last(1) }")
    start([[
save checkpoint-1; pause 1; save checkpoint-2; pause 2; save checkpoint-3; pause 3
]], "-p ./keep.lua")
    for n = 1, 3 do
      at(tostring(n))
      because("committed", "checkpoint-" .. n)
      if n == 3 then
        local found = because("dropped", "checkpoint-1")
        has(found.text, "keep")
        has(found.text, "not before")
      end
      go(tostring(n))
    end
    finish()
    is("dropped", "checkpoint-1")
    is("dropped", "checkpoint-1", "--to store")
    is("committed", "checkpoint-3")
  end)

  it("is a usage error where nobody knows which directory is meant", function()
    local out, code = sh(("cd '%s' && env -u CKPT_SOCKET '%s' why checkpoint-1"):format(dir, CKPT))
    assert.equal(2, code, out)
    has(out, "--dir")
  end)
end)
