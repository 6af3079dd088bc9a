-- notify, status and exec: what is asked of a run that lives, and of one that has ended.

local cjson = require "cjson"
local place = require "place"
local support = require "support"
local sh, sh_ends, ckpt, says, has = place.sh, place.sh_ends, place.ckpt, place.says, place.has
local CKPT, read, write, await = support.runner, support.read, support.write, support.await

local dir, alive

-- Runs a job in the background: a script that is ended by a file named "end".
local function start(script, args)
  write(dir .. "/job.sh", (script or "") .. [[

    touch up
    until [ -e end ]; do sleep 0.02; done]])
  write(dir .. "/start.sh", ([[
    export CKPT=%s; "$CKPT" run --dir out --to store --settle 0 %s -- sh job.sh >run.txt 2>&1
    echo $? >rc.new; mv rc.new rc]]):format(CKPT, args or ""))
  os.execute(("cd '%s' && sh start.sh &"):format(dir))
  alive = true
  await("the job", function() return read(dir .. "/up") or read(dir .. "/rc") end)
end

local function finish()
  if not alive then return end
  alive = false
  write(dir .. "/end", "")
  return tonumber((await("the end", function() return read(dir .. "/rc") end)))
end

before_each(function() dir, alive = place.begin(), false end)
after_each(function()
  finish()
  os.execute("rm -rf '" .. dir .. "'")
end)

