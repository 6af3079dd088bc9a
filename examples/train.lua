#!/usr/bin/env luajit
--[[
Trains a small character-level language model: a training program like any other, for the demo.

  luajit examples/train.lua --dir DIR [options]

  --dir DIR          where the checkpoints go: DIR/checkpoint-STEP
  --text FILE        what to learn (default: the GPL, which every Debian has)
  --steps N          train up to this step (400)
  --save-every K     write a checkpoint every K steps, and at the end (50)
  --save-delay S     spread the writing of optimizer.pt over S seconds, as a big model would (0)
  --resume WHAT      a checkpoint's directory, or "auto": the newest in DIR, if there is one
  --seed S           of the first weights and of the batches (1)
  --hidden N, --batch N    size of the hidden layer (192) and of a batch (128)

It knows nothing of ckpt-lua. Its checkpoints have the layout of the Hugging Face Trainer's and are
written in the same order: in place, without fsync, model.safetensors by a rename inside,
trainer_state.json last; then all but the newest three are deleted. Like the Trainer, `--resume
auto` takes the highest number, whatever is in that directory, and fails if a kill left it torn.

A checkpoint holds all of the state (weights, Adam's moments, step, random generator), and each sum
is made in a fixed order: a run that was stopped and resumed ends with the same bits as one that was
not. The last line shows it: `final step=N loss=LOSS weights=DIGEST`.

Exit status: 0, 1 (it failed, stderr says why), 2 (wrong usage).
]]
local bit = require "bit"
local ffi = require "ffi"

local C = ffi.C
local exp, floor, log, sqrt, tanh = math.exp, math.floor, math.log, math.sqrt, math.tanh

-- Other processors have a multiply-add that rounds once instead of twice. The compiler would use
-- it and the interpreter not, so the loss would depend on when a loop got compiled.
if jit.arch ~= "x64" then jit.opt.start("-fuse") end

local BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
local PEAK_RATE, WARMUP, DECAY = 0.003, 20, 400
local KEEP = 3 -- checkpoints, the Trainer's save_total_limit
local VOCAB, CONTEXT, EMBED = 256, 16, 16 -- characters: known, in a window, numbers for each
local LOG_EVERY = 10
local CHUNKS = 32 -- pieces that optimizer.pt is written in
local EVAL_WINDOWS = 256
local TEXTS = { "/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/Apache-2.0" }

ffi.cdef [[
typedef struct dir dir;
typedef struct { uint64_t ino; int64_t off; uint16_t len; uint8_t type; char name[256]; } entry;
dir *opendir(const char *path);
entry *readdir64(dir *d);
int closedir(dir *d);
int mkdir(const char *path, unsigned mode);
int mkstemp(char *path);
int ftruncate64(int fd, int64_t size);
intptr_t write(int fd, const void *data, size_t size);
int close(int fd);
int poll(void *none, unsigned long count, int ms);
char *strerror(int number);
]]
local EEXIST, EINTR, ENOENT = 17, 4, 2

local function fail(...)
  io.stderr:write("train.lua: ", string.format(...), "\n")
  os.exit(1)
end

-- Passes on what an io function returned, or a test of what a C call did; ends the program if that
-- failed. An io function says why, a C call leaves it in errno.
local function must(what, path, ok, why)
  if ok then return ok end
  why = why and why:gsub("^.*: ", "") or ffi.string(C.strerror(ffi.errno()))
  fail("cannot %s %s: %s", what, path, why)
end

--- Random numbers and digests -----------------------------------------------------------------

-- PCG32, a number in [0, 1). The state of math.random could not be saved.
local function random_unit(state)
  local old = state[0]
  state[0] = old * 6364136223846793005ULL + 1442695040888963407ULL
  local bits = bit.tobit(bit.rshift(bit.bxor(bit.rshift(old, 18), old), 27))
  return (bit.ror(bits, tonumber(bit.rshift(old, 59))) + 2147483648) / 4294967296
end

local function random_new(seed)
  local state = ffi.new("uint64_t[1]", seed + 1442695040888963407ULL)
  random_unit(state)
  return state
end

-- FNV-1a, 64 bits.
local function digest(data, size)
  local bytes, hash = ffi.cast("const uint8_t *", data), 0xcbf29ce484222325ULL
  for i = 0, size - 1 do
    hash = bit.bxor(hash, bytes[i] + 0ULL) * 0x100000001b3ULL
  end
  return hash
end

--- The model ----------------------------------------------------------------------------------

-- All weights are one array, and so are their gradients: each tensor is a part of it. A tensor's
-- pointer keeps no array alive, so the arrays stay in `net` too.
local function net_new(o)
  local inputs = CONTEXT * EMBED
  local net = { o = o, count = 0, w = {}, g = {} }
  net.tensors = {
    { "embed.weight", VOCAB, EMBED }, { "hidden.weight", inputs, o.hidden },
    { "hidden.bias", o.hidden }, { "output.weight", o.hidden, VOCAB }, { "output.bias", VOCAB },
  }
  for _, t in ipairs(net.tensors) do
    t.offset, t.size = net.count, t[2] * (t[3] or 1)
    net.count = net.count + t.size
  end
  net.weights, net.gradients = ffi.new("double[?]", net.count), ffi.new("double[?]", net.count)
  for _, t in ipairs(net.tensors) do
    net.w[t[1]], net.g[t[1]] = net.weights + t.offset, net.gradients + t.offset
  end
  -- What the pass over a window works on: input, hidden layer, their gradients, probabilities.
  net.x, net.dx = ffi.new("double[?]", inputs), ffi.new("double[?]", inputs)
  net.h, net.dh = ffi.new("double[?]", o.hidden), ffi.new("double[?]", o.hidden)
  net.p = ffi.new("double[?]", VOCAB)
  -- Adam: the step, the powers of both betas, then the two moments of each weight.
  net.adam_count = 3 + 2 * net.count
  net.adam = ffi.new("double[?]", net.adam_count)
  net.adam[1], net.adam[2] = 1, 1
  return net
end

local function net_randomize(net, random)
  for _, t in ipairs(net.tensors) do
    local range = t[1] == "embed.weight" and 0.5 or sqrt(3 / t[2])
    for i = t.offset, t.offset + t.size - 1 do
      net.weights[i] = t[3] and (2 * random_unit(random) - 1) * range or 0
    end
  end
end

-- out = bias + x * w; w has a row for each x.
local function affine(out, x, w, bias, rows, cols)
  for j = 0, cols - 1 do out[j] = bias[j] end
  for i = 0, rows - 1 do
    local xi, row = x[i], w + i * cols
    for j = 0, cols - 1 do out[j] = out[j] + xi * row[j] end
  end
end

-- Adds to the gradients of w and bias; sets dx.
local function affine_back(dout, x, w, dx, dw, dbias, rows, cols)
  for j = 0, cols - 1 do dbias[j] = dbias[j] + dout[j] end
  for i = 0, rows - 1 do
    local xi, sum, row, drow = x[i], 0, w + i * cols, dw + i * cols
    for j = 0, cols - 1 do
      local d = dout[j]
      drow[j] = drow[j] + xi * d
      sum = sum + row[j] * d
    end
    dx[i] = sum
  end
end

local function softmax(p, n)
  local top, sum = p[0], 0
  for j = 1, n - 1 do
    if p[j] > top then top = p[j] end
  end
  for j = 0, n - 1 do
    p[j] = exp(p[j] - top)
    sum = sum + p[j]
  end
  for j = 0, n - 1 do p[j] = p[j] / sum end
end

-- The loss for the window of codes at `at`; its next code is the answer.
local function forward(net, at)
  local w, hidden = net.w, net.o.hidden
  for i = 0, CONTEXT - 1 do
    local row, x = w["embed.weight"] + at[i] * EMBED, net.x + i * EMBED
    for j = 0, EMBED - 1 do x[j] = row[j] end
  end
  affine(net.h, net.x, w["hidden.weight"], w["hidden.bias"], CONTEXT * EMBED, hidden)
  for j = 0, hidden - 1 do net.h[j] = tanh(net.h[j]) end
  affine(net.p, net.h, w["output.weight"], w["output.bias"], hidden, VOCAB)
  softmax(net.p, VOCAB)
  return -log(net.p[at[CONTEXT]])
end

-- Adds the gradients of the window that forward() just saw.
local function backward(net, at)
  local w, g, p, h, dh = net.w, net.g, net.p, net.h, net.dh
  local hidden, answer = net.o.hidden, at[CONTEXT]
  p[answer] = p[answer] - 1
  affine_back(p, h, w["output.weight"], dh, g["output.weight"], g["output.bias"], hidden, VOCAB)
  for j = 0, hidden - 1 do dh[j] = dh[j] * (1 - h[j] * h[j]) end
  affine_back(dh, net.x, w["hidden.weight"], net.dx, g["hidden.weight"], g["hidden.bias"],
    CONTEXT * EMBED, hidden)
  for i = 0, CONTEXT - 1 do
    local row, dx = g["embed.weight"] + at[i] * EMBED, net.dx + i * EMBED
    for j = 0, EMBED - 1 do row[j] = row[j] + dx[j] end
  end
end

-- A function of the step alone: a longer --steps must not change the steps before.
local function learning_rate(step)
  return PEAK_RATE * math.min(1, step / WARMUP) / (1 + step / DECAY)
end

local function adam_update(net, rate)
  local a, w, g, n = net.adam, net.weights, net.gradients, net.count
  local m, v, scale = a + 3, a + 3 + n, 1 / net.o.batch
  -- Powers by products: x^y differs between LuaJIT's compiler and its interpreter.
  a[0], a[1], a[2] = a[0] + 1, a[1] * BETA1, a[2] * BETA2
  local bias1, bias2 = 1 - a[1], 1 - a[2]
  for i = 0, n - 1 do
    local d = g[i] * scale
    m[i] = BETA1 * m[i] + (1 - BETA1) * d
    v[i] = BETA2 * v[i] + (1 - BETA2) * d * d
    w[i] = w[i] - rate * (m[i] / bias1) / (sqrt(v[i] / bias2) + EPSILON)
  end
end

-- One step on windows drawn from the text; returns their mean loss.
local function train_step(net, text, random, step)
  local loss = 0
  ffi.fill(net.gradients, net.count * 8)
  for _ = 1, net.o.batch do
    local at = text.codes + floor(random_unit(random) * text.windows)
    loss = loss + forward(net, at)
    backward(net, at)
  end
  adam_update(net, learning_rate(step))
  return loss / net.o.batch
end

-- The mean loss over windows spread evenly over the text: no random draw, so it changes nothing.
local function evaluate(net, text)
  local loss = 0
  for i = 0, EVAL_WINDOWS - 1 do
    loss = loss + forward(net, text.codes + floor(i * text.windows / EVAL_WINDOWS))
  end
  return loss / EVAL_WINDOWS
end

--- Files --------------------------------------------------------------------------------------

local function read_file(path)
  local f = must("open", path, io.open(path, "rb"))
  local data = must("read", path, f:read("*a"))
  f:close()
  return data
end

-- Writes a file in place. With a delay each part reaches the file before the next wait, so that a
-- kill in between leaves a torn file, as it does with real sizes.
local function write_file(path, parts, delay)
  local f = must("create", path, io.open(path, "wb"))
  for _, part in ipairs(parts) do
    must("write", path, f:write(part))
    must("write", path, f:flush())
    if delay then C.poll(nil, 0, delay * 1000 / #parts) end
  end
  must("write", path, f:close())
end

local function make_dir(path)
  must("make directory", path, C.mkdir(path, 511) == 0 or ffi.errno() == EEXIST)
end

-- The names in a directory; none if it does not exist.
local function list(path)
  local names, d = {}, C.opendir(path)
  if d == nil then
    must("list", path, ffi.errno() == ENOENT)
    return names
  end
  local e = C.readdir64(d)
  while e ~= nil do
    local name = ffi.string(e.name)
    if name ~= "." and name ~= ".." then names[#names + 1] = name end
    e = C.readdir64(d)
  end
  C.closedir(d)
  return names
end

local function word(n)
  return ffi.string(ffi.new("uint64_t[1]", n), 8)
end

-- What torch would pickle is here: magic, length, data, digest of the data, end mark.
local MAGIC, END = "charlm\1\n", "the end\n"

local function write_blob(path, data, delay)
  local parts, size = { MAGIC .. word(#data) }, math.ceil(#data / CHUNKS)
  for at = 1, #data, size do parts[#parts + 1] = data:sub(at, at + size - 1) end
  parts[#parts + 1] = word(digest(data, #data)) .. END
  write_file(path, parts, delay)
end

local function read_blob(path)
  local file = read_file(path)
  local data = file:sub(17, -17)
  if #file < 32 or file:sub(1, 16) ~= MAGIC .. word(#data) or file:sub(-8) ~= END then
    fail("%s is torn or not ours: its %d bytes do not end as they should", path, #file)
  end
  if file:sub(-16, -9) ~= word(digest(data, #data)) then
    fail("%s is damaged: its digest is wrong", path)
  end
  return data
end

--- Checkpoints --------------------------------------------------------------------------------

-- The head of model.safetensors: length, then JSON padded to 8 bytes.
local function safetensors_head(net)
  local items = { '"__metadata__":{"format":"luajit"}' }
  for _, t in ipairs(net.tensors) do
    items[#items + 1] = ('"%s":{"dtype":"F64","shape":[%s],"data_offsets":[%d,%d]}'):format(
      t[1], table.concat(t, ",", 2), t.offset * 8, (t.offset + t.size) * 8)
  end
  local json = "{" .. table.concat(items, ",") .. "}"
  json = json .. (" "):rep(-#json % 8)
  return word(#json) .. json
end

-- As the safetensors library does it: a temporary file beside the model gets its full size first,
-- then its bytes, and is renamed while it is still open.
local function write_model(net, path)
  local data = safetensors_head(net) .. ffi.string(net.weights, net.count * 8)
  local template = path:match("^.*/") .. ".tmpXXXXXX"
  local name = ffi.new("char[?]", #template + 1, template)
  local fd = C.mkstemp(name)
  local temp = ffi.string(name)
  must("create", temp, fd >= 0 and C.ftruncate64(fd, #data) == 0)
  local at, bytes = 0, ffi.cast("const char *", data)
  while at < #data do
    local n = tonumber(C.write(fd, bytes + at, #data - at))
    must("write", temp, n > 0 or ffi.errno() == EINTR)
    at = at + math.max(n, 0)
  end
  must("rename", temp, os.rename(temp, path))
  must("close", path, C.close(fd) == 0)
end

local function read_model(net, path)
  local data, head = read_file(path), safetensors_head(net)
  if data:sub(1, #head) ~= head or #data ~= #head + net.count * 8 then
    fail("%s is torn, or of a model of other sizes", path)
  end
  ffi.copy(net.weights, data:sub(#head + 1), net.count * 8)
end

local function config_json(net)
  return ('{\n  "model_type": "char-mlp",\n  "vocab_size": %d,\n  "context": %d,\n  "embed": %d,\n'
    .. '  "hidden": %d\n}\n'):format(VOCAB, CONTEXT, EMBED, net.o.hidden)
end

-- What a resumed run must have in common with the one before, or it would not end the same.
local function arguments(o, text)
  return ("batch=%d text=%s peak_rate=%g warmup=%d decay=%d\n"):format(
    o.batch, bit.tohex(text.digest), PEAK_RATE, WARMUP, DECAY)
end

local function state_json(o, step, history)
  return ('{\n  "global_step": %d,\n  "log_history": [\n%s\n  ],\n  "max_steps": %d,\n'
    .. '  "save_steps": %d\n}\n'):format(step, table.concat(history, ",\n"), o.steps, o.save_every)
end

local function state_read(path)
  local json, history = read_file(path), {}
  local step = tonumber(json:match('^{\n  "global_step": (%d+),'))
  if not step or json:sub(-3) ~= "\n}\n" then fail("%s is not valid JSON: it is torn", path) end
  for item in json:gmatch('\n(    {"learning_rate"[^\n]-})') do history[#history + 1] = item end
  return step, history
end

-- The steps of the checkpoints in a directory, lowest first.
local function checkpoints(dir)
  local steps = {}
  for _, name in ipairs(list(dir)) do
    steps[#steps + 1] = tonumber(name:match("^checkpoint%-(%d+)$"))
  end
  table.sort(steps)
  return steps
end

local function remove_checkpoint(path)
  for _, name in ipairs(list(path)) do
    must("remove", path .. "/" .. name, os.remove(path .. "/" .. name))
  end
  must("remove", path, os.remove(path))
end

-- trainer_state.json must be last: who finds it takes the checkpoint for whole.
local function save(run, step)
  local net, dir = run.net, run.o.dir .. "/checkpoint-" .. step
  make_dir(dir)
  write_file(dir .. "/config.json", { config_json(net) })
  write_model(net, dir .. "/model.safetensors")
  write_blob(dir .. "/training_args.bin", arguments(run.o, run.text))
  write_blob(dir .. "/optimizer.pt", ffi.string(net.adam, net.adam_count * 8), run.o.save_delay)
  write_blob(dir .. "/scheduler.pt", ("%.17g\n"):format(learning_rate(step)))
  write_blob(dir .. "/rng_state.pth", ffi.string(run.random, 8))
  write_file(dir .. "/trainer_state.json", { state_json(run.o, step, run.history) })
  print("saved " .. dir)
  local steps = checkpoints(run.o.dir)
  for i = 1, #steps - KEEP do remove_checkpoint(run.o.dir .. "/checkpoint-" .. steps[i]) end
end

local function load(run, dir)
  local net = run.net
  local step, history = state_read(dir .. "/trainer_state.json")
  if read_file(dir .. "/config.json") ~= config_json(net)
    or read_blob(dir .. "/training_args.bin") ~= arguments(run.o, run.text) then
    fail("%s was made with another text, model or batch: give the same options", dir)
  end
  read_model(net, dir .. "/model.safetensors")
  local adam, random = read_blob(dir .. "/optimizer.pt"), read_blob(dir .. "/rng_state.pth")
  if #adam ~= net.adam_count * 8 or #random ~= 8 then fail("%s: wrong sizes", dir) end
  ffi.copy(net.adam, adam, #adam)
  ffi.copy(run.random, random, #random)
  local rate = tonumber(read_blob(dir .. "/scheduler.pt"))
  if net.adam[0] ~= step or rate ~= learning_rate(step) then
    fail("%s: its files are not of the same step", dir)
  end
  run.step, run.history = step, history
end

--- The program --------------------------------------------------------------------------------

local function usage(...)
  io.stderr:write("train.lua: ", string.format(...), "\nusage: luajit train.lua --dir DIR ",
    "[--text FILE] [--steps N] [--save-every K]\n  [--save-delay SECONDS] [--resume auto|PATH] ",
    "[--seed S] [--hidden N] [--batch N]\n")
  os.exit(2)
end

local function options(args)
  local o = {
    steps = 400, save_every = 50, save_delay = 0, seed = 1, hidden = 192, batch = 128,
    dir = "", text = "", resume = "",
  }
  for i = 1, #args, 2 do
    local name, value = args[i]:gsub("^%-%-", ""):gsub("%-", "_"), args[i + 1]
    local default = o[name]
    if not args[i]:find("^%-%-") or default == nil then usage("unknown option %s", args[i]) end
    if not value or value == "" then usage("%s needs a value", args[i]) end
    if type(default) == "number" then
      local n = value:find("^%d+%.?%d*$") and tonumber(value)
      if not n or n > 1e9 or (name ~= "save_delay" and (n % 1 > 0 or n < 1)) then
        usage("%s must be a number, not %s", args[i], value)
      end
      value = n
    end
    o[name] = value
  end
  if o.dir == "" then usage("--dir is missing") end
  return o
end

local function exists(path)
  local f = io.open(path)
  return f and f:close()
end

-- A character's code is its byte.
local function read_text(o)
  local path = o.text ~= "" and o.text or exists(TEXTS[1]) and TEXTS[1] or TEXTS[2]
  local data = read_file(path)
  if #data <= CONTEXT then fail("%s is too short: more than %d bytes needed", path, CONTEXT) end
  return {
    path = path, data = data, codes = ffi.cast("const uint8_t *", data),
    windows = #data - CONTEXT, digest = digest(data, #data),
  }
end

-- Fresh weights, or those of the checkpoint that --resume names.
local function begin(run)
  local from = run.o.resume
  if from == "auto" then
    local steps = checkpoints(run.o.dir)
    from = steps[1] and run.o.dir .. "/checkpoint-" .. steps[#steps] or ""
  end
  if from ~= "" then
    load(run, from)
    print(("resumed from %s at step %d"):format(from, run.step))
  else
    net_randomize(run.net, run.random)
    print(("started with %d weights on %s"):format(run.net.count, run.text.path))
  end
end

local function main(args)
  io.stdout:setvbuf("line") -- a killed run must have said what it did
  local o = options(args)
  local text = read_text(o)
  local net = net_new(o)
  local run = { o = o, text = text, net = net, random = random_new(o.seed), step = 0, history = {} }
  make_dir(o.dir)
  begin(run)
  print(("step %d of %d, loss %.4f over the text"):format(run.step, o.steps, evaluate(net, text)))
  for step = run.step + 1, o.steps do
    local loss = train_step(net, text, run.random, step)
    if step % LOG_EVERY == 0 then
      run.history[#run.history + 1] = ('    {"learning_rate": %.17g, "loss": %.17g, "step": %d}')
        :format(learning_rate(step), loss, step)
      print(("step %d loss %.4f"):format(step, loss))
    end
    if step % o.save_every == 0 or step == o.steps then save(run, step) end
    run.step = step
  end
  print(("final step=%d loss=%.17g weights=%s"):format(run.step, evaluate(net, text),
    bit.tohex(digest(net.weights, net.count * 8))))
end

main({ ... })
