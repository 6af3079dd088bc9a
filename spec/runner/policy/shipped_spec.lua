-- policy list, show and copy; and how `policy` finds its verbs.

local place = require "place"
local support = require "support"
local ends, has, sh = place.ends, place.has, place.must_sh

local dir

place.with_directory(function(made) dir = made end)

describe("policy list", function()
  it("has each shipped policy, with what its first comment says", function()
    local text = ends(0, "policy list")
    local list = place.objects((ends(0, "policy list --json")))
    local names = {}
    for i, row in ipairs(list) do
      names[i] = row.name
      has(text, row.name)
      has(text, row.about)
      local first = support.lines(support.read(row.path))[1]
      assert.are.equal(first, "-- " .. row.about)
    end
    local there = sh(("cd '%s/policies' && ls *.lua | sed 's/.lua//' | tr '\\n' ' '")
      :format(support.root))
    assert.are.equal(there, table.concat(names, " ") .. " ")
  end)

  it("has the others where a file cannot be read, and says why that one cannot", function()
    sh [[mkdir p p/dir.lua && ln -s gone p/broken.lua && head -c 300000 /dev/zero >p/long.lua &&
      printf 'return { api = 1 }\0' >p/nul.lua
      for n in default last; do echo "-- $n: all" >p/$n.lua; done]]
    local from = "CKPT_POLICIES=" .. dir .. "/p"
    local text, said = ends(3, "policy list", from)
    has(text, "\ndefault  default: all\nlast     last: all\n")
    for _, name in ipairs { "broken", "dir", "long", "nul" } do
      has(said, ("%s/p/%s.lua"):format(dir, name))
      assert.is_nil(text:find(name, 1, true))
    end
    local rows, why = place.objects((ends(3, "policy list --json", from))), {}
    for _, row in ipairs(rows) do why[row.name] = row.why end
    assert.are.equal(6, #rows)
    has(why.broken, "No such file")
    has(why.dir, "dir.lua")
    has(why.long, "over 256 KiB")
    has(why.nul, "a byte 0")
    assert.is_nil(why.last)
    has(select(2, ends(1, "policy show long", from)), "over 256 KiB")
    has(ends(0, "policy show last", from), "-- last: all")
  end)
end)

describe("policy show", function()
  it("prints the file as it is", function()
    local text = ends(0, "policy show retention")
    assert.are.equal(support.read(support.root .. "/policies/retention.lua"), text)
    local row = place.objects((ends(0, "policy show retention --json")))[1]
    assert.are.equal(text, row.text)
  end)

  it("names a near one", function()
    has(select(2, ends(2, "policy show retenton")), "did you mean retention?")
    has(select(2, ends(2, "policy show nothing-like-it")), "see: ckpt-lua policy list")
    ends(1, "policy show default >/dev/full")
  end)
end)

describe("policy copy", function()
  it("makes a file that -p takes, and says how", function()
    local text, said = ends(0, "policy copy retention")
    assert.are.equal("", text)
    has(said, "wrote retention.lua; name it with -p ./retention.lua")
    ends(0, "policy copy adaptdl sub-a.lua")
    for name, file in pairs { retention = "retention.lua", adaptdl = "sub-a.lua" } do
      assert.are.equal(support.read(("%s/policies/%s.lua"):format(support.root, name)),
        support.read(dir .. "/" .. file))
      ends(0, "policy check " .. file)
    end
  end)

  it("replaces nothing, and leaves nothing half written", function()
    support.write(dir .. "/mine.lua", "x")
    has(select(2, ends(1, "policy copy default mine.lua")), "it is not replaced")
    assert.are.equal("x", support.read(dir .. "/mine.lua"))
    has(select(2, ends(1, "policy copy default no/such/dir.lua")), "cannot write no/such/dir.lua")
    ends(2, "policy copy defalt")
    assert.are.equal("mine.lua\n", sh "ls *.lua")
  end)
end)

describe("policy", function()
  it("needs a verb of its own, and names the near one", function()
    has(select(2, ends(2, "policy")), "See: ckpt-lua help policy")
    has(select(2, ends(2, "policy chek x")), "did you mean check?")
    has(select(2, ends(2, "policy nonsense")), "see: ckpt-lua help policy")
    has(select(2, ends(2, "policy check")), "policy check: which FILE?")
    has(select(2, ends(2, "help ls check")), "ls has no verbs of its own")
    has(select(2, ends(2, "help policy chek")), "did you mean check?")
  end)

  it("has a help, as each of its verbs", function()
    local text = ends(0, "help policy")
    assert.are.equal(text, (ends(0, "policy --help")))
    local count = 0
    for name in text:gmatch "\n  policy (%l+) " do
      count = count + 1
      local own = ends(0, "help policy " .. name)
      has(own, "usage: ckpt-lua policy " .. name)
      assert.are.equal(own, (ends(0, ("policy %s --help"):format(name))))
      for line in own:gmatch "[^\n]+" do assert.is_true(#line <= 100, line) end
      has(support.read "docs/commands.md", "`policy " .. name)
      ends(2, "policy " .. name .. " --no-such-option x")
    end
    assert.is_true(count >= 4)
  end)
end)
