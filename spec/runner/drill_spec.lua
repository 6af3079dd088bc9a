-- `drill`: restores the newest of each run to scratch, compares, times it, and leaves nothing.

local json = require "cjson"
local place = require "place"
local support = require "support"
local has, lacks, sh = place.has, place.lacks, place.must_sh

local dir

local function save(group, n)
  sh(("mkdir -p out/%s/checkpoint-%d && head -c 20000 /dev/urandom >out/%s/checkpoint-%d/model.bin")
    :format(group, n, group, n))
end

place.with_directory(function(made)
  dir = made
  sh "mkdir scratch"
  for _, group in ipairs { "a", "b", "c" } do
    save(group, 1)
    save(group, 2)
  end
  place.must "sync out --to target --settle 0 --trust"
end)

local function drill(code, args)
  local text = place.says(code, "drill target --scratch scratch " .. (args or ""))
  assert.are.equal("", sh "ls -A scratch")
  return text
end

describe("drill", function()
  it("restores the newest of each of three groups, and says how long it took", function()
    local before = sh "find target -type f | LC_ALL=C sort"
    local text = drill(0)
    for _, group in ipairs { "a", "b", "c" } do
      has(text, ("ok   %s/checkpoint-2 ("):format(group))
    end
    lacks(text, "checkpoint-1")
    has(text, "3 of 3 would be restored, every byte compared: ")
    assert.is_truthy(text:match "in %d+%.%d+ s, %d+%.%d+ MB/s")
    assert.are.equal(before, sh "find target -type f | LC_ALL=C sort")
  end)

  it("takes each with --all", function()
    has(drill(0, "--all"), "6 of 6 would be restored")
  end)

  it("finds a damaged byte, and a missing object", function()
    sh "printf x | dd of=target/b/checkpoint-2/model.bin bs=1 seek=9 conv=notrunc status=none"
    sh "rm target/c/checkpoint-2/model.bin"
    local lines = place.objects((drill(5, "--json"):gsub("ckpt%-lua:[^\n]*\n", "")))
    local ok = {}
    for _, each in ipairs(lines) do if each.group then ok[each.group] = each.ok end end
    assert.are.same({ a = true, b = false, c = false }, ok)
    local sum = lines[#lines]
    assert.are.same({ false, 1, 2 }, { sum.ok, sum.restored, sum.failed })
  end)

  it("pins what it reads, and leaves no pin", function()
    if support.sh("command -v strace") == "" then return pending("strace is not there") end
    -- The leak sanitizer cannot look at a process that is traced.
    sh(("ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 strace -f -o trace -e trace=%%file " ..
      "'%s' drill target --scratch scratch || test $? = 5"):format(support.runner))
    has(support.read(dir .. "/trace"), 'pins"')
    assert.are.equal("", sh "find target -path '*/.ckpt/pins/*' -type f")
  end)

  it("marks nothing, but for --record", function()
    drill(0)
    assert.are.equal("", sh "find target -name verified")
    drill(0, "--record")
    local verified = json.decode(support.read(dir .. "/target/a/.ckpt/verified"))
    local item = place.objects(place.must "latest target/a --json")[1]
    assert.are.equal(item.number, verified.commit)
  end)

  it("has 4 where there is nothing, and looks for room first", function()
    sh "mkdir empty"
    place.says(4, "drill empty")
    has(place.says(1, "drill target --scratch nowhere"), "nowhere")
  end)

  it("says where a log has lost its end that no job would begin, though all came back", function()
    sh "cp -r target hurt"
    sh "rm $(grep -l '\"type\": *\"commit\"' hurt/a/.ckpt/log/*.json | tail -n 1)"
    local text = place.says(5, "drill hurt/a --scratch scratch")
    has(text, "1 of 1 would be restored")
    has(text, "the log is damaged")
    place.says(5, "run --dir out --to hurt/a --continue-run -- true")
  end)
end)
