-- JSON that others wrote, small as a text and huge as a tree: it is weighed before it is one.
-- Measured on the real programs; the limit of address space keeps a failure from taking the
-- machine.
local support = require "support"

local place = require "place"
local sh, measured = place.sh, place.measured

local dir

local MiB = 2 ^ 20

local function bomb(before, part, after, size)
  return before .. part:rep(math.floor((size - #before) / #part)) .. "0" .. after
end

local function little_endian(n)
  local out = {}
  for i = 1, 8 do out[i], n = string.char(n % 256), math.floor(n / 256) end
  return table.concat(out)
end

-- The texts themselves are held, too, and the sanitizers' own memory is not counted here.
local MOST = 200
local test = support.sanitized and pending or it

describe("JSON of others", function()
  place.with_directory(function(made)
    dir = made
    sh "mkdir -p out/checkpoint-1; echo '{}' >out/checkpoint-1/trainer_state.json"
  end)

  for what, part in pairs { objects = "{},", lists = "[],", numbers = "0,", texts = '"",' } do
    test("is not made a tree of from a safetensors header of " .. what, function()
      for _, size in ipairs { 15 * MiB, what == "objects" and 66 * MiB or nil } do
        local header = bomb('{"a":[', part, "]}", size)
        support.write(dir .. "/out/checkpoint-1/model.safetensors",
          little_endian(#header) .. header)
        local out, code, mib = measured "sync out --to store --settle 0"
        assert(mib < MOST, mib .. " MiB: " .. out)
        assert(code == 0 or code == 3, code .. ": " .. out)
      end
    end)
  end

  test("is still read from a safetensors header as large as they get", function()
    local tensors = { '{"__metadata__":{"format":"pt"}' }
    for i = 1, 20000 do
      tensors[i + 1] = (',"model.layers.%d.mlp.experts.7.down_proj.weight":{"dtype":"BF16",'
        .. '"shape":[1,2],"data_offsets":[%d,%d]}'):format(i, 4 * i - 4, 4 * i)
    end
    local header = table.concat(tensors) .. "}"
    local whole = little_endian(#header) .. header .. ("x"):rep(80000)
    support.write(dir .. "/out/checkpoint-1/model.safetensors", whole:sub(1, -2))
    local out, refused = measured "sync out --to store --settle 0"
    assert(refused ~= 0 and out:find("0 committed", 1, true), out)
    support.write(dir .. "/out/checkpoint-1/model.safetensors", whole)
    local text, code, mib = measured "sync out --to store --settle 0"
    assert(code == 0 and text:find "1 committed", text)
    assert(mib < MOST, mib)
  end)

  test("is not made a tree of from the metrics of a checkpoint", function()
    support.write(dir .. "/out/checkpoint-1/trainer_state.json",
      bomb('{"log_history":[', "{},", "]}", 15 * MiB))
    support.write(dir .. "/out/checkpoint-1/model.bin", "x")
    support.write(dir .. "/p.lua",
      'return { api = 1, metrics = { from.json("trainer_state.json", "log_history[-1]") } }')
    local out, code, mib = measured "sync out --to store -p p.lua --settle 0"
    assert(code == 0, out)
    assert(mib < MOST, mib .. " MiB: " .. out)
    assert(out:find("more values than such a document may have", 1, true), out)
  end)

  test("is not made a tree of from what a policies' helper answers", function()
    support.write(dir .. "/out/checkpoint-1/model.bin", "x")
    assert(select(2, sh(("'%s' sync out --to store --settle 0"):format(support.runner))) == 0)
    sh "mkdir libexec"
    for what, part in pairs { objects = "{},", numbers = "0," } do
      support.write(dir .. "/libexec/ckpt-policy", ([[#!/usr/bin/env python3
import os, struct
def take(n):
    data = b""
    while len(data) < n:
        more = os.read(0, n - len(data))
        if not more: os._exit(0)
        data += more
    return data
part, size = b"%s", 24 << 20
body = b'{"ok":true,"answer":[' + part * (size // len(part)) + b'0]}'
while True:
    take(struct.unpack("<I", take(4))[0])
    data = struct.pack("<I", len(body)) + body
    while data: data = data[os.write(1, data):]
]]):format(part))
      sh "chmod +x libexec/ckpt-policy"
      support.write(dir .. "/p.lua", "return { api = 1, keep = keep.last(1) }")
      local out, _, mib = measured("plan store -p p.lua", "CKPT_LIBEXEC=$PWD/libexec")
      assert(mib < MOST, ("%s: %d MiB: %s"):format(what, mib, out))
      assert(out:find("more values than such a document may have", 1, true), out)
    end
  end)

  test("is not made a tree of from a store: log entries, pins, leases, heads, manifests", function()
    support.write(dir .. "/out/checkpoint-1/model.bin", "x")
    assert(select(2, sh(("'%s' sync out --to store --settle 0"):format(support.runner))) == 0)
    for i, size in ipairs { MiB - 10, 15 * MiB } do
      support.write(dir .. "/bomb" .. i, bomb('{"type":"snapshot","a":[', "{},", "]}", size))
    end
    -- In one program, and by links: most of the time went into starts and copies.
    support.write(dir .. "/each.py", [[
import os, resource, subprocess, sys
runner, most, count = sys.argv[1], int(sys.argv[2]), 0
for place, _, names in [*os.walk("store/.ckpt"), *os.walk("store/checkpoint-1")]:
    for path in (os.path.join(place, name) for name in names):
        if os.path.getsize(path) > 999 << 10 or open(path, "rb").read(1) != b"{": continue
        count += 1
        os.rename(path, "kept")
        for bomb in "bomb1", "bomb2":
            os.link(bomb, path)
            for verb in ["ls", "store"], ["gc", "store", "-n"]:
                p = subprocess.Popen([runner, *verb], stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, preexec_fn=lambda: resource.setrlimit(
                        resource.RLIMIT_AS, (6 << 30, 6 << 30)))
                out = p.stdout.read()
                mib = os.wait4(p.pid, 0)[2].ru_maxrss >> 10
                if mib >= most: print(path, bomb, verb, mib, "MiB:", out)
            os.unlink(path)
        os.rename("kept", path)
print("played", count)
]])
    local out = sh(("python3 each.py '%s' %d"):format(support.runner, MOST))
    local count = tonumber(out:match "^played (%d+)\n?$")
    assert(count and count >= 4, out)
  end)
end)
