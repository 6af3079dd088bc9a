-- exclude: answer
-- More globs than one checkpoint may be saved without.
return {
  api = 1,
  exclude = function()
    local globs = {}
    for i = 1, 10000 do globs[i] = "file-" .. i end
    return globs
  end,
}
