--- Ends what was begun, however the work in between ends: it may raise, and a task that is
--- cancelled is thrown out of its yield.

jit.off(true, true)

--- Calls `work`, then `ending`, also if the work raised; hands on the results of `work`.
---@param ending fun()
---@param work fun(...): ...
---@return any ... what `work` returned
local function finally(ending, work, ...)
  local function leave(fine, ...)
    ending()
    if not fine then error((...), 0) end
    return ...
  end
  return leave(pcall(work, ...))
end

return finally
