-- policy simulate: a trace of a directory. What is complete in it is found by the detector of a run
-- (spec/lab/test_trace.c), at the times of the trace; then the policy decides.

local place = require "place"
local support = require "support"
local ends, has = place.ends, place.has

local dir

place.with_directory(function(made) dir = made end)

local function tell(...) support.write(dir .. "/t.jsonl", table.concat({ ... }, "\n") .. "\n") end

local function simulate(file, args)
  local rows = place.objects(ends(0, ("policy simulate '%s' --json %s"):format(file, args)))
  return rows, table.remove(rows)
end

-- A directory with one file, written and closed at that time.
local function saved(t, name)
  return ([[{"t":%d,"ev":"CREATE,ISDIR","path":"%s"}
{"t":%d,"ev":"CREATE","path":"%s/model.bin","size":0}
{"t":%d,"ev":"CLOSE_WRITE","path":"%s/model.bin","size":100}]]):format(t, name, t, name, t, name)
end

local function names(rows)
  local words = {}
  for i = 2, #rows do words[#words + 1] = ("%s %.0f"):format(rows[i].name, rows[i].t) end
  return table.concat(words, ", ")
end

describe("policy simulate of a trace of a directory", function()
  it("finds the checkpoints of a recorded training, and asks the policy about each", function()
    support.write(dir .. "/p.lua", "return { api = 1, keep = keep.last(1) }")
    local rows, sum = simulate(support.root .. "/spec/data/traces/hf_trainer.jsonl",
      "-p ./p.lua --max-delete 100%")
    assert.equal("start", rows[1].event)
    assert.same({ "checkpoint", "sync" }, { rows[2].event, rows[2].decision })
    assert.equal(sum.saves - 1, sum.dropped)
    assert.is_true(sum.saves >= 2 and sum.bytes_sent > 0)
  end)

  it("calls complete what the policy says is complete, when it is", function()
    tell(saved(10, "checkpoint-1"), saved(20, "checkpoint-2"),
      '{"t":25,"ev":"CREATE","path":"checkpoint-2/DONE","size":0}',
      '{"t":25,"ev":"CLOSE_WRITE","path":"checkpoint-2/DONE","size":0}')
    assert.equal("checkpoint-1 40, checkpoint-2 55", names(simulate("t.jsonl", "-p builtin")))
    support.write(dir .. "/p.lua", "return { api = 1, complete = done.marker('DONE') }")
    assert.equal("checkpoint-2 27", names(simulate("t.jsonl", "-p ./p.lua")))
  end)

  it("calls a checkpoint what the policy calls one, and gives it the kind of its marker", function()
    tell(saved(10, "w1"), saved(20, "checkpoint-2"),
      '{"t":21,"ev":"CREATE","path":"w1/NULL","size":0}',
      '{"t":21,"ev":"CLOSE_WRITE","path":"w1/NULL","size":0}')
    support.write(dir .. "/p.lua", [[return { api = 1, unit = { "w{step}/" },
      markers = { null = "NULL" } }]])
    local rows = simulate("t.jsonl", "-p ./p.lua")
    assert.equal("w1 51", names(rows))
    assert.equal("skip", rows[2].decision)
  end)

  it("takes what was renamed as soon as it was, and what went before for nothing", function()
    tell(saved(10, "checkpoint-1.tmp"), saved(11, "checkpoint-2"),
      '{"t":12,"ev":"MOVED_FROM,ISDIR","path":"checkpoint-1.tmp","cookie":7}',
      '{"t":12,"ev":"MOVED_TO,ISDIR","path":"checkpoint-1","cookie":7}',
      '{"t":13,"ev":"DELETE","path":"checkpoint-2/model.bin"}',
      '{"t":13,"ev":"DELETE,ISDIR","path":"checkpoint-2"}')
    assert.equal("checkpoint-1 12", names(simulate("t.jsonl", "-p builtin")))
  end)

  it("passes over what inotify tells and nothing hangs on", function()
    tell('{"t":1,"ev":"OPEN","path":"x"}', saved(10, "checkpoint-1"),
      '{"t":11,"ev":"DELETE_SELF","path":"x"}')
    assert.equal("checkpoint-1 40", names(simulate("t.jsonl", "-p builtin")))
  end)

  describe("names the line that is wrong, and tells nothing:", function()
    for what, row in pairs {
      ["a word that inotify has not"] = { '{"ev":"WRITE","path":"a"}', '"ev" is to be an event' },
      ["a way out"] = { '{"ev":"CREATE","path":"../a"}', "a path below the directory" },
      ["no path"] = { '{"ev":"CREATE"}', "a path below the directory" },
      ["a time that goes back"] = { '{"t":9,"ev":"CREATE","path":"a"}', "before the change bef" },
      ["a size that is none"] = { '{"ev":"CREATE","path":"a","size":-1}', "a whole number" },
      ["an event of a run that is told"] = { '{"event":"start"}', 'no member "event"' },
    } do
      it(what, function()
        tell(saved(10, "checkpoint-1"), row[1])
        local text, said = ends(2, "policy simulate t.jsonl -p builtin")
        assert.equal("", text)
        has(said, "t.jsonl:4: ")
        has(said, row[2])
      end)
    end
  end)

  it("says what no directory can have done", function()
    tell('{"t":1,"ev":"CREATE","path":"a"}', '{"t":2,"ev":"CREATE","path":"a/b"}')
    local _, said = ends(2, "policy simulate t.jsonl -p builtin")
    has(said, "t.jsonl:2: a/b: what is above it is no directory")
  end)

  it("leaves out a last line that was cut while it was written, and says so", function()
    support.write(dir .. "/t.jsonl", saved(10, "checkpoint-1") .. '\n{"t":11,"ev":"CRE')
    has(select(2, ends(0, "policy simulate t.jsonl -p builtin")), "t.jsonl:4: the last line was")
  end)
end)
