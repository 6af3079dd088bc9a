--- options { name = { type = , default = , min = , max = , values = , help = } }: what a user sets
--- with -o.
---
--- The values have to be known while the file runs, so a wrong one is an error right here.
local M = ...

local ipairs, tonumber, tostring, type = ipairs, tonumber, tostring, type
local find, format, lower = string.find, string.format, string.lower
local floor = math.floor

local truth = {
  ["true"] = true,
  yes = true,
  on = true,
  ["1"] = true,
  ["false"] = false,
  no = false,
  off = false,
  ["0"] = false,
}

-- Each takes the text of a file or a command line; nil: it is of another type.
local types = {
  integer = function(v)
    local n = tonumber(v)
    return M.is_finite(n) and n == floor(n) and n or nil
  end,
  number = function(v)
    local n = tonumber(v)
    return M.is_finite(n) and n or nil
  end,
  string = function(v) return type(v) == "string" and v or nil end,
  boolean = function(v)
    if type(v) == "boolean" then return v end
    if type(v) ~= "string" then return nil end
    return truth[lower(v)]
  end,
  duration = M.seconds,
  size = M.bytes,
}

local examples = {
  integer = "a whole number",
  number = "a number",
  string = "a text",
  boolean = "true or false",
  duration = 'a time as "5m", "1h30m" or seconds',
  size = 'a size as "10MB", "1GiB" or bytes',
}

local spec_keys = {
  type = true,
  default = true,
  min = true,
  max = true,
  values = true,
  help = true,
}
local is_ordered = { integer = true, number = true, duration = true, size = true }

-- Checks the values in an option's own description.
local function own_value(spec, key, title)
  local v = spec[key]
  if v == nil then return nil end
  local parsed = types[spec.type](v)
  if parsed == nil then
    M.misuse("%s: %s: %s, not %s", title, key, examples[spec.type], M.show(v))
  end
  return parsed
end

-- Returns the values that a text may have: as a set, and as a text.
local function own_values(spec, title)
  local set, words = {}, {}
  if spec.values == nil then return nil end
  if type(spec.values) ~= "table" or spec.type ~= "string" or not M.list_length(spec.values) then
    M.misuse("%s: values: a list of texts, for the type \"string\"", title)
  end
  for i, v in ipairs(spec.values) do
    set[M.need_text(v, title .. ": values")], words[i] = true, M.show(v)
  end
  return set, M.join(words, " or ")
end

local function out_of_range(option, v)
  local spec = option.spec
  if option.values and not option.values[v] then
    return format("%s, not %s", option.expected, M.show(v))
  end
  if option.least and v < option.least then
    return format("at least %s, not %s", M.show(spec.min), M.show(v))
  elseif option.most and v > option.most then
    return format("at most %s, not %s", M.show(spec.max), M.show(v))
  end
  return nil
end

local function describe(name, spec)
  local title = "option " .. M.show(name)
  if type(name) ~= "string" or not find(name, "^%a[%w_]*$") then
    M.misuse("%s: a name of letters, digits and underscores", title)
  end
  M.need_keys(spec, spec_keys, title)
  if not types[spec.type] then
    local hint = M.did_you_mean(spec.type, types)
    M.misuse("%s: there is no type %s%s", title, M.show(spec.type), hint)
  end
  if spec.help ~= nil then M.need_text(spec.help, title .. ": help") end
  if (spec.min ~= nil or spec.max ~= nil) and not is_ordered[spec.type] then
    M.misuse("%s: a %s has no min and max", title, spec.type)
  end
  local least, most = own_value(spec, "min", title), own_value(spec, "max", title)
  local default = own_value(spec, "default", title)
  local option = {
    type = spec.type,
    default = default,
    help = spec.help,
    least = least,
    most = most,
    spec = spec,
  }
  option.values, option.expected = own_values(spec, title)
  local wrong = default ~= nil and out_of_range(option, default)
  if wrong then M.misuse("%s: default: %s", title, wrong) end
  return option
end

-- Returns the value that the user set, or the default.
local function value_of(option, text, name, policy)
  if text == nil then return option.default end
  local v = types[option.type](text)
  local wrong = v == nil and format("%s, not %s", examples[option.type], M.show(text))
    or v ~= nil and out_of_range(option, v)
  if wrong then
    M.fail("setting", format("option %s of %s: %s", M.show(name), policy, wrong))
  end
  return v
end

--- The function `options` of one policy. `declared` gets a row for each, by name.
---@param policy string
---@param settings table<string, string>
---@param declared table<string, table>
function M.options_of(policy, settings, declared)
  return function(specs)
    if not M.loading then M.misuse "options { ... } is called while the file is loaded" end
    if type(specs) ~= "table" or M.body(specs) then
      M.misuse("options takes a table of options, not %s", M.describe(specs))
    end
    local values, known = {}, {}
    for _, name in ipairs(M.sorted_keys(specs)) do
      local option = describe(name, specs[name])
      if declared[name] then M.misuse("option %s is there twice", M.show(name)) end
      option.value = value_of(option, settings[name], name, policy)
      declared[name], values[name], known[name] = option, option.value, true
    end
    return M.frozen(values, "the table of options", known)
  end
end

--- Returns the options as the engine reports them.
function M.option_rows(policy, declared)
  local rows = {}
  for _, name in ipairs(M.sorted_keys(declared)) do
    local o = declared[name]
    rows[#rows + 1] = {
      policy = policy,
      name = name,
      type = o.type,
      default = o.default,
      value = o.value,
      help = o.help and tostring(o.help) or nil,
    }
  end
  return rows
end
