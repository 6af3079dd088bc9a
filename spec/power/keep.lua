-- luacheck: read globals when keep
-- Of what was saved three are kept, so that deletions are cut off by the loss of power, too.
return { api = 1, sync = when.each_checkpoint(), keep = keep.last(3) }
