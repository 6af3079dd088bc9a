-- An option that is misspelt is refused at the caller's line, wherever options are taken, with the
-- name that was meant.

local ckpt = require "ckpt"
local support = require "support"

describe("a misspelt option", function()
  local dir
  support.with_directory(function(made) dir = made end)

  local function must_refuse(what, meant, make)
    local fine, why = pcall(make)
    assert.is_false(fine, what)
    assert.is_truthy(why:find "^%S*options_spec.lua:%d+: ", what .. ": " .. why)
    assert.is_truthy(why:find(("(did you mean `%s`?)"):format(meant), 1, true),
      what .. ": " .. why)
  end

  local places = {
    { "Trainable", "logdir", function()
      ckpt.Trainable({}, { log_dir = dir })
    end },
    { "a class of Trainable", "trial_id", function()
      ckpt.Trainable:extend "Mine"({}, { logdir = dir, trialid = "7" })
    end },
    { "DurableTrainable", "logdir", function()
      ckpt.DurableTrainable("mem://options/x", {}, { lodgir = dir })
    end },
    { "FunctionRunner", "checkpoint_freq", function()
      ckpt.FunctionRunner({}, { logdir = dir, checkpoint_frq = 1 })
    end },
    { "a runner of wrap_function", "trial_name", function()
      ckpt.wrap_function(function(_) end, { warn = false })({}, { logdir = dir, trial_nme = "n" })
    end },
    { "a durable runner", "logdir", function()
      ckpt.wrap_function(function(_) end, { warn = false, durable = true })("mem://options/x", {},
        { log_dir = dir })
    end },
    { "StatusReporter", "trial_id", function()
      ckpt.StatusReporter(print, { trialId = "7" })
    end },
    { "wrap_function", "mixins", function()
      ckpt.wrap_function(function(_) end, { mixin = {} })
    end },
    { "wrap_command", "output", function() ckpt.wrap_command({ "true" }, { ouput = false }) end },
    { "Registry", "path", function() ckpt.Registry { pth = dir } end },
    { "RayRegistry", "directory", function() ckpt.RayRegistry { directoy = dir } end },
    { "load_state", "fallback", function()
      local registry = ckpt.Registry { path = dir }
      local state = ckpt.State("options", registry)
      registry:load_state(state, { falback = true })
    end },
    { "SyncConfig", "upload_dir", function() ckpt.SyncConfig { uploaddir = "mem://x/y" } end },
    { "DefaultSyncer", "sync_period", function() ckpt.DefaultSyncer { sync_perod = 3 } end },
    { "BackgroundSyncer", "sync_timeout", function()
      ckpt.BackgroundSyncer { sync_timout = 3, sync_up_command = print }
    end },
    { "Syncer", "retry", function()
      ckpt.Syncer { sync_up = print, sync_down = print, delete = print, rety = print }
    end },
    { "SyncerCallback", "transfer", function() ckpt.SyncerCallback { transfr = print } end },
    { "ArtifactSync", "logger_files", function()
      ckpt.ArtifactSync { config = ckpt.SyncConfig {}, syncer = ckpt.DefaultSyncer(),
        logger_file = {} }
    end },
    { "store.upload", "exclude", function()
      ckpt.store.upload { dir = dir, uri = "mem://options/x", exlude = {} }
    end },
    { "store.list", "delimited", function()
      ckpt.store.open "mem://options/x":list("", { delimeted = true })
    end },
    { "file_transfer.pack", "known", function()
      ckpt.file_transfer.pack(dir, dir .. "/x.tar", { knwon = {} })
    end },
    { "tar.unpack", "bytes_max", function()
      ckpt.tar.unpack(dir .. "/x.tar", dir .. "/y", { byte_max = 1 })
    end },
    { "job.command", "stdin", function() ckpt.job.command({ "true" }, { sdtin = "" }) end },
  }

  for _, place in ipairs(places) do
    it("of " .. place[1] .. " is refused", function() must_refuse(place[1], place[2], place[3]) end)
  end

  it("is told without a guess if it is close to nothing", function()
    local fine, why = pcall(ckpt.Registry, { colour = "red" })
    assert.is_false(fine)
    assert.matches("Registry: there is no option `colour`$", why)
    assert.is_false((pcall(ckpt.DefaultSyncer, { colour = "red" })))
    assert.is_false((pcall(ckpt.Trainable, {}, { [1] = "x" })))
  end)

  it("is none if a syncer, or a class of one's own, has a member of that name", function()
    local syncer = ckpt.Syncer { sync_up = print, sync_down = print, delete = print, waits = 0,
      bucket = "b" }
    assert.same({ 0, "b" }, { syncer.waits, syncer.bucket })
    local Mine = ckpt.DefaultSyncer:extend "Mine"
    assert.equal("b", Mine({ bucket = "b" }).bucket)
    local Shelf = ckpt.Registry:extend "Shelf"
    Shelf.OPTIONS = { path = true, shelf = true }
    assert.equal(3, Shelf({ shelf = 3 }).options.shelf)
  end)
end)
