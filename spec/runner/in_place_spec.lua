-- A name that a job writes again and again: three generations, one a day and the last one of each
-- start are kept, by default, and what that is a day is told once.

local place = require "place"
local support = require "support"
local has, lacks = place.has, place.lacks
local CKPT = support.runner

local dir

place.with_directory(function(made)
  dir = made
  place.must_sh "mkdir out"
end)

--- A job that renames a model of so many bytes into its place, and of one more when that one is
--- saved, and so on.
local function job(from, to)
  support.write(dir .. "/job.sh", ([[
    for n in $(seq %d %d); do
      head -c $n /dev/zero >out/.new
      mv out/.new out/model.pt
      for i in $(seq 300); do
        '%s' ls store --json 2>/dev/null | grep -q '"bytes":'$n'[^0-9]' && break
        sleep 0.1
      done
    done]]):format(from, to, CKPT))
end

local ALWAYS = "--in-place-every 0 --grace-delete 0s --max-delete 100% "

local function run(options, before)
  return place.sh_ends(0, ("%s '%s' run --dir out --to store %s%s -- sh job.sh")
    :format(before or "", CKPT, ALWAYS, options or ""))
end

--- How many bytes those have that are kept, in the order of the log.
local function kept()
  local sizes = {}
  for i, item in ipairs(place.objects(place.must "ls store --json")) do
    sizes[i] = ("%d"):format(item.bytes)
  end
  return table.concat(sizes, " ")
end

--- How many of them have data in the store.
local function stored(name)
  return (place.must_sh(("find store -name %s -type f | wc -l"):format(name))):match "%d+"
end

describe("a name that is written again and again", function()
  it("has its newest three generations and the last one of each day, and no more", function()
    job(101, 110)
    local text = run()
    has(text, "model.pt is no longer kept in the store: three newer generations of its name")
    assert.are.equal("108 109 110", kept())
    assert.are.equal("3", stored "model.pt")
    has(text, "warning: model.pt is saved again and again, every ")
    has(text, "A longer --in-place-every makes it fewer")
    place.must "verify store"
    job(201, 205)
    local ahead = place.preload "spec/runner/day_ahead.c"
    run("", "DAYS_AHEAD=1 " .. ahead)
    assert.are.equal("110 203 204 205", kept())
    -- The one that a run went on from stays while it runs: so a third day shows it.
    job(301, 304)
    run("", "DAYS_AHEAD=2 " .. ahead)
    assert.are.equal("110 205 302 303 304", kept())
    assert.are.equal("5", stored "model.pt")
    place.must "verify store"
    place.must_sh "rm -r out && mkdir out"
    place.must "restore store --dir out"
    assert.are.equal("304", (place.must_sh "stat -c %s out/model.pt"):match "%d+")
  end)

  -- JSON, since a start takes up only what is proven to be whole.
  it("has the newest three whole, however often its runner was killed meanwhile", function()
    support.write(dir .. "/job.sh", [[
      n=$(cat n)
      for i in $(seq 100); do
        [ ! -e enough ] || [ $i -lt 6 ] || break
        n=$((n + 1))
        printf '"%*s"' $((998 + n)) . >out/.new
        mv out/.new out/model.json
        echo $n >n
        sleep 0.07
        [ ! -e enough ] || sleep 0.7
      done]])
    support.write(dir .. "/n", "0")
    local killed = 0
    for i = 1, 10 do
      local seconds = 0.5 + i * 0.37 % 1
      local text, code = place.sh(("timeout -s KILL %.2f '%s' run --unit model.json --dir out " ..
        "--to store %s -- sh job.sh"):format(seconds, CKPT, ALWAYS))
      -- 11: what the one before had started is not gone yet.
      assert.is_true(code == 137 or code == 11, text)
      killed = killed + (code == 137 and 1 or 0)
    end
    assert.is_true(killed > 4)
    support.write(dir .. "/enough", "")
    local text, code
    repeat -- as above
      text, code = place.sh(("'%s' run --unit model.json --dir out --to store %s -- sh job.sh")
        :format(CKPT, ALWAYS))
    until code ~= 11
    assert.are.equal(0, code, text)
    local list = place.objects(place.must "ls store --json")
    -- The last one of each start stays, too.
    assert.is_true(#list >= 3 and #list <= 4 + killed)
    local last = 1000 + tonumber(support.read(dir .. "/n"))
    assert.are.equal(last, list[#list].bytes)
    assert.are.equal(tostring(#list), stored "model.json")
    place.must "verify store"
  end)

  it("has what each start ended with, however often the next one saves", function()
    job(101, 102)
    run ""
    job(201, 206)
    run "--restore never"
    assert.are.equal("102 204 205 206", kept())
  end)

  it("has all of them where that is asked for, and `plan` tells what would go", function()
    job(101, 106)
    lacks(run "-o keep_in_place=all", "no longer kept")
    assert.are.equal("101 102 103 104 105 106", kept())
    local drops = {}
    for _, row in ipairs(place.objects((place.apart "plan store --max-delete 100% --json"))) do
      if row.verdict == "drop" then
        drops[#drops + 1] = row.bytes
        assert.are.equal("builtin", row.by)
        assert.are.equal(3600, row.deleted_in_s)
        has(row.why, "three newer generations of its name are kept")
      end
    end
    assert.are.same({ 101, 102, 103 }, drops)
    lacks(place.must "plan store -o keep_in_place=all --json", '"verdict":"drop"')
    has(place.must "plan store -p builtin --json", '"verdict":"drop"')
    support.write(dir .. "/mine.lua", "return { api = 1, keep = keep.all() }")
    lacks(place.must "plan store -p ./mine.lua --json", '"verdict":"drop"')
    assert.are.equal("101 102 103 104 105 106", kept())
  end)
end)
