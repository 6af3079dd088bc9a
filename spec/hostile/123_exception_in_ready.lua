-- ready: error
-- Another hook.
return {
  api = 1,
  ready = function(e) return e.nothing.at.all end,
}
