--- Every command that README.md and docs/ show is run, page by page, in a copy of what they assume:
--- a directory with ./ckpt-lua, examples/, engine/ and build/ in it. The blocks of a page are run
--- in its order, each in what those before it have made.

local support = require "support"
--- The shell blocks of a page, in order.
local function blocks(path)
  local found = {}
  for block in support.read(path):gmatch("\n```sh\n(.-)\n```") do found[#found + 1] = block end
  return found
end

--- Runs a script with `set -e`; returns success and what it printed.
local function run(script, dir)
  support.write(dir .. "/block.sh", "set -e\n" .. script .. "\n")
  local output, code = support.sh(("cd '%s' && timeout 120 bash block.sh"):format(dir))
  return code == 0, output
end

local function workplace()
  local dir = support.directory()
  local links = { { support.build, "build" }, { support.runner, "ckpt-lua" } }
  for _, name in ipairs { "engine", "examples", "python" } do
      links[#links + 1] = { support.root .. "/" .. name, name }
  end
  for _, link in ipairs(links) do
    assert(os.execute(("ln -s '%s' '%s/%s'"):format(link[1], dir, link[2])) == 0)
  end
  return dir
end

-- What a block of README.md must print, by its first word: what does nothing ends with 0, too.
local says = {
  ["./ckpt-lua"] = { "committed checkpoint-60", "restored checkpoint-60" },
  cc = { "checkpoint-60: committed", "\ncheckpoint-60 " },
  cat = {}, -- policies and scripts: judged by their exit code
  make = {},
}

local pages = { "README.md" }
for path in io.popen("ls docs/*.md"):lines() do pages[#pages + 1] = path end

describe("the commands shown in the docs", function()
  local dir

  -- One place for all pages, README first: the others go on with what it has made.
  setup(function() dir = workplace() end)
  teardown(function() os.execute("rm -rf '" .. dir .. "'") end)

  for _, page in ipairs(pages) do
    for number, block in ipairs(blocks(page)) do
      local first = block:match("^[^\n]+")
      it(("work: %s, block %d (%s)"):format(page, number, first), function()
        if block:match("^make ") then
          for target in block:gmatch("make ([%w-]+)") do
            local output, code = support.sh("make -n SETUP=no " .. target .. " >/dev/null")
            assert.are.equal(0, code, output)
          end
          return
        end
        -- A library with sanitizers in it needs them linked into the program too.
        if support.sanitized and block:match("^cc ") then
          pending("the plain build runs this one")
          return
        end
        local ok, output = run(block, dir)
        assert.is_true(ok, output)
        local word = block:match("^%S+")
        for _, text in ipairs(page == "README.md" and assert(says[word], word) or {}) do
          assert.truthy(output:find(text, 1, true), text .. " is missing in: " .. output)
        end
      end)
    end
  end
end)
