---@meta
-- luacheck: ignore 212 241

-- Types of the functions that are written in C, for editors. Nothing here is ever run; each section
-- describes one part of `ckpt.core`, which a module of the same name hands on.

-- ---- fs ----

--- The part of `ckpt.fs` that comes from C.
---@class ckpt.core.fs
local fs = {}

--- Returns the content of a file.
---@param path string
---@param max? integer bytes; 64 MiB; more is "ELIMIT", never a cut
---@return string? data
---@return string? text
---@return string? name
function fs.read(path, max) end

--- Replaces a file whole, durably: a reader, and a crash, see the old or the new content.
---@param path string
---@param data string
---@param mode? integer 0666, less the umask
---@return true?
---@return string? text
---@return string? name
function fs.write(path, data, mode) end

--- Makes a file with its whole content, durably. Of many who try one wins.
---@param path string
---@param data string
---@param mode? integer 0666, less the umask
---@return true?
---@return string? text
---@return string? name "EEXISTS"
function fs.write_new(path, data, mode) end

--- Looks at the file that a path leads to.
---@param path string
---@return ckpt.Stat?
---@return string? text
---@return string? name
function fs.stat(path) end

--- Looks at the path itself; of a link, the link.
---@param path string
---@return ckpt.Stat?
---@return string? text
---@return string? name
function fs.lstat(path) end

--- Tells whether it leads to something that can be looked at.
---@param path string
---@return boolean
function fs.exists(path) end

---@param path string
---@return string? target
---@return string? text
---@return string? name
function fs.readlink(path) end

---@param target string
---@param path string
---@return true?
---@return string? text
---@return string? name
function fs.symlink(target, path) end

---@param path string a file that can be opened, or what a link leads to
---@param mode integer
---@return true?
---@return string? text
---@return string? name
function fs.chmod(path, mode) end

--- Sets the time of the last change.
---@param path string
---@param seconds number since 1970
---@return true?
---@return string? text
---@return string? name
function fs.utime(path, seconds) end

--- Removes a file or a link.
---@param path string
---@return true?
---@return string? text
---@return string? name
function fs.remove(path) end

--- Makes a directory and all above it, durably.
---@param path string
---@param mode? integer 0777, less the umask
---@return true?
---@return string? text
---@return string? name
function fs.mkdirs(path, mode) end

--- Lists the names in a directory, by bytes.
---@param dir string
---@return string[]?
---@return string? text
---@return string? name
function fs.list(dir) end

--- Renames as rename(2): a file, or an empty directory, that is at `to` is replaced. Not flushed.
---@param from string
---@param to string
---@return true?
---@return string? text
---@return string? name
function fs.rename(from, to) end

--- Gives a finished file or tree its name in one step, durably.
---@param from string flushed by its maker
---@param to string
---@return true?
---@return string? text
---@return string? name "EEXISTS"; "EUNSUPPORTED": another file system
function fs.publish(from, to) end

--- Puts a finished file or tree in the place of the one at `to`, and removes that.
---@param from string flushed by its maker
---@param to string
---@return true?
---@return "published"|"exchanged"|"stepped aside"|string # how; else the error's text
---@return string? name
function fs.replace_tree(from, to) end

--- Removes a file or a tree. If it is gone already, that is no error.
---@param path string
---@return true?
---@return string? text
---@return string? name
function fs.remove_tree(path) end

--- Copies a file. One that is written meanwhile gives a mixture; with `live`, what it had when it
--- was opened (it may grow), or ERETIRED if that was rewritten.
---@param from string a regular file, not a link
---@param to string absent
---@param options? { flush?: boolean, live?: boolean }
---@return true?
---@return string? text
---@return string? name
function fs.copy_file(from, to, options) end

--- Copies a tree, a file or a link with modes and times. Nothing stays after a failure.
---@param from string
---@param to string absent
---@param options? ckpt.CopyOptions
---@return true?
---@return string? text
---@return string? name
function fs.copy_tree(from, to, options) end

