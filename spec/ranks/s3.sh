#!/bin/bash
# ranks.py with a bucket as its target, and fewer checkpoints. Skipped, and said so, without a server.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
export TARGET=s3://ckpt-test/ranks RANKS=${RANKS:-4} CHECKPOINTS=${CHECKPOINTS:-6} KILLS=${KILLS:-4}
spec/ranks/ranks.py
