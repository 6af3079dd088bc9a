-- policy simulate --plot: a picture that a stranger understands, and an XML parser too.

local place = require "place"
local support = require "support"
local ends, has, lacks = place.ends, place.has, place.lacks

local dir

place.with_directory(function(made) dir = made end)

local function policy(keys) support.write(dir .. "/p.lua", "return { api = 1, " .. keys .. " }") end

local function tell(...) support.write(dir .. "/e.jsonl", table.concat({ ... }, "\n") .. "\n") end

local function checkpoint(t, name, trial)
  return ('{"t":%s,"event":"checkpoint"%s,"checkpoint":{"name":"%s","bytes":100}}')
    :format(t, trial and (',"trial":"%s"'):format(trial) or "", name)
end

local READ = [[
import json, sys
import xml.etree.ElementTree as tree
def walk(e):
    for c in e:
        tag = c.tag.split("}")[1]
        title = [t.text or "" for t in c if t.tag.endswith("}title")]
        print(json.dumps({"tag": tag, "class": c.get("class") or "", "title": "".join(title),
                          "text": c.text or "", "rest": sorted(c.keys())}))
        walk(c)
walk(tree.parse(sys.argv[1]).getroot())
]]

-- Draws, and returns the elements of the picture as a parser sees them, and its text.
local function plot(args)
  ends(0, "policy simulate e.jsonl --plot out.svg " .. (args or "-p ./p.lua"))
  support.write(dir .. "/read.py", READ)
  return place.objects(place.must_sh("python3 read.py out.svg")), support.read(dir .. "/out.svg")
end

