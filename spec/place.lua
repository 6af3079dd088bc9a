--- What specs share that run the real program in a directory of their own.
local assert = require "luassert"
local json = require "cjson"
local support = require "support"

local place = {}

local dir

--- Makes the test's directory, or takes the one that was made; returns it.
function place.begin(made)
  dir = made or support.directory()
  return dir
end

--- The same in memory, where there is such a place: very many files are too much for a slow disk.
function place.begin_in_memory()
  return place.begin(
    support.sh("mktemp -d -p /dev/shm 2>/dev/null || mktemp -d -p /var/tmp"):match "%S+")
end

--- Each test of this block begins with such a directory, of which `begin` is told.
function place.with_directory(begin) support.with_directory(begin, place.begin) end

--- Runs a shell command there; returns what it printed (both streams) and its exit code.
function place.sh(command) return support.sh(("cd '%s' && { %s\n}"):format(dir, command)) end

--- The same of a command that has to end with this exit code: what it printed.
function place.sh_ends(code, command)
  local text, got = place.sh(command)
  assert.are.equal(code, got, command .. "\n" .. text)
  return text
end

--- The same of ckpt-lua; where it has to end with this exit code; and where it has to end well.
function place.ckpt(args) return place.sh(("'%s' %s"):format(support.runner, args)) end

function place.says(code, args)
  return place.sh_ends(code, ("'%s' %s"):format(support.runner, args))
end

function place.must(args) return place.says(0, args) end

--- Builds a C file of these specs as a library in the test's directory; returns what stands before
--- a command that is to be loaded with it.
function place.preload(source)
  local name = source:match "([%w_]+)%.c$"
  place.sh_ends(0, ("cc -shared -fPIC -D_GNU_SOURCE -o %s.so '%s/%s' -ldl")
    :format(name, support.root, source))
  return ("LD_PRELOAD='%s/%s.so' ASAN_OPTIONS=\"$ASAN_OPTIONS:verify_asan_link_order=0\"")
    :format(dir, name)
end

--- What ckpt-lua printed, its exit code, and what it said on standard error. `environment` is set
--- for it: "NAME=value ...".
function place.apart(args, environment)
  local text, code = place.sh(("{ env %s '%s' %s\n} 2>err.txt")
    :format(environment or "", support.runner, args))
  return text, code, support.read(dir .. "/err.txt")
end

--- What it printed and what it said on standard error. It has to end with this exit code.
function place.ends(code, args, environment)
  local text, got, err = place.apart(args, environment)
  assert.are.equal(code, got, args .. "\n" .. err)
  return text, err
end

--- One decoded object for each line of what was printed with --json.
function place.objects(text)
  local list = support.lines(text)
  for i, line in ipairs(list) do list[i] = json.decode(line) end
  return list
end

--- A shell command that has to end well; what it printed.
function place.must_sh(command) return place.sh_ends(0, command) end

--- What ckpt-lua printed, its exit code, and the largest that any process of it was, in MiB. A
--- limit of address space (a sanitizer maps more than any) keeps a failure from taking the machine.
function place.measured(args, environment)
  local out = place.sh(("%s python3 -c '%s' %d '%s' %s"):format(environment or "", [[
import resource, subprocess, sys
most = int(sys.argv[1]) << 30 or resource.RLIM_INFINITY
code = subprocess.call(sys.argv[2:], preexec_fn=lambda: resource.setrlimit(
    resource.RLIMIT_AS, (most, most)))
print("\nmeasured", code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)]],
    support.sanitized and 0 or 6, support.runner, args))
  local text, code, mib = out:match "^(.*)\nmeasured (%d+) (%d+)"
  assert(text, out)
  return text, tonumber(code), tonumber(mib)
end

--- What ckpt-lua printed. It has to end well, and no process of it may take `most` MiB.
function place.within(most, args)
  local text, code, mib = place.measured(args)
  assert(code == 0, ("%s: %s"):format(args, text:sub(-2000)))
  print(("# %s: %s MiB"):format(args, mib))
  assert(support.sanitized or mib < most, ("%s: %s MiB"):format(args, mib))
  return text
end

--- Runs a script of the shell there in the background. What it says goes to out.log and err.log,
--- and at its end its exit code to rc.
function place.background(script)
  os.remove(dir .. "/rc")
  support.write(dir .. "/background.sh", script)
  os.execute(("cd '%s' && { sh background.sh >out.log 2>err.log </dev/null; echo $? >rc.new; " ..
    "mv rc.new rc; } &"):format(dir))
end

--- Waits for its end: its exit code, and what it said on standard error.
function place.ended()
  local code = support.await("the end", function() return support.read(dir .. "/rc") end)
  return tonumber(code), support.read(dir .. "/err.log")
end

--- Waits for a file that it writes; an end before that tells why.
function place.await_file(name)
  support.await(name, function()
    if place.there(name) then return true end
    if not place.there "rc" then return false end
    error("it ended too early: " .. support.read(dir .. "/err.log"))
  end)
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

--- Complete checkpoints below `where`, as a framework leaves them, older than any quiet time.
function place.save(where, ...)
  for _, n in ipairs { ... } do
    place.sh(("mkdir -p %s/checkpoint-%d; echo weights %d >%s/checkpoint-%d/model.bin; " ..
      "echo '{}' >%s/checkpoint-%d/trainer_state.json; sleep 0.02")
      :format(where, n, n, where, n, where, n))
  end
end

--- Where the checkpoints of a store are, in the order of its log, in one line.
function place.listed(store, more)
  local names = place.objects((place.apart(("ls --json '%s' %s"):format(store, more or ""))))
  for i, row in ipairs(names) do names[i] = row.dir end
  return table.concat(names, " ")
end

--- Puts the next entry into a store's log, as a writer of the newest term that is gone: its number.
---@param fields string the members between the term and the entry's number
function place.leave_entry(store, kind, fields)
  local log = store .. "/.ckpt/log"
  local n = tonumber((place.sh("ls " .. log .. " | wc -l")))
  local terms = place.sh(("grep -l '\"type\":\"term\"' %s/*"):format(log))
  local term = terms:match "(%d+)%.json\n?$"
  support.write(("%s/%s/%020d.json"):format(dir, log, n),
    ('{"type":"%s","term":%d,%s,"n":%d,"nonce":"%032x","time_ns":1}')
      :format(kind, tonumber(term), fields, n, n))
  return n
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
