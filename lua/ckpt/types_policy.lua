---@meta
-- luacheck: ignore

-- Types of what a policy sees, and of what it returns (docs/policies.md), for editors and for
-- `make check-types`. Nothing here is ever run. In a policy of your own write `---@type ckpt.Policy`
-- above the table that it returns, and an editor knows each field of it, and of `e`.

-- ---- what functions are handed ----

---@class ckpt.policy.Unit the checkpoint that is asked about
---@field name string
---@field path string
---@field step? integer
---@field bytes number
---@field files integer how many
---@field kind "perm"|"null"|"temp"
---@field names string[] those at its top
---@field age number seconds since it changed
---@field metrics? table<string, any>
---@field in_place boolean
---@field generation integer
---@field reason string

---@class ckpt.policy.Clock
---@field year integer
---@field month integer
---@field day integer
---@field hour integer
---@field minute integer
---@field second integer
---@field weekday integer 1 is Monday, 7 Sunday
---@field offset number seconds that it is ahead of UTC
---@field change? { after: number, offset: number }

---@class ckpt.policy.Event
---@field event "complete"|"result"|"time"|"end"|"preempt"|"error"|"committed"|"failed"
---@field now number seconds since 1970
---@field localtime ckpt.policy.Clock
---@field run string
---@field group string
---@field grace? number
---@field checkpoint ckpt.policy.Unit
---@field result? table<string, any> the last result
---@field results integer
---@field since { results: integer, seconds?: number, checkpoints: integer, bytes: number }
---@field job { seconds: number, left?: number }
---@field saves { seconds?: number, spent: number }
---@field queue { waiting: integer, running: boolean }
---@field store { commits: integer }
---@field error { code: string, class: string, text: string, tries: integer } of "error" and "failed"
---@field suspect? string

---@class ckpt.policy.Checkpoint an entry of the list that `keep` sees
---@field number integer
---@field name string
---@field dir string
---@field step? integer
---@field time number
---@field age number
---@field files integer
---@field bytes number
---@field left_out integer files that it alone lacks, by `exclude` or `newest_only`
---@field metrics? table<string, any>
---@field kind string
---@field newest boolean
---@field pinned boolean
---@field durable boolean
---@field suspect? string

-- ---- what a policy is ----

---@class ckpt.policy.Rule made by a rule of the library

---@alias ckpt.policy.Globs string|table
---@alias ckpt.policy.Answer boolean|string|nil
---@alias ckpt.policy.Chosen (ckpt.policy.Checkpoint|string)[]|nil
---@alias ckpt.policy.Ask fun(e: ckpt.policy.Event, memory: table): ckpt.policy.Answer, string?, any
---@alias ckpt.policy.Leave fun(e: ckpt.policy.Event, memory: table): ckpt.policy.Globs|nil
---@alias ckpt.policy.Tell fun(e: ckpt.policy.Event, memory: table): any
---@alias ckpt.policy.Choose fun(list: ckpt.policy.Checkpoint[], memory: table): ckpt.policy.Chosen, string?

---@class (exact) ckpt.Policy
---@field api integer
---@field unit? ckpt.policy.Globs
---@field exclude? ckpt.policy.Globs|ckpt.policy.Leave
---@field newest_only? ckpt.policy.Globs|{ files: ckpt.policy.Globs, newest?: integer }
---@field complete? ckpt.policy.Rule
---@field markers? { null?: string, temp?: string }
---@field metrics? ckpt.policy.Rule|ckpt.policy.Rule[]
---@field above? ckpt.policy.Globs
---@field with? ckpt.policy.Globs
---@field ready? ckpt.policy.Ask
---@field sync? ckpt.policy.Rule|ckpt.policy.Ask
---@field queue? "newest"|"all"|"skip"|"block"|ckpt.policy.Ask
---@field keep? ckpt.policy.Rule|ckpt.policy.Choose
---@field keep_in_place? "few"|"all"
---@field must? any
---@field would_keep? ckpt.policy.Rule|ckpt.policy.Choose
---@field keep_local? ckpt.policy.Rule|ckpt.policy.Choose
---@field restore? ckpt.policy.Rule|ckpt.policy.Choose
---@field on_error? ckpt.policy.Ask
---@field on_preempt? "newest"|"all"|"none"|ckpt.policy.Ask
---@field on_committed? ckpt.policy.Tell
---@field on_failed? ckpt.policy.Tell

