-- load: syntax error
-- The same while the file runs.
return { api = 1, sync = when.at_most_every(("1"):rep(60000)) }
