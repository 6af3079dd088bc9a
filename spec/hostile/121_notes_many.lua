-- load: ok memory budget answer syntax error
-- Words, very many.
for i = 1, 100000 do note(("note %d"):format(i) .. ("x"):rep(100)) end
return { api = 1 }
