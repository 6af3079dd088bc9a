--- What specs of copies share: files below a directory, and the paths of what is there.

local fs = require("ckpt").fs

local files = {}

--- Writes a file, and the directories that it lies in. Its path is its text unless one is given.
function files.put(dir, path, text)
  assert(fs.mkdirs(fs.parent(dir .. "/" .. path)))
  assert(fs.write(dir .. "/" .. path, text or path))
end

--- The paths below a directory; none where it is not there.
function files.paths(dir)
  local list = {}
  for i, entry in ipairs(fs.walk(dir) or {}) do list[i] = entry.path end
  return list
end

--- The paths below a directory that is there, those of directories with a slash.
function files.names(dir)
  local list = {}
  for i, entry in ipairs(assert(fs.walk(dir))) do
    list[i] = entry.path .. (entry.type == "directory" and "/" or "")
  end
  return list
end

return files
