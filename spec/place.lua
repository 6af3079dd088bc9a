--- What specs share that run the real program in a directory of their own.
local assert = require "luassert"
local support = require "support"

local place = {}

local dir

--- Makes the test's directory, or takes the one that was made; returns it.
function place.begin(made)
  dir = made or support.directory()
  return dir
end

--- Runs a shell command there; returns what it printed (both streams) and its exit code.
function place.sh(command) return support.sh(("cd '%s' && { %s\n}"):format(dir, command)) end

--- The same of ckpt-lua; and where it has to end well, what it printed.
function place.ckpt(args) return place.sh(("'%s' %s"):format(support.runner, args)) end

function place.must(args)
  local text, code = place.ckpt(args)
  assert.are.equal(0, code, text)
  return text
end

--- The text with the test's directory for each "@/", the runner for CKPT.
function place.at(text)
  return (text:gsub("@/", dir .. "/"):gsub("CKPT%f[%s]", support.runner))
end

--- Is there such a file?
function place.there(path) return support.read(dir .. "/" .. path) ~= nil end

function place.has(text, part)
  assert.is_truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

function place.lacks(text, part)
  assert.is_nil(text:find(part, 1, true), ("%q is in:\n%s"):format(part, text))
end

--- Complete checkpoints below `where`, as a framework leaves them.
function place.save(where, ...)
  for _, n in ipairs { ... } do
    place.sh(("mkdir -p %s/checkpoint-%d; echo weights %d >%s/checkpoint-%d/model.bin; " ..
      "echo '{}' >%s/checkpoint-%d/trainer_state.json; sleep 0.02")
      :format(where, n, n, where, n, where, n))
  end
end

--- False, and the test is pending, where this command fails.
function place.needs(what)
  local text, code = support.sh(what)
  if code ~= 0 then
    require("busted").pending(("not on this machine: %s: %s"):format(what, text))
  end
  return code == 0
end

return place
