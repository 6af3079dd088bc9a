local library = require "policy.rules"
local place = require "place"
local support = require "support"

-- Lays out a trial's directory by ckpt.FuncCheckpointUtil, and says of each checkpoint what it is.
local TRIAL = [[
local ckpt = require "ckpt"
local util, dir = ckpt.FuncCheckpointUtil, arg[1]
local function fill(path)
  assert(ckpt.fs.write(path .. "/model.bin", path))
  return path
end
fill(assert(util.mk_null_checkpoint_dir(dir)))
fill(assert(util.mk_temp_checkpoint_dir(dir)))
fill(assert(ckpt.TrainableUtil.make_checkpoint_dir(dir, 3)))
assert(util.create_perm_checkpoint(fill(assert(util.mk_temp_checkpoint_dir(dir))), dir, 4))
for _, name in ipairs(ckpt.fs.list(dir)) do
  local path = dir .. "/" .. name
  local kind = util.is_null_checkpoint(path) and "null"
    or util.is_temp_checkpoint_dir(path) and "temp" or "perm"
  print(kind, name)
end
]]

describe("policies/markers.lua", function()
  it("names Ray's two markers, and nothing else", function()
    local M, data = library.shipped "markers"
    assert.same({ null = ".null_marker", temp = ".temp_marker" }, data.markers)
    assert.same({}, data.has)
    assert.is_nil((M.ask("sync", library.event())))
  end)

  it("tells the checkpoints of a trial as ckpt.FuncCheckpointUtil does", function()
    local dir = place.begin()
    support.write(dir .. "/trial.lua", TRIAL)
    support.write(dir .. "/rule.lua",
      'return { api = 1, unit = "checkpoint_*/", queue = "all", '
      .. 'complete = done.marker ".is_checkpoint" }')
    place.sh "mkdir out"
    local told = place.sh(("CKPT_LUADIR='%s/lua' '%s/libexec/ckpt-script' trial.lua '%s/out'")
      :format(support.root, support.build, dir))
    place.must "sync out --to store -p ./rule.lua -p markers"
    local kinds = { null = 0, temp = 0, perm = 0 }
    for kind, name in told:gmatch "(%a+)\t(%S+)" do
      kinds[kind] = kinds[kind] + 1
      local why = place.ckpt(("why %s --dir out"):format(name))
      local expected = kind == "perm" and "committed" or kind .. "-marker"
      assert.equal(name .. ": " .. expected, why:match "^[^\n]*")
      local saved = support.read(dir .. "/store/" .. name .. "/model.bin")
      assert.equal(kind == "perm" and support.read(dir .. "/out/" .. name .. "/model.bin") or nil,
        saved, name)
    end
    -- A temporary one that was made permanent is an ordinary one, and so is its copy.
    assert.same({ null = 1, temp = 1, perm = 3 }, kinds)
    os.execute("rm -rf '" .. dir .. "'")
  end)
end)
