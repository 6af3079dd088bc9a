--- The library's log: one sink for its own lines and for those of its engines.
---
--- A text is kept in one piece: control characters other than line ends and tabs, those that turn
--- the direction of what is read, and bytes that are not UTF-8 are shown as "?", one for each byte,
--- so that the name of a file cannot drive a terminal, or show as another.

jit.off(true, true)
local core = require "ckpt.core"
local misuse = require "ckpt.base.misuse"

---@alias ckpt.LogLevel "debug"|"info"|"warning"|"error"
---@alias ckpt.LogSink fun(level: ckpt.LogLevel, text: string)

---@class ckpt.log
local log = {}

local RANKS = { debug = 1, info = 2, warning = 3, error = 4 }

--- The sink that is there at first: standard error. Later lines of a text are indented, or a text
--- could pass for two.
---@param level ckpt.LogLevel
---@param text string
local function to_stderr(level, text)
  io.stderr:write("ckpt: ", level, ": ", (text:gsub("\n", "\n  ")), "\n")
end

local sink = to_stderr
local least = "info"

local function clean(text)
  return (text:gsub("[^\n\t]+", core.log.plain))
end

local function hand_over(level, text)
  if RANKS[level] >= RANKS[least] then sink(level, clean(text)) end
end

--- Hands over the lines that engines have logged meanwhile. Jobs and the functions below do it.
function log.flush()
  local level, text = core.log.next()
  while level do
    hand_over(level, text)
    level, text = core.log.next()
  end
end

local function say(level, text, ...)
  if type(text) ~= "string" then misuse("the text to log is a " .. type(text)) end
  if select("#", ...) > 0 then text = text:format(...) end
  log.flush()
  hand_over(level, text)
end

--- These take a text; with more arguments it is a format, as for string.format.
---@param text string
---@param ... any
function log.debug(text, ...) say("debug", text, ...) end

---@param text string
---@param ... any
function log.info(text, ...) say("info", text, ...) end

---@param text string
---@param ... any
function log.warn(text, ...) say("warning", text, ...) end

---@param text string
---@param ... any
function log.error(text, ...) say("error", text, ...) end

--- Puts another sink in place; nil: standard error again.
---@param other? ckpt.LogSink
---@return ckpt.LogSink # the one that was there before
function log.use(other)
  if other ~= nil and type(other) ~= "function" then
    misuse("log.use: a sink is a function(level, text), not a " .. type(other))
  end
  local before = sink
  sink = other or to_stderr
  return before
end

--- Returns the least level that reaches the sink ("info" at first); with an argument, sets it.
---@param level? ckpt.LogLevel
---@return ckpt.LogLevel # the one that was there before
function log.level(level)
  if level ~= nil and not RANKS[level] then
    misuse("log.level: unknown level " .. tostring(level)
      .. ": use debug, info, warning or error")
  end
  local before = least
  least = level or least
  return before
end

return log
