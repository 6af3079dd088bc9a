std = "luajit"
max_line_length = 100
files["spec/**/*_spec.lua"].std = "+busted"
