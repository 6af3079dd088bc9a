local library = require "policy.rules"
local event, items = library.event, library.items

local function chain(a, b, settings)
  local wrap = function(text) return "return { api = 1, " .. (text or "") .. " }" end
  return library.load({ { "a", wrap(a) }, { "b", wrap(b) } }, settings)
end

describe("a chain", function()
  it("takes what is data from the first policy that sets it", function()
    local _, data = chain(
      "unit = 'a/', queue = 'all', markers = { null = 'n' }",
      "unit = 'b/', queue = 'skip', complete = done.closed(), metrics = from.notify(), with = 'w'"
    )
    assert.same({ "a/" }, data.unit)
    assert.equal("all", data.queue)
    assert.same({ null = "n" }, data.markers)
    assert.same({ done = "closed" }, data.complete)
    assert.same({ { from = "notify" } }, data.metrics)
    assert.same({ "w" }, data.with)
    assert.same({}, data.has)
  end)

  it("unites excludes, each once", function()
    local _, data = chain("exclude = { 'x', 'y' }", "exclude = { 'y', 'z' }")
    assert.same({ "x", "y", "z" }, data.exclude)
  end)

  it("leaves out what nobody sets", function()
    local _, data = chain("", "")
    assert.same({ few = true, has = {}, notes = {}, options = {}, warnings = {} }, data)
  end)

  it("names who has to be asked", function()
    local _, data = chain("sync = when.each_checkpoint(), keep = keep.all()", "keep = keep.all()")
    assert.same({ sync = { "a" }, keep = { "a", "b" } }, data.has)
  end)

  it("goes on to the next policy when a function returns nothing", function()
    local M = chain("sync = function() end", "sync = function() return 'skip', 'b says so' end")
    local answer, reason, by = M.ask("sync", event())
    assert.same({ "skip", "b says so", "b" }, { answer, reason, by })
    M = chain("sync = function() end", "sync = function() end")
    assert.is_nil((M.ask("sync", event())))
    M = chain("sync = function() return 'sync' end", "sync = function() error 'asked' end")
    assert.equal("sync", (M.ask("sync", event())))
  end)

  it("goes on to a word too", function()
    local M, data = chain("queue = function() end", "queue = 'all'")
    assert.is_nil(data.queue)
    assert.same({ "a", "b" }, data.has.queue)
    local answer, _, by = M.ask("queue", event())
    assert.same({ "all", "b" }, { answer, by })
  end)

  it("keeps what any of its policies keeps, and says which", function()
    local M = chain("keep = keep.last(1)", "keep = keep.every_steps(200)")
    local names, rows = library.kept(M, items(5))
    assert.equal("c2 c4 c5", names)
    assert.same({ "b", "a" }, { rows[4].by, rows[5].by })
    assert.same({ "a, b" }, { rows[1].by })
    local _, _, by = M.ask("keep", { list = items(1) })
    assert.equal("a, b", by)
    assert.equal("c1 c5", (library.kept(chain("keep = function() end", [[keep = function(list)
      return { list[1], list[5] }
    end]]), items(5))))
  end)

  it("hands one setting to each policy that has the option", function()
    local text = [[
      local s = options { n = { type = 'integer' } }
      return { api = 1, keep = keep.last(s.n) }
    ]]
    local M, data = library.load({ { "a", text }, { "b", text } }, { n = "2" })
    assert.equal("c2 c3", (library.kept(M, items(3))))
    assert.equal(2, #data.options)
  end)

  it("has each policy once", function()
    local text = "return { api = 1 }"
    local ok, why = pcall(library.load, { { "a", text }, { "a", text } })
    assert.is_false(ok)
    assert.same({ kind = "syntax", text = "the policy a is named twice" }, why)
  end)
end)

describe("an answer", function()
  local function ask(hook, text, more, memory)
    return library.keys(hook .. " = " .. text).ask(hook, event(more), memory)
  end

  it("of ready is true or false, with a reason", function()
    local answer, reason = ask("ready", "function() return false, 'not\\nyet' end")
    assert.same({ false, "not yet" }, { answer, reason })
    assert.is_true((ask("ready", "function() return true end")))
    assert.is_nil((ask("ready", "function() end")))
  end)

  it("of on_error is what is to be done", function()
    local answer, reason = ask("on_error", "function(e) return 'retry', '1m', e.error.code end", {
      error = { code = "EIO" },
    })
    assert.same({ action = "retry", seconds = 60 }, answer)
    assert.equal("EIO", reason)
    answer, reason = ask("on_error", "function() return 'abort', 'enough' end")
    assert.same({ { action = "abort" }, "enough" }, { answer, reason })
    assert.is_nil((ask("on_error", "function() end")))
  end)

  it("of on_preempt and queue is a word", function()
    assert.equal("none", (ask("on_preempt", "function() return 'none' end")))
    assert.equal("all", (ask("on_preempt", "'all'")))
    assert.equal("block", (ask("queue", "function() return 'block' end")))
  end)

  it("of on_committed and on_failed is a list of names", function()
    assert.same({ "mail" }, (ask("on_committed", "function() return { 'mail' } end")))
    assert.same({}, (ask("on_failed", "function() return {} end")))
    assert.is_nil((ask("on_failed", "function() end")))
  end)

  it("that is not in the vocabulary is refused", function()
    for _, row in ipairs {
      { "ready", "'yes'" },
      { "ready", "1" },
      { "ready", "true, {}" },
      { "sync", "'save'" },
      { "sync", "1" },
      { "sync", "{}" },
      { "sync", "true, {}" },
      { "queue", "'newst'" },
      { "queue", "true" },
      { "on_preempt", "{}" },
      { "on_error", "'retry'" },
      { "on_error", "'retry', -1" },
      { "on_error", "'retry', 0/0" },
      { "on_error", "'wait'" },
      { "on_error", "5" },
      { "on_committed", "'mail'" },
      { "on_committed", "{ 5 }" },
      { "on_committed", "{ x = 'mail' }" },
    } do
      local ok, why = pcall(ask, row[1], ("function() return %s end"):format(row[2]))
      assert.is_false(ok, row[1] .. " " .. row[2])
      assert.equal("answer", why.kind)
    end
    local ok, why = pcall(library.keys("").ask, "nonsense", event())
    assert.same({ false, "answer" }, { ok, why.kind })
  end)

  it("has a reason of one line that is not long", function()
    local _, reason = ask("sync", "function() return true, ('x\\n'):rep(500) end")
    assert.equal(200, #reason)
    assert.is_nil(reason:find "%c")
  end)

  it("is the same when a function has written to its event", function()
    local M = chain(
      "sync = any { function(e) e.since.results = 99 e.results = 99 end, when.iterations(5) }",
      ""
    )
    local e = event { results = 1, since = { results = 1 } }
    assert.equal("skip", (M.ask("sync", e)))
    assert.equal(1, e.results)
  end)

  it("is made of what a function took away and what it has not looked at", function()
    local M = library.keys [[sync = function(e, memory)
      e.results, e.now = nil, 7
      local since = e.since
      since.seconds = nil
      memory.e, memory.since, memory.results = e, since, e.results
      return true, tostring(e.results) .. tostring(since.seconds) .. e.now
    end]]
    local since = { seconds = 3, bytes = 4, list = { { x = 1 } } }
    local e = event { results = 1, now = 2, since = since }
    local _, reason, _, memory = M.ask("sync", e)
    local mine = memory.user.mine
    assert.equal("nilnil7", reason)
    assert.same({ bytes = 4, list = { { x = 1 } } }, mine.since)
    assert.same(mine.since, mine.e.since)
    assert.equal(7, mine.e.now)
    assert.equal(e.event, mine.e.event)
    assert.is_nil(mine.e.results)
    mine.e.since.list[1].x = 2
    assert.same({ 1, 2, 1 }, { e.results, e.now, since.list[1].x })
  end)
end)

describe("memory", function()
  local count = [[sync = function(_, memory)
    memory.n = (memory.n or 0) + 1
    return true, memory.n
  end]]

  it("is handed back when it was changed, and only then", function()
    local M = library.keys(count)
    local _, reason, _, memory = M.ask("sync", event(), nil)
    assert.equal("1", reason)
    _, reason, _, memory = M.ask("sync", event(), memory)
    assert.equal("2", reason)
    M = library.keys "sync = function(_, memory) memory.n = 2 memory.x = nil return true end"
    local _, _, _, same = M.ask("sync", event(), memory)
    assert.is_nil(same)
    _, _, _, same = M.ask("sync", event(), {})
    assert.is_table(same)
  end)

  it("is each policy's own", function()
    local first = count:gsub("return true, memory.n", "return nil")
    local M = chain(first, count)
    local _, reason, _, memory = M.ask("sync", event(), {})
    assert.equal("1", reason)
    assert.same({ user = { a = { n = 1 }, b = { n = 1 } } }, memory)
    memory.user.a.n = 41
    _, _, _, memory = M.ask("sync", event(), memory)
    assert.same({ user = { a = { n = 42 }, b = { n = 2 } } }, memory)
  end)

  it("may be emptied", function()
    local M = library.keys "sync = function(_, m) m.n = nil return true end"
    local _, _, _, memory = M.ask("sync", event(), { user = { mine = { n = 1 } } })
    assert.same({}, memory)
  end)

  it("is read though somebody has spoilt it", function()
    local spoilt = { { user = 5 }, { user = { mine = "x" } }, { rules = true }, { 1, 2 } }
    for _, memory in ipairs(spoilt) do
      local M = library.keys(count .. ", on_preempt = 'all'")
      assert.equal("sync", (M.ask("sync", event(), memory)))
    end
  end)

  it("holds 64 KiB and nothing that JSON cannot carry", function()
    for _, value in ipairs {
      "('x'):rep(66000)",
      "function() end",
      "0/0",
      "1/0",
      "{ [1.5] = 1 }",
      "{ 1, 2, x = 3 }",
      "{ [{}] = 1 }",
      "memory",
      "e.since",
    } do
      local f = "function(e, memory) memory.x = %s return true end"
      local M = library.keys("sync = " .. f:format(value))
      local ok, why = pcall(M.ask, "sync", event(), {})
      assert.equal(value == "e.since", ok, value)
      if not ok then assert.equal("answer", why.kind) end
    end
    local M = library.keys "sync = function(_, memory) memory.x = ('x'):rep(60000) return true end"
    assert.equal("sync", (M.ask("sync", event(), {})))
  end)
end)

describe("keep_in_place", function()
  local function few(...)
    local _, data = chain(...)
    return data.few
  end

  it("lets older generations go where no policy says otherwise", function()
    assert.is_true(few "")
    assert.is_true(few 'keep_in_place = "few"')
    assert.is_false(few 'keep_in_place = "all"')
    assert.is_true(few("would_keep = keep.last(1)", "sync = when.each_checkpoint()"))
    assert.is_false(few("", 'keep_in_place = "all"'))
    assert.is_true(few('keep_in_place = "few"', 'keep_in_place = "all"'))
  end)

  it("is nothing where a policy has `keep`", function()
    assert.is_false(few "keep = keep.last(1)")
    assert.is_false(few('keep_in_place = "few"', "keep = keep.last(1)"))
    assert.is_false(few "keep = function() end")
  end)

  it("is one of two words", function()
    for _, value in ipairs { "false", "true", "3", '"none"', "keep.last(3)" } do
      local ok, why = pcall(library.keys, "keep_in_place = " .. value)
      assert.is_false(ok, value)
      assert.equal("syntax", why.kind, value)
    end
  end)
end)

describe("would_keep", function()
  local text = "would_keep = any { keep.last(2) }"

  it("keeps everything, and says once what it would free", function()
    local M, data = library.keys(text)
    assert.same({ "mine" }, data.has.keep)
    local answer, _, _, memory, warnings = M.ask("keep", { list = items(2) })
    assert.same({ nil, nil, 0 }, { answer, memory, #warnings })
    answer, _, _, _, warnings = M.ask("keep", { list = items(5) })
    assert.is_nil(answer)
    assert.same({
      "the keep rules in mine.lua are not in force; if they were, they would free "
        .. "3 of 5 checkpoints (2.9 MiB)",
    }, warnings)
    _, _, _, _, warnings = M.ask("keep", { list = items(6) })
    assert.equal(0, #warnings)
  end)

  it("says nothing where keep rules are in force", function()
    local M = chain("keep = keep.last(1)", text)
    local answer, _, by, _, warnings = M.ask("keep", { list = items(3) })
    assert.same({ false, false, true }, { answer[1].keep, answer[2].keep, answer[3].keep })
    assert.same({ "a", 0 }, { by, #warnings })
  end)

  it("says nothing of local files and of a restore", function()
    local M, data = library.keys(text)
    assert.is_nil(data.has.keep_local)
    assert.is_nil((M.ask("keep_local", { list = items(5) })))
  end)
end)
