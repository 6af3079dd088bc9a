-- on_committed: answer ok
-- Names that look like commands.
return {
  api = 1,
  on_committed = function() return { "; rm -rf /", "\0", "../../bin/sh" } end,
}
