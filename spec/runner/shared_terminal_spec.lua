-- A job and ckpt-lua write to one terminal: each row of the screen is of one of them, whatever the
-- job leaves without an end, and nothing is drawn where the job's text lands.

local place = require "place"
local support = require "support"
local sh, has, lacks = place.must_sh, place.has, place.lacks
local CKPT = support.runner
local TERMINAL = support.root .. "/spec/runner/terminal.py"
local SCREEN = support.root .. "/spec/runner/screen.py"
local COLUMNS = 80

local dir

place.with_directory(function(made)
  dir = made
  sh "mkdir out"
  -- Saves, and goes on when ckpt-lua has said so.
  support.write(dir .. "/save.sh", [[
save() {
  mkdir out/.new && echo "weights $1" >out/.new/model.bin &&
  echo '{}' >out/.new/trainer_state.json &&
  mv out/.new out/checkpoint-$1 && "$CKPT" notify checkpoint=checkpoint-$1 --wait
}
]])
end)

-- Runs a job on a terminal: what came, and the rows that stood there.
local function on_terminal(job, args, environment)
  support.write(dir .. "/job.sh", ". ./save.sh\n" .. job)
  local text = sh(("export TERM=xterm CKPT='%s' %s; '%s' '%s' run --dir out --to store %s " ..
    "-- sh job.sh"):format(CKPT, environment or "", TERMINAL, CKPT, args or ""))
  support.write(dir .. "/bytes", text)
  return text, support.lines(sh(("'%s' %d <bytes"):format(SCREEN, COLUMNS)))
end

local function is_ours(row) return row:find("^ckpt%-lua: ") ~= nil end

describe("a terminal that two share", function()
  it("has a row for each message, and leaves what the job has begun as it is", function()
    local _, rows = on_terminal([[
echo "step 1 loss 0.5"
printf 'loading ... '; save 1; echo 'done'
save 2
echo "step 2 loss 0.2"]])
    local text = table.concat(rows, "\n")
    has(text, "\nstep 1 loss 0.5\nloading ...\nckpt-lua: committed checkpoint-1 (step 1, 2 files, ")
    has(text, "\ndone\nckpt-lua: committed checkpoint-2 (")
    has(text, "\nstep 2 loss 0.2\nckpt-lua: 2 committed, ")
  end)

  it("leaves a bar whole, which is drawn over itself", function()
    local _, rows = on_terminal([[
printf '\r 10%%|#         | 1/10 [00:01, 1.0s/it]'; save 1
printf '\r 20%%|##        | 2/10 [00:02, 1.0s/it]'
printf '\r 30%%|###       | 3/10 [00:03, 1.0s/it]'; save 2
printf '\r 40%%|####      | 4/10 [00:04, 1.0s/it]\n'
echo end]])
    local theirs = {}
    for _, row in ipairs(rows) do
      if not is_ours(row) then theirs[#theirs + 1] = row end
    end
    assert.are.same({ " 10%|#         | 1/10 [00:01, 1.0s/it]",
      " 30%|###       | 3/10 [00:03, 1.0s/it]",
      " 40%|####      | 4/10 [00:04, 1.0s/it]", "end" }, { unpack(theirs, 1, 4) },
      table.concat(rows, "\n"))
  end)

  it("takes a row of its own from whatever column the job has come to", function()
    local job, want = {}, {}
    for i, length in ipairs { 0, 1, 2, COLUMNS - 1, COLUMNS, COLUMNS + 1 } do
      job[i] = ("printf '%s'; save %d; echo"):format(("x"):rep(length), i)
      for from = 1, length, COLUMNS do
        want[#want + 1] = ("x"):rep(math.min(COLUMNS, length - from + 1))
      end
    end
    local _, rows = on_terminal(table.concat(job, "\n"), "--settle 0.2")
    local theirs, ours = {}, 0
    for _, row in ipairs(rows) do
      if row:find "^x+$" then theirs[#theirs + 1] = row end
      if row:find "^ckpt%-lua: committed checkpoint%-%d " then ours = ours + 1 end
      assert.is_nil(row:find "x+ *ckpt%-lua", row)
    end
    assert.are.same(want, theirs, table.concat(rows, "\n"))
    assert.are.equal(6, ours, table.concat(rows, "\n"))
  end)

  it("draws nothing while the job lives, and a line of progress when it has ended", function()
    local many = [[
mkdir out/.new && cd out/.new && head -c "$2" /dev/zero | split -a 2 -b 3000 - part. &&
echo '{}' >trainer_state.json && cd ../.. && mv out/.new out/checkpoint-$1]]
    local slowly = "SLOW_BYTES=3000 SLOW_SOURCE=1 " .. place.preload "spec/runner/slow_read.c"
    local text, rows = on_terminal("set -- 1 192000; " .. many ..
      "\nprintf 'evaluating '; \"$CKPT\" notify checkpoint=checkpoint-1 --wait; echo 0.7", nil,
      slowly)
    lacks(text, "saving checkpoint-1")
    local shown = table.concat(rows, "\n")
    has(shown, "\nevaluating\nckpt-lua: committed checkpoint-1 (step 1, 65 files, ")
    has(shown, "\n0.7\n")
    text, rows = on_terminal("set -- 2 768000; " .. many .. "\nprintf 'the end'", "--continue-run",
      slowly)
    has(text, "\27[Kckpt-lua: saving checkpoint-2: ")
    shown = table.concat(rows, "\n")
    lacks(shown, "saving checkpoint-2") -- each one was taken away again
    has(shown, "\nthe end\nckpt-lua: ")
  end)

  it("takes no blanks of a terminal that cannot move", function()
    local text = on_terminal("printf 'loading '; save 1; echo done", nil, "TERM=dumb")
    lacks(text, ("%80s"):format "")
    has(text, "loading ckpt-lua: committed checkpoint-1 ") -- nothing better is possible
  end)
end)
