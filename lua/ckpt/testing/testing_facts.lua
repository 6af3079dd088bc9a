--- What a policy is handed, made out of the few facts that a test is about.

jit.off(true, true)
local source = require "ckpt.base.clock"
local misuse = require "ckpt.base.misuse"

local facts = {}

-- The clock on the wall of a test is that of UTC.
local function localtime(now)
  local t = os.date("!*t", math.floor(now))
  return {
    year = t.year, month = t.month, day = t.day, hour = t.hour, minute = t.min, second = t.sec,
    weekday = (t.wday + 5) % 7 + 1, offset = 0,
  }
end

-- What there is of an event (docs/policies.md), and of a checkpoint in a list.
local EVENT = [[ event now localtime run group grace checkpoint result results since queue store
  error suspect job saves ]]
local ITEM = [[ number name dir step time age files bytes metrics kind newest pinned durable
  suspect left_out ]]

-- A fact that there is none would be a test of nothing.
local function check_names(t, known, what)
  if type(t) ~= "table" then misuse(("%s: a table of facts, not %s"):format(what, type(t))) end
  for k in pairs(t) do
    if not known:find("%s" .. tostring(k) .. "%s") then
      misuse(("%s: there is no %s: those that there are: %s"):format(what, tostring(k),
        (known:gsub("%s+", " "))))
    end
  end
end

-- Tables of `more` are laid over those of `t`.
local function lay(t, more)
  for k, v in pairs(more) do
    if type(v) == "table" and type(t[k]) == "table" and k ~= "metrics" then
      lay(t[k], v)
    else
      t[k] = v
    end
  end
  return t
end

--- Makes what `ready`, `sync` and `queue` are handed: the first checkpoint of a run is complete, no
--- result came, nothing is saved or waits.
---@param more? table the facts that are others: { event = "result", checkpoint = { step = 5 } }
---@return table
function facts.event(more)
  more = more or {}
  check_names(more, EVENT, "testing.event")
  local now = more.now or source.now()
  local step = more.checkpoint and more.checkpoint.step or 1
  return lay({
    event = "complete", now = now, localtime = localtime(now), run = "test", group = "",
    checkpoint = {
      name = "checkpoint-" .. step, path = "checkpoint-" .. step, step = step, bytes = 1000000,
      files = 1, kind = "perm", names = { "model.bin" }, age = 0, in_place = false,
      generation = 0, reason = "it is told to be complete",
    },
    results = 0, since = { results = 0, checkpoints = 1, bytes = 1000000 },
    queue = { waiting = 0, running = false }, store = { commits = 0 },
    job = { seconds = 0 }, saves = { spent = 0 },
  }, more)
end

--- Makes what `keep` is handed, the oldest first: an hour apart, with the steps 1, 2, 3, ...
---@param list table[]|integer for each the facts that are others; or how many
---@return table[]
function facts.checkpoints(list)
  if type(list) == "number" then
    local given = list
    list = {}
    for i = 1, given do list[i] = {} end
  elseif type(list) ~= "table" then
    misuse(("testing.checkpoints: a list of tables or a number, not %s"):format(type(list)))
  end
  local out, now = {}, source.now()
  for i, more in ipairs(list) do
    check_names(more, ITEM, "testing.checkpoints")
    local step = more.step or i
    local name = more.name or "checkpoint-" .. step
    out[i] = lay({
      number = i, name = name, dir = name, step = step, time = now - (#list - i) * 3600,
      age = (#list - i) * 3600, files = 1, bytes = 1000000, kind = "perm", newest = i == #list,
      pinned = false, durable = true,
    }, more)
  end
  return out
end

return facts