describe("notify", function()
  -- A policy that writes into its reasons what it was told.
  local TELLS = [[
    return {
      api = 1,
      sync = function(e)
        local r = e.result
        if not r then return "skip", "no result yet" end
        local function say(v) return tostring(v) .. " (" .. type(v) .. ")" end
        return "sync", "loss " .. say(r.loss) .. " ok " .. say(r.ok) .. " name " .. say(r.name)
      end,
    }]]

  it("takes NaN as Python's json and str write it, and 2.7 comes back as 2.7", function()
    write(dir .. "/tells.lua", TELLS)
    start([[
      for how in '{"loss": NaN, "ok": 2.7, "name": -Infinity}' "loss=nan ok=2.7 name=-inf"; do
        case $how in {*) "$CKPT" notify "$how";; *) "$CKPT" notify $how;; esac || exit 9
      done
      mkdir out/.new; echo w >out/.new/model.bin; mv out/.new out/checkpoint-1
      until [ -e store/checkpoint-1 ]; do sleep 0.02; done]], "-p ./tells.lua")
    assert.are.equal(0, finish(), read(dir .. "/run.txt"))
    local shown, listed = ckpt "show store", ckpt "show store --json"
    has(shown, "loss nan (number) ok 2.7 (number) name -inf (number)")
    has(listed, '"metrics":{"loss":"NaN","name":"-Infinity","ok":2.7}')
    cjson.decode(listed)
    local entries = sh("cat store/.ckpt/log/*.json")
    assert.is_nil(entries:find '[:,%[]%-?NaN' or entries:find '[:,%[]%-?Inf')
  end)

  it("reaches the policy as a result, numbers and booleans as such", function()
    write(dir .. "/tells.lua", TELLS)
    start([[
      "$CKPT" notify loss=0.25 ok=true name=1x >told.txt 2>&1; echo $? >>told.txt
      mkdir out/.new; echo w >out/.new/model.bin; mv out/.new out/checkpoint-1
      until [ -e store/checkpoint-1 ]; do sleep 0.02; done]], "-p ./tells.lua")
    assert.are.equal(0, finish(), read(dir .. "/run.txt"))
    assert.are.equal("0\n", read(dir .. "/told.txt"))
    has(ckpt("show store"), "loss 0.25 (number) ok true (boolean) name 1x (string)")
  end)

  it("takes an object as it stands, and says what is wrong with one", function()
    start()
    says(0, [[notify --dir out '{"training_iteration":3,"loss":0.2}']])
    says(1, [[notify --dir out '{"loss":']])
    local text = says(2, "notify --dir out loss")
    has(text, "KEY=VALUE")
    text = says(2, "notify --dir out a=1 a=2")
    has(text, "twice")
    says(0, "notify --state out.ckpt x=inf y=1e999 z=01 w=")
  end)

  it("waits with --wait until all is saved", function()
    start([[
      mkdir out/.new; echo w >out/.new/model.bin; mv out/.new out/checkpoint-1
      "$CKPT" notify checkpoint=checkpoint-1 --wait; echo $? >told
      ls store >seen]])
    assert.are.equal(0, finish(), read(dir .. "/run.txt"))
    assert.are.equal("0\n", read(dir .. "/told"))
    has(read(dir .. "/seen"), "checkpoint-1")
  end)

  it("does not call durable with --wait what is unknown, torn, or not polled yet", function()
    start([[
      mkdir out/.new; echo w >out/.new/model.bin; mv out/.new out/checkpoint-1
      "$CKPT" notify checkpoint="$PWD/out/checkpoint-1" --wait; echo $? >told
      ls store >seen
      printf 'PK\003\004torn' >out/torn.pt
      for name in torn.pt checkpoint-9; do
        "$CKPT" notify checkpoint=$name --wait; echo $?
      done >told.bad]],
      "--poll")
    assert.are.equal(3, finish(), read(dir .. "/run.txt"))
    has(read(dir .. "/run.txt"), "; NOT proven whole: torn.pt (zip: no central directory)\n")
    assert.are.equal("0\n", read(dir .. "/told"))
    has(read(dir .. "/seen"), "checkpoint-1")
    assert.are.equal("1\n1\n", read(dir .. "/told.bad"))
  end)

  it("has code 4 where no run is alive, and says how to name one", function()
    local text = says(4, "notify a=1")
    has(text, "CKPT_SOCKET")
    text = says(4, "notify --dir out a=1")
    has(text, "no run is alive")
    text = sh_ends(4, ("CKPT_SOCKET=/nowhere/s '%s' notify a=1"):format(CKPT))
    has(text, "/nowhere/s")
  end)

  it("does not wait for ever for who does not answer", function()
    local script = ([[python3 -c "
import socket, subprocess, sys, os
s = socket.socket(socket.AF_UNIX); s.bind('mute'); s.listen(1)
p = subprocess.Popen(['%s', 'notify', 'a=1'], env=dict(os.environ, CKPT_SOCKET='mute'))
c, _ = s.accept(); c.recv(100); c.sendall(b'nonsense\n'); sys.exit(p.wait())"]]):format(CKPT)
    local text = sh_ends(1, script)
    has(text, "no answer of ours")
  end)
end)

describe("status", function()
  it("tells of a live run what is durable and what is waited for", function()
    start([[
      mkdir out/.new; echo w >out/.new/model.bin; mv out/.new out/checkpoint-1
      until grep -q committed run.txt; do sleep 0.02; done
      mkdir out/checkpoint-2; exec 9>out/checkpoint-2/model.bin; echo part >&9]])
    local text, code
    await("the second", function()
      text, code = ckpt("status out")
      return code == 0 and text:find("waiting    checkpoint-2", 1, true)
    end)
    has(text, "newest     checkpoint-1 (step 1), ")
    has(text, "policies   default\n")
    has(text, "target     file://")
    has(text, "standing   NOT durable: checkpoint-2")
    local all = cjson.decode((ckpt("status --json out")))
    assert.is_true(all.alive)
    assert.are.equal("checkpoint-1", all.newest.unit)
    assert.are.equal("checkpoint-2", all.not_durable[1].unit)
    assert.is_false(all.durable)
  end)

  it("tells how the last run ended when none is alive", function()
    start()
    finish()
    local text = says(0, "status out")
    has(text, "no run is alive; the last one ended with: 0 committed")
    assert.are.equal(0, cjson.decode((ckpt("status out --json"))).exit_code)
    assert.are.equal(text, (ckpt("status --state out.ckpt")))
  end)

  it("is that of the job itself inside of it", function()
    start([["$CKPT" status --json >inside 2>&1]])
    finish()
    assert.are.equal(true, cjson.decode(read(dir .. "/inside")).alive)
  end)

  it("has code 4 where no run ever was", function()
    local text = says(4, "status nowhere")
    has(text, "no run has ended there")
    text = says(4, "status")
    has(text, "DIR is missing")
  end)
end)

describe("the socket", function()
  -- Sends lines as they are; returns all that comes back.
  local function raw(lines)
    write(dir .. "/raw", lines)
    return sh(([[python3 -c "
import socket, json, os
place = '%s'
s = socket.socket(socket.AF_UNIX); s.connect(place); s.sendall(open('raw','rb').read())
s.shutdown(socket.SHUT_WR)
print(b''.join(iter(lambda: s.recv(65536), b'')).decode(), end='')"]]):format(
      read(dir .. "/place"):match("%S+")))
  end

  it("answers nonsense questions with an error, and lives on", function()
    start([[echo "$CKPT_SOCKET" >place]])
    for _, line in ipairs { '{"$ckpt"}', '{"$ckpt":1}', '{"$ckpt":"x"}', '{"$ckpt":"why"}',
      '{"$ckpt":"status","json":[[[[]]]]}', '{"$ckpt":"status"', '{"$ckpt":"\\u0000"}',
      '{"$ckpt":"status","name":"' .. ("x"):rep(60000) .. '",}' } do
      has(raw(line .. "\n"), '{"error":"')
    end
    local lines = support.lines(raw('{"$ckpt":"status","json":true}\n{"loss":1}\n'))
    assert.are.equal('{"ok":true,"lines":1}', lines[1])
    assert.is_true(cjson.decode(lines[2]).alive)
    assert.are.equal('{"ok":true}', lines[3])
    assert.are.equal(0, finish())
  end)
end)

describe("exec", function()
  it("hands file and arguments on as they are", function()
    sh("mkdir -p lib")
    write(dir .. "/lib/ckpt-script", '#!/bin/sh\nprintf "<%s>" "$@"; exit 7\n')
    sh("chmod +x lib/ckpt-script")
    write(dir .. "/x.lua", "")
    local text = sh_ends(7, ("CKPT_LIBEXEC=lib '%s' exec x.lua --json '' 'a b'"):format(CKPT))
    assert.are.equal("<x.lua><--json><><a b>", text)
  end)

  it("has code 127 and names the script if that is not there", function()
    local text = says(127, "exec /nowhere/x.lua")
    has(text, "/nowhere/x.lua")
  end)

  it("has code 127 and names the place if the program is not there", function()
    write(dir .. "/x.lua", "")
    local text = sh_ends(127, ("CKPT_LIBEXEC=/nowhere '%s' exec x.lua"):format(CKPT))
    has(text, "/nowhere/ckpt-script")
    has(text, "CKPT_LIBEXEC")
  end)
end)
