#!/bin/bash
# The way to a bucket spoiled by toxiproxy: spec/net/net.sh, or make test-net
#
# Environment: COUNT (200 scenarios), SEED (1), FROM (0: the number of the first; with COUNT=1 one is played
# again), PATIENCE (30 s until a command is told to end), CKPT_LUA (./ckpt-lua).
set -u
cd "$(dirname "$0")/../.." || exit 1
export CKPT_LUA=${CKPT_LUA:-$PWD/ckpt-lua}
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
end() {
  spec/servers/toxiproxy.sh stop "$S3_DIR/toxiproxy"
  s3_end
}
trap end EXIT
if ! spec/servers/toxiproxy.sh start "$S3_DIR/toxiproxy" >/dev/null 2>"$S3_DIR/why"; then
  echo "1..0 # SKIP $(tail -n 1 "$S3_DIR/why")"
  exit 0
fi
spec/servers/toxiproxy.sh stop "$S3_DIR/toxiproxy" # net.py starts one, and again where it dies
spec/net/net.py "${COUNT:-200}" "${FROM:-0}" "${SEED:-1}" "$S3_DIR"
