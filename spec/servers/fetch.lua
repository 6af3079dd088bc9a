--- fetch.lua URI DIR: brings a place into a directory by the object library.
local ckpt = require "ckpt"

local got, text = ckpt.Checkpoint(arg[1]):to_directory(arg[2])
assert(got, text)
