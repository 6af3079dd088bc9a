local library = require "policy.rules"

describe("policies/adaptdl.lua", function()
  it("takes what was renamed to checkpoint-N, and never what is still written", function()
    local _, data = library.shipped "adaptdl"
    assert.same({ "checkpoint-{step}/" }, data.unit)
    assert.same({ "_checkpoint/", "_checkpoint.*/" }, data.exclude)
    assert.is_nil(data.sync)
  end)

  it("keeps the two newest restarts, or as many as it is told", function()
    local M = library.shipped "adaptdl"
    assert.same("c3 c4", (library.kept(M, library.items(4))))
    M = library.shipped("adaptdl", { keep = "1" })
    assert.same("c4", (library.kept(M, library.items(4))))
  end)

  it("brings back the newest alone: AdaptDL loads the highest number that it finds", function()
    local M = library.shipped "adaptdl"
    assert.same("c4", (library.kept(M, library.items(4), "restore")))
  end)
end)
