--- The runner that tests of policies ask: the one that runs them, else that of the user's PATH.

jit.off(true, true)

---@class ckpt.testing.Runner
---@field path string
return { path = os.getenv "CKPT_RUNNER" or "ckpt-lua" }
