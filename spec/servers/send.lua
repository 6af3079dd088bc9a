--- send.lua DIR URI: sends a directory to a place in a store.
local store = require "ckpt".store

local job = assert(store.upload { dir = arg[1], uri = arg[2] })
assert(job:wait())
