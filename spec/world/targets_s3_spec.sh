#!/bin/bash
# What second_target_spec.lua and lost_commit_spec.lua say of targets, in the bucket of a real server.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
busted -o TAP --lpath='spec/?.lua' spec/world/second_target_spec.lua spec/world/lost_commit_spec.lua