--- Makes a file, or the names in a directory, durable.
---@param path string
---@return true?
---@return string? text
---@return string? name
function fs.sync(path) end

--- Makes all of a tree durable, but for its own name.
---@param dir string
---@return true?
---@return string? text
---@return string? name
function fs.sync_tree(dir) end

--- Returns the path without links.
---@param path string
---@return string?
---@return string? text
---@return string? name
function fs.real(path) end

--- Returns the working directory.
---@return string?
---@return string? text
---@return string? name
function fs.cwd() end

--- Returns the bytes of the file system that a path is on; `available`: to this user.
---@param path string
---@return { total: number, free: number, available: number }?
---@return string? text
---@return string? name
function fs.space(path) end

-- ---- lock ----

---@class ckpt.core.lock
---@field try fun(path: string, shared: boolean): userdata?, string?, string?
---@field drop fun(lock: userdata)

-- ---- digest ----

---@class ckpt.core.digest
---@field of fun(data: string, kind?: ckpt.DigestKind): string?, string?, string?
---@field begin fun(kind?: ckpt.DigestKind): userdata?, string?, string?
---@field add fun(digest: userdata, data: string): true?, string?, string?
---@field finish fun(digest: userdata): string?, string?, string?
---@field file fun(path: string, kind?: ckpt.DigestKind): string?, string?, string?

-- ---- log ----

---@class ckpt.core.log
---@field next fun(): ckpt.LogLevel?, string? the oldest line that the engine has said

-- ---- store ----

---@class ckpt.core.store
---@field schemes string[] those of the engine
---@field open fun(uri: string): userdata?, string?, string? with the methods of ckpt.Store

-- ---- job ----

---@class ckpt.core.TreeOptions
---@field kind "upload"|"download"|"delete"|"copy"
---@field dir? string
---@field uri? string
---@field to? string
---@field exclude? string[]
---@field merge? boolean

---@class ckpt.core.Over
---@field job number
---@field status string "OK", "EIO", ...
---@field reason? string
---@field files number
---@field bytes number
---@field seconds number

---@class ckpt.core.job
---@field start fun(options: ckpt.core.TreeOptions): number?, string?, string?
---@field dispatch fun(milliseconds: integer): ckpt.core.Over[]?, string?, string? -1: no limit
---@field cancel fun(job: number): true?, string?, string? its end still follows
---@field progress fun(job: number): number?, number|string|nil, string? done, of how many

-- ---- tar ----

---@class ckpt.core.UnpackOptions
---@field dir string
---@field file string
---@field bytes_max? number
---@field entries_max? number

---@class ckpt.core.tar
---@field pack fun(options: { dir: string, file: string }): true?, string?, string?
---@field unpack fun(options: ckpt.core.UnpackOptions): true?, string?, string?

-- ---- command ----

--- A program that was started.
---@class ckpt.core.Program: userdata
---@field pid fun(self): integer
---@field turn fun(self, seconds?: number): boolean?, string?, string? takes in what there is; waits
---  no longer than that for it; whether there was something
---@field ended fun(self): integer|false|nil, string?, boolean? nil: it runs; its exit code, the
---  name of the signal that killed it, whether nobody prints any more who got its outputs from it
---@field output fun(self, from?: number, from_error?: number): string, string, number, number the
---  last bytes of standard output and standard error, and how much either had in all; of each what
---  came after so many bytes
---@field report fun(self): number?, string? a number for the answer, the line; nil: there is none
---@field answer fun(self, number: number, line: string): true?, string?, string?
---@field stop fun(self, seconds: number): boolean asks it and its group to end, and kills it after
---  that time
---@field close fun(self) kills what is left of it and its group

---@class ckpt.core.ProgramPlan
---@field argv string[]
---@field env? string[] changes to the environment: "NAME=value", or "NAME" to take it away
---@field cwd? string
---@field input? string
---@field keep? integer bytes that are kept of each output
---@field socket? string path of the socket that it may report on

---@class ckpt.core.command
---@field start fun(plan: ckpt.core.ProgramPlan): ckpt.core.Program?, string?, string?