-- ---- what it is made of ----

---@alias ckpt.policy.Time string|number
---@alias ckpt.policy.Size string|number
---@alias ckpt.policy.Best "min"|"max"

---@class (exact) ckpt.policy.When
---@field each_checkpoint fun(): ckpt.policy.Rule
---@field iterations fun(n: integer): ckpt.policy.Rule
---@field seconds fun(time: ckpt.policy.Time): ckpt.policy.Rule
---@field at_most_every fun(time: ckpt.policy.Time): ckpt.policy.Rule
---@field hours fun(from: string, to: string): ckpt.policy.Rule
---@field bytes fun(size: ckpt.policy.Size): ckpt.policy.Rule
---@field every_steps fun(n: integer): ckpt.policy.Rule
---@field before_deadline fun(time: ckpt.policy.Time): ckpt.policy.Rule
---@field overhead_below fun(percent: number): ckpt.policy.Rule
---@field young_daly fun(how: { mtbf?: ckpt.policy.Time }): ckpt.policy.Rule
---@field metric_improved fun(name: string, best: ckpt.policy.Best): ckpt.policy.Rule
---@field node_sync fun(how: table): ckpt.policy.Rule
when = {}

---@class (exact) ckpt.policy.Keep
---@field all fun(): ckpt.policy.Rule
---@field last fun(n: integer): ckpt.policy.Rule
---@field best fun(metric: string, n: integer, best: ckpt.policy.Best): ckpt.policy.Rule
---@field every_steps fun(n: integer): ckpt.policy.Rule
---@field hourly fun(n: integer): ckpt.policy.Rule
---@field daily fun(n: integer): ckpt.policy.Rule
---@field weekly fun(n: integer): ckpt.policy.Rule
---@field monthly fun(n: integer): ckpt.policy.Rule
---@field yearly fun(n: integer): ckpt.policy.Rule
---@field within fun(time: ckpt.policy.Time): ckpt.policy.Rule
---@field budget fun(size: ckpt.policy.Size): ckpt.policy.Rule
---@field spaced fun(factor: number): ckpt.policy.Rule
keep = {}

---@class (exact) ckpt.policy.Done
---@field renamed fun(): ckpt.policy.Rule
---@field closed fun(): ckpt.policy.Rule
---@field marker fun(name: string, how?: { newer?: boolean }): ckpt.policy.Rule
---@field quiet fun(time: ckpt.policy.Time): ckpt.policy.Rule
---@field superset_of_previous fun(): ckpt.policy.Rule
---@field parts fun(glob: string, n: integer): ckpt.policy.Rule
---@field sound fun(): ckpt.policy.Rule
---@field known fun(how: table): ckpt.policy.Rule
done = {}

---@class (exact) ckpt.policy.From
---@field json fun(file: string, path?: string, how?: { own?: boolean }): ckpt.policy.Rule
---@field jsonl fun(file: string, path?: string, how?: { own?: boolean }): ckpt.policy.Rule
---@field name fun(how?: { key?: string, after?: string }): ckpt.policy.Rule
---@field notify fun(): ckpt.policy.Rule
from = {}

---@class (exact) ckpt.policy.Survives
---@field best fun(metric: string, best: ckpt.policy.Best): ckpt.policy.Rule
---@field last fun(n: integer): ckpt.policy.Rule
---@field every_steps fun(n: integer): ckpt.policy.Rule
survives = {}

---@param n integer
---@return ckpt.policy.Rule
function never_fewer_than(n) end

---@param rules table
---@return ckpt.policy.Rule
function any(rules) end

---@param rules table
---@return ckpt.policy.Rule
function all(rules) end

---@param rules table
---@return ckpt.policy.Rule
function none(rules) end

---@param known table
---@return table<string, any>
function options(known) end

---@param text string
---@return string
function pattern(text) end

---@param glob string
---@return table
function proven(glob) end

---@param text string
function note(text) end

---@param text ckpt.policy.Time
---@return number
function duration(text) end

---@param text ckpt.policy.Size
---@return number
function size(text) end
