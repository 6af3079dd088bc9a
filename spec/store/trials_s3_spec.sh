#!/bin/bash
# ckpt.DurableTrainable and ckpt.SyncerCallback with a bucket: the tests are in trials_on_s3.lua.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
CKPT_LUADIR=${CKPT_LUADIR:-$PWD/lua} "${CKPT_BUILD:-build}/libexec/ckpt-script" \
  "$(command -v busted)" -o TAP --lpath='spec/?.lua' spec/store/trials_on_s3.lua
