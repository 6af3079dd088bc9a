-- Run by environment_spec.sh: stores and runs of one process with keys of their own. Prints TAP.

local ckpt = require "ckpt"

local store, count = ckpt.store, 0
local dir = assert(ckpt.fs.temporary_directory())

local function check(what, ok, ...)
  count = count + 1
  print(("%s %d - %s"):format(ok and "ok" or "not ok", count, what))
  if not ok then print("# " .. tostring((...))) end
end

local mine = {
  "AWS_ACCESS_KEY_ID=testkey", "AWS_SECRET_ACCESS_KEY=testsecret", "AWS_REGION=us-east-1",
}
local wrong = { "AWS_ACCESS_KEY_ID=testkey", "AWS_SECRET_ACCESS_KEY=hidden-wrong" }
local profile = { "AWS_PROFILE=mine", "AWS_SHARED_CREDENTIALS_FILE=" .. arg[1] }

local one, text = store.open("s3://ckpt-test/env", { environment = mine })
check("a store takes its keys from what it is given", one, text)
local by_profile = store.open("s3://ckpt-test/env", { environment = profile })
local other = store.open("s3://ckpt-test/env", { environment = wrong })
local ok, why = one:put("a", "1")
check("with these it writes", ok, why)
check("a profile of its own comes before the keys of the process", by_profile:get("a") == "1")
ok, why = other:get("a")
check("beside it another one has others", not ok and why:find("SignatureDoesNotMatch"), why)
check("what is refused shows no secret", not why:find("hidden"), why)
ok, why = store.open("s3://ckpt-test/env"):get("a")
check("the process's own stay what they were", not ok, why)
check("and the first store's, too", one:get("a") == "1")

assert(ckpt.fs.mkdirs(dir .. "/tree"))
assert(ckpt.fs.write(dir .. "/tree/file", "bytes"))
local uri = "s3://ckpt-test/env/tree"
local moved
moved, text = assert(store.upload { dir = dir .. "/tree", uri = uri, environment = mine }):wait()
check("a tree is sent with keys of its own", moved, text)
moved = assert(store.upload { dir = dir .. "/tree", uri = uri .. 2, environment = wrong }):wait()
check("and not with wrong ones", not moved)

-- Two runs of one engine, each with its own account.
local function run(name, environment)
  local watched = dir .. "/" .. name
  assert(ckpt.fs.mkdirs(watched .. "/checkpoint-1"))
  assert(ckpt.fs.write(watched .. "/checkpoint-1/model.bin", name))
  assert(ckpt.fs.write(watched .. "/checkpoint-1/DONE", ""))
  return watched, {
    dir = watched, to = "s3://ckpt-test/env/runs-" .. name, markers = { "DONE" }, quiet = -1,
    start_wait = -1, environment = environment,
  }
end
local engine = assert(ckpt.open())
local _, first = run("first", mine)
local _, second = run("second", profile)
local _, third = run("third", wrong)
local runs = {}
for i, options in ipairs { first, second } do
  runs[i], text = engine:run(options)
  check("run " .. i .. " opens with keys of its own", runs[i], text)
  assert(runs[i]:prepare { restore = "never" })
  assert(runs[i]:start())
end
local refused
refused, why = engine:run(third)
check("one with wrong keys does not", not refused and not why:find("hidden"), why)
local committed = 0
for _ = 1, 100 do
  engine:dispatch(200)
  local done = engine:next()
  while done do
    if done.kind == "committed" then committed = committed + 1 end
    done = engine:next()
  end
  if committed == 2 then break end
end
check("both save", committed == 2, committed)
engine:close()
check("a text that is no NAME=VALUE is refused",
  not store.open("s3://ckpt-test/env", { environment = { "hidden" } }))
ckpt.fs.remove_tree(dir)
print("1.." .. count)
