--- What Ray 2.4.0's background syncer does, as a state machine on numbers. With no switches it says
--- what the recordings say; each switch changes one thing as section G of the contract has it, so
--- that what we answer can be told from what Ray answered, item by item.
---
--- Switches: [165] [170] [174] [180] = true.

local model = {}

local function title(command)
  if command.kind == "up" then return "sync up of /l to u" end
  if command.kind == "down" then return "sync down of u to /l" end
  return "deletion of u"
end

local function say(m, ...) m.trace[#m.trace + 1] = { ... } end

local function launch(m, command)
  local planned = table.remove(m.plan, 1) or { "ok", 0 }
  m.command = command
  say(m, "launch", command.kind, command.exclude)
  m.process = {
    start = m.now, ends = m.now + planned[2], fails = planned[1] == "fail",
  }
end

local function running(m) return m.process ~= nil and m.now < m.process.ends end

-- wait() of one process: its failure as { kind, text }.
local function collect(m)
  local process = m.process
  m.process = nil
  local left = m.timeout ~= 0 and math.max(m.timeout - (m.now - process.start), 0) or math.huge
  if m.now + left < process.ends then
    m.now = m.now + left
    return { "TimeoutError",
      ("cmd did not finish running within the timeout of %s seconds"):format(m.timeout) }
  end
  m.now = math.max(m.now, process.ends)
  if process.fails then return { "TuneError", "Sync process failed: boom", "RuntimeError" } end
end

local function settle(m)
  local failure = m.process and collect(m)
  if failure then say(m, "WARNING", "Last sync command failed: " .. failure[2]) end
end

local function busy(m) return running(m) and m.now - m.process.start < m.timeout end

local function launch_waiting(m)
  local waiting = m.waiting
  m.waiting = nil
  if waiting.clock then m[waiting.clock] = m.now end
  launch(m, waiting.command)
end

local function request(m, command)
  if m.waiting and not busy(m) then
    settle(m)
    launch_waiting(m)
  end
  if busy(m) then
    local waits = m.switches[174] and command.kind == "up"
    local text = waits and "%s has to wait" or "skipping %s"
    say(m, "WARNING", "Last sync still in progress, " .. text:format(title(command)))
    if waits then
      if m.waiting and title(m.waiting.command) ~= title(command) then
        say(m, "WARNING", title(m.waiting.command)
          .. " will not run: a newer request took its place")
      end
      m.waiting = { command = command }
    end
    return false
  end
  settle(m)
  launch(m, command)
  return true
end

local function wait(m)
  if not m.switches[174] then return m.process and collect(m) end
  while m.process or m.waiting do
    local failure
    if m.process then failure = collect(m) else launch_waiting(m) end
    if failure then return failure end
  end
end

local function retry(m)
  if not m.command then return { "TuneError", "No sync command set, cannot retry." } end
  if m.switches[180] and running(m) then settle(m) end
  launch(m, m.command)
end

local function if_needed(m, clock, command)
  local now = m.now
  if now - m[clock] < m.period then return nil end
  local launched = request(m, command)
  if launched or not m.switches[165] then m[clock] = now end
  if launched == false and m.waiting and command.kind == "up" then m.waiting.clock = clock end
  return launched
end

local OPS = {}

function OPS.up(m, e) return request(m, { kind = "up", exclude = e.exclude }) end
function OPS.down(m) return request(m, { kind = "down" }) end
function OPS.delete(m) return request(m, { kind = "delete" }) end
function OPS.up_if(m, e)
  return if_needed(m, "last_up", { kind = "up", exclude = e.exclude })
end
function OPS.down_if(m) return if_needed(m, "last_down", { kind = "down" }) end
function OPS.wait(m) return nil, wait(m) end
function OPS.retry(m) return nil, retry(m) end
function OPS.reset(m) m.last_up, m.last_down = -math.huge, -math.huge end
function OPS.advance() end

function OPS.wait_or_retry(m, e)
  if e.max_retries <= 0 then return nil, { "AssertionError", "" } end
  for try = 1, e.max_retries do
    local failure = wait(m)
    if not failure then return nil end
    local given_up = { "TuneError", ("Failed sync even after %d retries."):format(e.max_retries),
      failure[1] }
    if try == e.max_retries and m.switches[170] then return nil, given_up end
    say(m, "ERROR", ("Caught sync error: %s. Retrying after sleeping for %s seconds...")
      :format(failure[2], e.backoff_s))
    say(m, "sleep", e.backoff_s)
    m.now = m.now + e.backoff_s
    local unable = retry(m)
    if unable then return nil, unable end
    if try == e.max_retries then return nil, given_up end
  end
end

--- Plays a trace; returns one record for each of its events.
---@param trace { config: table, events: table[] }
---@param switches table<integer, true>
function model.play(trace, switches)
  local m = {
    now = 1000, plan = {}, switches = switches, last_up = -math.huge, last_down = -math.huge,
    period = trace.config.sync_period, timeout = trace.config.sync_timeout,
  }
  local steps = {}
  for i, event in ipairs(trace.events) do
    m.now = m.now + (event.dt or 0)
    if event.plan then
      m.plan = {}
      for k, entry in ipairs(event.plan) do m.plan[k] = entry end
    end
    m.trace = {}
    local answer, exception = OPS[event.op](m, event)
    steps[i] = {
      answer = answer, exception = exception, trace = m.trace, now = m.now,
      has_process = m.process ~= nil, running = running(m),
      last_up = m.last_up, last_down = m.last_down,
    }
  end
  return steps
end

return model
