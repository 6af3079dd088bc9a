-- The words of the command line: what is refused, and that the refusal has the right spelling.

local place = require "place"
local support = require "support"
local has, ends = place.has, place.ends

local dir

local function says(code, args, ...)
  local text, err = ends(code, args)
  assert.are.equal("", text, args)
  for _, part in ipairs { ... } do has(err, part) end
  return err
end

place.with_directory(function(made) dir = made end)

describe("a target", function()
  it("with an unknown word in its query is refused, and nobody is asked for keys", function()
    place.save("out", 1)
    for _, command in ipairs { "sync out --to", "ls", "run --dir out --to" } do
      says(2, ("%s 's3://bucket/x?regoin=us-east-1'%s"):format(command,
        command:match "^run" and " -- true" or ""), "regoin")
    end
  end)

  it("in another tool's spelling is refused, and makes no directory", function()
    place.save("out", 1)
    for target, right in pairs {
      ["s3:bucket/x"] = "write s3://bucket/x", ["s3:/b/x"] = "write s3://b/x",
      ["user@host:/d"] = "./user@host:/d", ["host:/d"] = "./host:/d",
      ["file:x"] = "a path is written as it is (x)",
      ["~/x"] = "write $HOME/x, or ./~/x",
    } do
      says(2, ("sync out --to '%s'"):format(target), right)
      says(2, ("run --dir out --to '%s' -- true"):format(target), right)
      says(2, ("ls '%s'"):format(target), right)
    end
    assert.are.equal("err.txt\nout\n", place.sh("ls"))
  end)

  it("may have a colon where it says that it is a path", function()
    place.save("out", 1)
    ends(0, "sync out --to ./a:b --settle 0")
    ends(0, "ls ./a:b")
  end)

  it("is named once", function()
    place.save("out", 1)
    says(2, "sync out --to a --to b", "--to is given twice, as 'a' and as 'b'")
    says(2, "run --dir out --dir other --to a -- true", "--dir is given twice")
    ends(0, "sync out --to a --to a --settle 0")
  end)
end)

describe("what lacks", function()
  it("is named in the words of the usage", function()
    says(2, "sync", "DIR is missing", "usage: ckpt-lua sync DIR --to URI")
    says(2, "sync out", "--to is missing", "usage: ckpt-lua sync DIR --to URI")
    says(2, "run -- true", "--dir is missing", "usage: ckpt-lua run")
    local _, err = ends(4, "status", "-u CKPT_SOCKET")
    has(err, "DIR is missing")
    has(err, "usage: ckpt-lua status [DIR]")
  end)
end)

describe("--dry-run", function()
  it("is taken by the verbs that the page names, and by no other", function()
    local said = {}
    local sentence = support.read("docs/commands.md"):match "\n([^\n]-) take `%-%-dry%-run`"
    for verb in sentence:gmatch "`(%l+)`" do said[verb] = true end
    for name in place.must("help"):gmatch "\n  (%l+) " do
      local takes = place.must("help " .. name):find("--dry-run", 1, true) ~= nil
      assert.are.equal(takes, said[name] or false, name)
    end
  end)
end)

describe("sync", function()
  it("offers --trust for what nothing proves, and saves it then as it stands", function()
    place.sh "mkdir -p out/checkpoint-1 && echo w >out/checkpoint-1/model.bin"
    local err = says(3, "sync out --to store --settle 0", "1 not proven whole; ",
      "--trust saves it")
    place.lacks(err, "1 committed")
    has(ends(3, "sync out --to store -n"), "NOT PROVEN")
    has(ends(0, "sync out --to store -n --trust"), "would save")
    err = says(0, "sync out --to store --settle 0 --trust", "1 committed")
    place.lacks(err, "--trust saves")
    assert.are.equal("checkpoint-1", place.listed "store")
    place.must "verify store"
  end)

  it("takes nothing that is torn, whatever is trusted", function()
    place.sh "mkdir -p out && printf 'PK\\003\\004torn' >out/model.pt"
    ends(3, "sync out --to store --settle 0 --trust")
  end)
end)

describe("a verb of another tool", function()
  it("is answered with ours", function()
    for theirs, ours in pairs {
      list = "ckpt-lua ls", snapshots = "ckpt-lua ls", delete = "ckpt-lua rm",
      backup = "ckpt-lua sync", copy = "sync DIR --to URI", check = "ckpt-lua verify",
      forget = "ckpt-lua rm", prune = "ckpt-lua gc", mount = "latest --uri", init = "first run",
      purge = "gc --remove-run", unlock = "--take-over",
    } do
      says(2, theirs, "no verb '" .. theirs .. "'", ours)
    end
  end)

  it("is only offered where ours does not have it", function()
    local verbs = {}
    for name in place.must("help"):gmatch "\n  (%l+) " do verbs[name] = true end
    local source = support.read("engine/runner/verbs/verbs.c")
    local count = 0
    for theirs, ours in source:gmatch '{"(%l+)", "(%l+)' do
      assert.is_nil(verbs[theirs], theirs)
      if ours ~= "the" then count = count + (verbs[ours] and 1 or 0) end
    end
    assert.is_true(count > 30)
  end)
end)

describe("--quiet", function()
  it("is -q, and names --settle where a time follows", function()
    place.save("out", 1)
    for _, verb in ipairs { "sync out --to s", "run --dir out --to s" } do
      for _, time in ipairs { " 5s", "=0", " 30" } do
        says(2, verb .. " --quiet" .. time .. " -- true", "--settle " .. time:sub(2))
      end
    end
    local _, err = ends(0, "run --dir out --to s --quiet --settle 0 -- true")
    place.lacks(err, "resume")
    has(err, "1 committed")
    _, err = ends(0, "verify s --quiet")
    assert.are.equal("", err)
    has(place.must "help ls", "-q, --quiet")
  end)
end)

describe("-V", function()
  it("is --version", function()
    assert.are.equal(place.must("--version"), place.must("-V"))
    assert.is_not_nil(dir)
  end)
end)
