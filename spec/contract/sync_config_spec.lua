-- ckpt.SyncConfig: what it holds, what it refuses, which syncer it asks for.

local ckpt = require "ckpt"

local function custom(more)
  local options = {
    sync_up = function() return true end,
    sync_down = function() return true end,
    delete = function() return true end,
  }
  for name, value in pairs(more or {}) do options[name] = value end
  return options
end

describe("a sync configuration", function()
  it("[137, 140] has these fields and defaults", function()
    local c = ckpt.SyncConfig()
    assert.is_nil(c.upload_dir)
    assert.equal("auto", c.syncer)
    assert.equal(300, c.sync_period)
    assert.equal(1800, c.sync_timeout)
    assert.is_true(c.sync_artifacts)
    assert.is_true(c.sync_on_checkpoint)
  end)

  it("[140] takes each of them, and no other", function()
    local given = {
      upload_dir = "mem://x", syncer = "auto", sync_period = 1, sync_timeout = 2,
      sync_artifacts = false, sync_on_checkpoint = false,
    }
    local c = ckpt.SyncConfig(given)
    for name, value in pairs(given) do assert.equal(value, c[name]) end
    assert.error_matches(function() ckpt.SyncConfig { sync_perod = 1 } end,
      "SyncConfig has no setting `sync_perod`")
    assert.error_matches(function() ckpt.SyncConfig { sync_period = "1" } end,
      "sync_period is a number, not a string")
  end)

  it("[141] is refused with an upload directory and no syncer", function()
    assert.error_matches(function() ckpt.SyncConfig { upload_dir = "mem://x", syncer = false } end,
      "leave out upload_dir, or set syncer")
    ckpt.SyncConfig { syncer = false }
    ckpt.SyncConfig { upload_dir = "", syncer = false }
  end)

  it("[142] is refused with a syncer and no upload directory", function()
    for _, syncer in ipairs { custom(), ckpt.Syncer(custom()) } do
      assert.error_matches(function() ckpt.SyncConfig { syncer = syncer } end,
        "a syncer of your own needs an upload_dir")
      assert.error_matches(function() ckpt.SyncConfig { syncer = syncer, upload_dir = "" } end,
        "needs an upload_dir")
      ckpt.SyncConfig { syncer = syncer, upload_dir = "mem://x" }
    end
  end)

  it("[143] keeps an odd syncer until the syncer is made", function()
    for _, odd in ipairs { "weird", 7, {} } do
      assert.is_nil(ckpt.get_node_to_storage_syncer(ckpt.SyncConfig { syncer = odd }))
      local c = ckpt.SyncConfig { syncer = odd, upload_dir = "mem://x" }
      assert.error_matches(function() ckpt.get_node_to_storage_syncer(c) end,
        "unknown syncer type `" .. type(odd) .. "`")
    end
  end)

  it("[144] asks for no syncer, the default one, or the user's own object", function()
    local get = ckpt.get_node_to_storage_syncer
    assert.is_nil(get(ckpt.SyncConfig { syncer = false }))
    assert.is_nil(get(ckpt.SyncConfig()))
    assert.is_nil(get(ckpt.SyncConfig { upload_dir = "" }))
    local default = get(ckpt.SyncConfig {
      upload_dir = "mem://x", sync_period = 7, sync_timeout = 8,
    })
    assert.is_true(ckpt.class.is(default, ckpt.DefaultSyncer))
    assert.same({ 7, 8 }, { default.sync_period, default.sync_timeout })
    for _, syncer in ipairs { custom(), ckpt.Syncer(custom()) } do
      assert.equal(syncer, get(ckpt.SyncConfig { upload_dir = "mem://x", syncer = syncer }))
    end
  end)

  it("[145 G] is shown as plain text and as JSON: place, checkpoints, period", function()
    local c = ckpt.SyncConfig { upload_dir = "s3://b/x", sync_period = 60, sync_timeout = 77 }
    assert.equal(table.concat({
      "Setting             Value",
      "Upload directory    s3://b/x",
      "Sync on checkpoint  true",
      "Sync period         60",
    }, "\n"), tostring(c))
    assert.equal('{"upload_dir": "s3://b/x", "sync_on_checkpoint": true, "sync_period": 60}',
      c:json())
    c = ckpt.SyncConfig()
    assert.matches("Upload directory    none", tostring(c))
    assert.matches('"upload_dir": null', c:json(), 1, true)
  end)

  it("[146, 147 G] says true of a place that can be written to, and raises of others", function()
    for _, place in ipairs { "", "file:///x", "s3://b", "mem://x" } do
      assert.is_true(ckpt.SyncConfig({ upload_dir = place }):validate_upload_dir())
    end
    assert.is_true(ckpt.SyncConfig():validate_upload_dir())
    for _, place in ipairs { "/x", "weird://x" } do
      assert.error_matches(function()
        ckpt.SyncConfig({ upload_dir = place }):validate_upload_dir()
      end, "no storage is known for the upload directory")
    end
  end)

  it("[148] asks the user's syncer instead, if that has a check", function()
    local asked
    local own = custom {
      validate_upload_dir = function(_, place)
        asked = place
        return true
      end,
    }
    for _, syncer in ipairs { own, ckpt.Syncer(own) } do
      asked = nil
      local c = ckpt.SyncConfig { upload_dir = "weird://x", syncer = syncer }
      assert.is_true(c:validate_upload_dir())
      assert.equal("weird://x", asked)
    end
    local plain = ckpt.SyncConfig { upload_dir = "weird://x", syncer = custom() }
    assert.error_matches(function() plain:validate_upload_dir() end, "weird://x")
  end)

  it("[152] uploads artifacts only to a place, fetches checkpoints only without one", function()
    local cases = {
      { {}, false, true },
      { { upload_dir = "" }, false, true },
      { { sync_artifacts = false, sync_on_checkpoint = false }, false, false },
      { { upload_dir = "mem://x" }, true, false },
      { { upload_dir = "mem://x", sync_artifacts = false }, false, false },
      { { upload_dir = "mem://x", sync_on_checkpoint = false }, true, false },
    }
    for i, case in ipairs(cases) do
      local c = ckpt.SyncConfig(case[1])
      assert.equal(case[2], c:uploads_artifacts(), "case " .. i)
      assert.equal(case[3], c:fetches_checkpoints(), "case " .. i)
    end
  end)
end)
