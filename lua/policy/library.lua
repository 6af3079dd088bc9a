--- The rule library that a policy sees without a `require`, for plain LuaJIT: specs.
---
--- The library is the parts in library/, each a chunk that is called with the library's table M
--- (empty at first) and adds to it. They need no file, no module but LuaJIT's own and no pcall, so
--- that the sandbox can embed their texts and run them itself, in the order below, with the full
--- standard libraries as globals: each part keeps what it needs in locals. The sandbox then uses,
--- in this order:
---
---   M.base = {...}                      what is allow-listed: assert error ipairs next pairs ...,
---                                       string, table, math
---   env = M.environment(name, settings, text)
---                                       the globals of one policy file, which is run next with
---                                       the chunk name "=NAME.lua"; settings: NAME -> text; text:
---                                       the file's own, for what only the text tells; or nil
---   answer = M.check(request)           what `policy check` asks of it (library/check.lua)
---   lines = M.code_lines(chunk)         before it runs, where somebody asks what is reached
---   M.add(name, env, result)            what the file returned; in the order of the chain
---   data = M.finish(settings)           what `load` answers (engine/decision/policy_link.h)
---   M.cover()                           what rules say is in M.covered from then on
---   answer, reason, by, memory, warnings, again = M.ask(hook, event, memory, before, in_lists)
---                                       memory: nil if it was not changed; warnings: a list;
---                                       again: seconds, if time alone may change the answer;
---                                       before: the memory of the first asking, if it is not that;
---                                       in_lists: how it answers of many checkpoints
---
--- What is wrong is raised as { kind = "syntax" | "setting" | "answer", text = ... }, or, from a
--- policy's own functions, as a string.

local parts = {
  "base", "rules", "when", "keep", "data", "options", "must", "words", "load", "ask", "watch",
  "check", "histories", "prove", "diff", "cover",
}

local chunks = {}
local here = debug.getinfo(1, "S").source:match("^@(.*)%.lua$")

--- Makes a library of its own, for one chain of policies.
---@param base? table what policies may use of the standard libraries
---@return table
local function new(base)
  local M = {}
  for _, part in ipairs(parts) do
    chunks[part] = chunks[part] or assert(loadfile(here .. "/" .. part .. ".lua"))
    chunks[part](M)
  end
  M.base = base
    or {
      assert = assert,
      error = error,
      ipairs = ipairs,
      next = function(t, k)
        M.complete(t)
        return next(t, k)
      end,
      pairs = function(t)
        M.complete(t)
        return pairs(t)
      end,
      rawequal = rawequal,
      select = select,
      tonumber = tonumber,
      tostring = tostring,
      type = type,
      unpack = unpack,
      string = string,
      table = table,
      math = math,
    }
  return M
end

return { new = new, parts = parts }
