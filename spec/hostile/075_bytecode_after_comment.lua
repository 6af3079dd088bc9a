# -- load: syntax
LJ
