#!/bin/bash
# Starts an S3 server, and moves trees of files to and from a bucket of it.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
CKPT_LUADIR=$PWD/lua timeout 120 "${CKPT_BUILD:-build}/libexec/ckpt-script" spec/store/trees_s3.lua
