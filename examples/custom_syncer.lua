-- A syncer of your own: directories go to another machine by tar and ssh, and come back. It is a
-- table of three functions that each start a program; period, timeout, retries and the queue of
-- one come from ckpt.BackgroundSyncer.
--
-- Run: ckpt-lua exec examples/custom_syncer.lua DIRECTORY ssh://HOST/PATH
-- $RSH is what reaches the other machine ("ssh").

local ckpt = require "ckpt"

local RSH = os.getenv("RSH") or "ssh"

-- "ssh://host/path" as a host, and a path that the shell there reads as one word.
local function place(uri)
  local host, path = uri:match("^ssh://([^/]+)(/.+)$")
  if not host then return nil, uri .. " is not ssh://HOST/PATH", "EINVAL" end
  return host, "'" .. path:gsub("'", "'\\''") .. "'"
end

-- Runs a pipe of the shell, whose $1, $2, ... are the words.
local function pipe(script, stdin, ...)
  return ckpt.job.command({ "bash", "-o", "pipefail", "-c", script, "sync", ... },
    { stdin = stdin })
end

local syncer = ckpt.BackgroundSyncer {
  sync_period = 60,
  sync_timeout = 600,

  sync_up_command = function(_, local_dir, remote_dir, exclude)
    local host, path, name = place(remote_dir)
    if not host then return nil, path, name end
    local entries, text
    entries, text, name = ckpt.fs.walk(local_dir)
    if not entries then return nil, text, name end
    local names = {}
    for _, entry in ipairs(entries) do
      if not ckpt.fs.excluded(exclude or {}, entry.path) then
        names[#names + 1] = "./" .. entry.path .. "\0"
      end
    end
    return pipe('tar -C "$1" --null --no-recursion -T - -c | "$2" "$3" "$4"', table.concat(names),
      local_dir, RSH, host, ("mkdir -p %s && tar -C %s -x"):format(path, path))
  end,

  sync_down_command = function(_, remote_dir, local_dir)
    local host, path, name = place(remote_dir)
    if not host then return nil, path, name end
    return pipe('mkdir -p "$1" && "$2" "$3" "$4" </dev/null | tar -C "$1" -x', nil,
      local_dir, RSH, host, ("tar -C %s -c ."):format(path))
  end,

  delete_command = function(_, remote_dir)
    local host, path, name = place(remote_dir)
    if not host then return nil, path, name end
    return ckpt.job.command { RSH, host, "rm -rf " .. path }
  end,

  validate_upload_dir = function(_, uri)
    assert(place(uri))
    return true
  end,
}

-- What it is good for: Ray Tune's configuration takes it as it is.
local from, to = assert(arg[1], "which directory?"), assert(arg[2], "where to?")
local config = ckpt.SyncConfig { upload_dir = to, syncer = syncer }
assert(config:validate_upload_dir())
local uploads = ckpt.get_node_to_storage_syncer(config)

local tries, seconds = ckpt.DefaultSyncer.cloud_retries() -- the user's, or 3 and 1 s
uploads:sync_up_if_needed(from, to, { "*.tmp" })
while uploads:is_running() do ckpt.clock.sleep(0.01) end -- the training would go on here
assert(uploads:wait_or_retry(tries, seconds))
print("uploaded " .. from)

uploads:sync_down(to, from .. ".copy")
assert(uploads:wait_or_retry(tries, seconds))
print("downloaded to " .. from .. ".copy")

uploads:delete(to)
assert(uploads:wait_or_retry(tries, seconds))
print("deleted " .. to)