-- The titles of the elements of a class, in their order.
local function titles(elements, class)
  local found = {}
  for _, e in ipairs(elements) do
    if e.class == class and e.title ~= "" then found[#found + 1] = e.title end
  end
  return found
end

local function texts(elements)
  local found = {}
  for i, e in ipairs(elements) do found[i] = e.text end
  return table.concat(found, "\n")
end

describe("policy simulate --plot", function()
  it("shows each checkpoint with its fate, and the work that each crash has cost", function()
    policy "sync = when.at_most_every('1m'), keep = keep.last(1)"
    tell('{"event":"start"}', checkpoint(10, "c-1"), checkpoint(20, "c-2"), checkpoint(80, "c-3"),
      checkpoint(100, "c-4"), '{"t":130,"event":"crash"}')
    local elements = plot "-p ./p.lua --max-delete 100%"
    assert.same({ "c-1: complete at 10 s, saved at 10 s, dropped at 1 min 10 s" },
      titles(elements, "dropped"))
    assert.same({ "c-2: complete at 20 s, saved at 1 min 10 s, kept to the end" },
      titles(elements, "kept"))
    assert.same({ "c-3: complete at 1 min 20 s, not saved: the policy did not want it",
      "c-4: complete at 1 min 40 s, not saved: the policy did not want it" },
      titles(elements, "unwanted"))
    assert.same({ "machine gone at 2 min 10 s: 1 min 50 s of work lost" },
      titles(elements, "lost"))
    local said = texts(elements)
    has(said, "What the policy ./p.lua would have saved and kept")
    has(said, "4 checkpoints: 2 saved (200 B sent), of which 1 kept to the end and 1 dropped")
    has(said, " (200 B in the store then); 2 not saved")
    has(said, "1 crash, 1 min 50 s of work lost")
    has(said, "saved, dropped later")
    has(said, "\n2 min\n")
    has(said, "time since the first event")
  end)

  it("tells what was wanted and did not get there from what was not wanted", function()
    policy "queue = 'all'"
    tell(checkpoint(0, "c-1"), checkpoint(5, "c-2"), '{"t":8,"event":"crash"}',
      '{"t":9,"event":"start"}', checkpoint(10, "c-3"), '{"t":40,"event":"end"}')
    local elements = plot "-p ./p.lua --bandwidth 10/s"
    assert.same({ "c-3: complete at 10 s, saved at 20 s, kept to the end" },
      titles(elements, "kept"))
    assert.equal(2, #titles(elements, "unsaved"))
    has(titles(elements, "unsaved")[1], "wanted, but not saved")
  end)

  it("needs nothing but itself, and is readable in light and dark", function()
    policy "keep = keep.last(1)"
    tell(checkpoint(0, "c-1"))
    local elements, text = plot()
    for _, e in ipairs(elements) do
      assert.is_nil(({ script = 1, image = 1, use = 1, foreignObject = 1, a = 1 })[e.tag])
      for _, key in ipairs(e.rest) do lacks(key, "href") assert.is_nil(key:match "^on") end
    end
    lacks(text, "url(")
    lacks(text, "@import")
    has(text, "prefers-color-scheme:dark")
  end)

  it("shows names as texts, whatever they are", function()
    policy "keep = keep.last(9)"
    local name = [[<script>alert(1)&amp;\"'\u202e\u0007\uffff]]
    tell(checkpoint(0, name, "]]><a>&"), checkpoint(1, ("x"):rep(250)))
    local elements, text = plot()
    lacks(text, "<script")
    lacks(text, "\226\128\174") -- the text's direction stays
    local kept = titles(elements, "kept")
    has(table.concat(kept, "\n"), [[<script>alert(1)&amp;"'\xe2\x80\xae\x07]])
    has(texts(elements), "]]><a>&")
    lacks(text, ("x"):rep(121)) -- long names are cut
  end)

  it("counts in columns what is too much for rows, and stays small", function()
    policy "sync = function(e) return e.checkpoint.step % 2 == 0 end, keep = keep.last(3)"
    local lines = {}
    for i = 1, 600 do
      lines[#lines + 1] = checkpoint(10 * i, "c-" .. i)
      if i % 10 == 0 then lines[#lines + 1] = ('{"t":%d,"event":"crash"}'):format(10 * i + 5) end
    end
    tell(unpack(lines))
    local elements, text = plot "-p ./p.lua --max-delete 100%"
    local kept, dropped, unsaved, crashes = 0, 0, 0, 0
    for _, title in ipairs(titles(elements, "column")) do
      local a, b, c = title:match "(%d+) kept to the end, (%d+) dropped, (%d+) not saved$"
      kept, dropped, unsaved = kept + a, dropped + b, unsaved + c
    end
    for _, title in ipairs(titles(elements, "lost")) do
      crashes = crashes + title:match "^machine gone (%d+) time"
    end
    assert.same({ 4, 296, 300, 60 }, { kept, dropped, unsaved, crashes })
    assert.is_true(#text < 100000)
  end)

  it("says how many trials it leaves out, and what became of theirs", function()
    policy "keep = keep.last(3)"
    local lines = {}
    for i = 1, 50 do lines[i] = checkpoint(i, "c-1", ("t%02d"):format(i)) end
    tell(unpack(lines))
    local elements = plot()
    local said = texts(elements)
    has(said, "34 more trials are left out here: 34 kept, 0 dropped, 0 not saved")
    has(said, "t16")
    lacks(said, "t17")
    assert.equal(16, #titles(elements, "kept"))
  end)

  it("draws a file without events, and one with a single moment", function()
    tell ""
    has(texts((plot "-p builtin")), "0 checkpoints")
    tell(checkpoint(5, "c-1"))
    has(texts((plot "-p builtin")), "(t = 5)")
  end)

  it("leaves what is there as it is until the new one is whole", function()
    policy "keep = keep.last(1)"
    tell(checkpoint(0, "c-1"))
    local old = "<svg>old</svg>"
    support.write(dir .. "/out.svg", old)
    place.must_sh "ln -s out.svg link.svg"
    local files = "e.jsonl\nerr.txt\nlink.svg\nout.svg\np.lua\n"
    ends(4, "policy simulate wrong.jsonl -p ./p.lua --plot out.svg")
    assert.equal(old, support.read(dir .. "/out.svg"))
    local text, code = place.sh(("(ulimit -f 1; trap '' XFSZ; '%s' policy simulate e.jsonl " ..
      "-p ./p.lua --plot out.svg) 2>&1"):format(support.runner))
    assert.equal(1, code)
    has(text, "--plot out.svg: it cannot be written: File too large")
    assert.equal(old, support.read(dir .. "/out.svg"))
    assert.equal(files, place.must_sh "ls")
    ends(0, "policy simulate e.jsonl -p ./p.lua --plot link.svg")
    assert.equal("out.svg\n", place.must_sh "readlink link.svg")
    has(support.read(dir .. "/out.svg"), "</svg>")
    assert.equal(files, place.must_sh "ls")
  end)

  it("is written where its name is as long as a name may be", function()
    tell(checkpoint(0, "c-1"))
    local name = ("n"):rep(251) .. ".svg"
    ends(0, "policy simulate e.jsonl -p builtin --plot " .. name)
    has(support.read(dir .. "/" .. name), "</svg>")
  end)

  it("takes the place of no file that is none of its own", function()
    policy "keep = keep.last(1)"
    tell(checkpoint(0, "c-1"))
    place.must_sh "ln e.jsonl hard.svg && ln -s p.lua link.svg"
    for _, path in ipairs { "e.jsonl", "./e.jsonl", "p.lua", "hard.svg", "link.svg" } do
      local before = support.read(dir .. "/" .. path)
      local _, err = ends(1, "policy simulate e.jsonl -p ./p.lua --json --plot " .. path)
      has(err, "--plot " .. path .. ": what is there is no picture; remove it first")
      assert.equal(before, support.read(dir .. "/" .. path))
    end
  end)

  it("is an error where it cannot be written, before the work is done", function()
    tell(checkpoint(0, "c-1"))
    for path, why in pairs { ["none/out.svg"] = "No such file", ["."] = "that is no file",
      ["/dev/full"] = "that is no file", ["-"] = "name a file" } do
      local out, code, err = place.apart("policy simulate e.jsonl -p builtin --plot " .. path)
      assert.same({ "", 1 }, { out, code })
      has(err, why)
    end
  end)
end)
