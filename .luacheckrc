std = "luajit"
max_line_length = 100
exclude_files = { "spec/hostile/[0-9]*.lua" }
files["spec/**/*_spec.lua"].std = "+busted"
files["policies"].read_globals = {
  "all",
  "any",
  "done",
  "duration",
  "from",
  "keep",
  "none",
  "note",
  "options",
  "pattern",
  "proven",
  "size",
  "when",
}
