#!/bin/bash
# What others read of a bucket that we wrote, and what we read of one that they wrote: boto3, pyarrow, s3fs, s5cmd,
# rclone and Ray, each both ways, with equal names and equal bytes.
#
# Environment: CKPT_LUA (./ckpt-lua), SETUP (no: nothing is installed).
set -u
cd "$(dirname "$0")/../.." || exit 1
spec/servers/tools.sh install || echo "# not all of the other tools could be installed"
python=$(spec/servers/tools.sh python) || {
  echo "1..0 # SKIP boto3 and the others are not there, and cannot be had from PyPI"
  exit 0
}
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
export CKPT_LUA=${CKPT_LUA:-$PWD/ckpt-lua} CKPT_LUADIR=$PWD/lua
export CKPT_SCRIPT=${CKPT_BUILD:-$PWD/build}/libexec/ckpt-script
"$python" spec/servers/interop.py "$S3_DIR"
