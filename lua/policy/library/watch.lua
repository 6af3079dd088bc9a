--- What a function of a policy reads of what it is handed, while `policy check` tries it.
---
--- A field that no fact ever has is an error at the line that reads it, once: the next time that
--- line gets nil, so that what stands behind it is seen, too. What the clock says is handed out by
--- a look alone, so that the look is seen; so are the numbers that a job may report.
local M = ...

local pairs, rawset, setmetatable, type = pairs, rawset, setmetatable, type
local format, gmatch = string.format, string.gmatch

local function set_of(names)
  local out = {}
  for name in gmatch(names, "%S+") do out[name] = true end
  return out
end

-- What there may be (docs/policies.md).
local FIELDS = {
  e = set_of [[event now localtime run group grace checkpoint result results since queue store
    error suspect list job saves]],
  ["e.localtime"] = set_of "year month day hour minute second weekday offset change",
  ["e.localtime.change"] = set_of "after offset",
  ["e.checkpoint"] = set_of [[name path step bytes files kind names age metrics in_place generation
    reason]],
  ["e.since"] = set_of "results seconds checkpoints bytes",
  ["e.job"] = set_of "seconds left",
  ["e.saves"] = set_of "seconds spent",
  ["e.queue"] = set_of "waiting running",
  ["e.store"] = set_of "commits",
  ["e.error"] = set_of "code class text tries",
  ["a checkpoint of the list"] = set_of [[number name dir step time age files bytes metrics kind
    newest pinned durable suspect left_out]],
}

-- What passes by itself: a rule that looks at it has to say when it is to be asked again.
local CLOCKS = {
  e = set_of "now localtime",
  ["e.checkpoint"] = set_of "age",
  ["e.since"] = set_of "seconds",
  ["e.job"] = set_of "seconds left",
}

local forgiven = {}
local seen

--- Begins a question; returns what is read in it: `clock`, the line that looked at the clock first,
--- and of `metrics` and `results` each name with its line.
function M.watch_begin()
  seen = { metrics = {}, results = {} }
  return seen
end

local function unknown(title, known, k)
  local where = M.where()
  local key = format("%s %s %s", where, title, M.show(k))
  if forgiven[key] then return nil end
  forgiven[key] = true
  local text = "%s: %s has no %s%s"
  M.fail("answer", format(text, where, title, M.show(k), M.did_you_mean(k, known)))
end

-- `hidden`: values that are only given to who looks at them.
local function watch_fields(t, title)
  local known, clocks, hidden = FIELDS[title], CLOCKS[title] or {}, {}
  for k in pairs(clocks) do
    hidden[k], t[k] = t[k], nil
  end
  setmetatable(t, {
    __metatable = false,
    __index = function(_, k)
      if known[k] == nil and type(k) == "string" then return unknown(title, known, k) end
      if clocks[k] and not seen.clock then seen.clock = M.where() end
      return hidden[k]
    end,
    __newindex = function(_, k, v)
      hidden[k] = nil
      rawset(t, k, v)
    end,
  })
end

-- `made_up`: the number that each name has.
local function watch_numbers(t, noted, made_up)
  setmetatable(t, {
    __metatable = false,
    __index = function(_, k)
      if type(k) ~= "string" then return nil end
      noted[k] = noted[k] or M.where()
      return made_up
    end,
  })
end

--- Returns what each number is in a trial; nil: there are none.
---@param trial table
---@return number?
function M.made_up(trial)
  if trial.numbers ~= true then return nil end
  return trial.nan and 0 / 0 or 0.5
end

local function watch_table(t, title, made_up)
  for k, v in pairs(t) do
    local inner = title .. "." .. k
    if k == "metrics" and type(v) == "table" then
      watch_numbers(v, seen.metrics, made_up)
    elseif k == "result" and type(v) == "table" then
      watch_numbers(v, seen.results, made_up)
    elseif type(v) == "table" and FIELDS[inner] then
      watch_table(v, inner, made_up)
    end
  end
  watch_fields(t, title)
end

--- Watches the copy that a function is handed: of the event, or of one item of its list.
---@param t table
---@param is_event boolean
---@param made_up? number what each number is that it could ask for; nil: none is there
function M.watch(t, is_event, made_up)
  watch_table(t, is_event and "e" or "a checkpoint of the list", made_up)
  if not is_event or type(t.list) ~= "table" then return end
  for k, item in pairs(t.list) do
    if type(k) == "number" and type(item) == "table" then M.watch(item, false, made_up) end
  end
end
