--- The mutants of a rule: other constants in it, another rule in its place, and one more beside it.
local mutants = {}

local function mutants_of(rule, constants, others)
  local list = { "none { " .. rule .. " }" }
  for _, other in ipairs(constants) do list[#list + 1] = other end
  for i, other in ipairs(others) do
    if other ~= rule then list[#list + 1] = other end
    if i % 3 == 2 then
      list[#list + 1] = ("any { %s, %s }"):format(rule, other)
      list[#list + 1] = ("all { %s, %s }"):format(rule, other)
    end
  end
  return list
end

--- How many mutants of a rule are told from it. Fails where one is not, and is none of the
--- equivalents, or the other way round. `others`: what stands in its place and beside it;
--- `equivalent`: why "RULE | MUTANT" decides as the rule does; `is_told(rule, mutant)`: whether it
--- is told, or another value if that cannot be said.
function mutants.told(rule, constants, others, equivalent, is_told)
  local told = 0
  for _, mutant in ipairs(mutants_of(rule, constants, others)) do
    local why = equivalent[rule .. " | " .. mutant]
    local text = ("%s | %s: %s"):format(rule, mutant, why or "another rule")
    assert(is_told(rule, mutant) == (why == nil), text)
    told = told + (why and 0 or 1)
  end
  return told
end

return mutants
