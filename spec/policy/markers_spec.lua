package.path = "./spec/policy/?.lua;" .. package.path
local library = require "library"

describe("policies/markers.lua", function()
  it("names Ray's two markers, and nothing else", function()
    local M, data = library.shipped "markers"
    assert.same({ null = ".null_marker", temp = ".temp_marker" }, data.markers)
    assert.same({}, data.has)
    assert.is_nil((M.ask("sync", library.event())))
  end)
end)
