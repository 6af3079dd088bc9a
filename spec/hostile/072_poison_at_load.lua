-- load: error syntax
-- While the file runs, too.
string.format = nil
return { api = 1 }
