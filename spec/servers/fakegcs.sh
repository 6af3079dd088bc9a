#!/bin/bash
# A stand-in for Google Cloud Storage, on loopback: spec/servers/fakegcs.sh VERB [DIR]
#
#   install      builds it once, as spec/servers/versitygw.sh does its server
#   start DIR    starts one for DIR (which has its log and its pid; the objects are in its memory), makes
#                the bucket "ckpt-test" and prints the endpoint, as http://127.0.0.1:PORT. PORT in the
#                environment takes that one instead of a free one.
#   stop DIR     ends it
#
# It looks at no token. Its JSON API is good but for the question how far a resumable upload has come.
set -u
NAME=fakegcs WHAT="stand-in for GCS" MODULE=github.com/fsouza/fake-gcs-server@v1.56.1
# shellcheck source=spec/servers/server.sh
. "$(dirname "$0")/server.sh"

make_bucket() { # ENDPOINT
  python3 - "$1" <<'PY'
import sys, urllib.request
body = b'{"name": "ckpt-test"}'
way = urllib.request.build_opener(urllib.request.ProxyHandler({}))
way.open(urllib.request.Request(sys.argv[1] + "/storage/v1/b?project=test", body,
                                {"Content-Type": "application/json"}), timeout=20)
PY
}

start() { # DIR
  local port
  mkdir -p "$1" || die "$1 cannot be made"
  port=$(begin "$1" "${PORT-}" "$SERVER" -scheme http -host 127.0.0.1 -port @PORT -backend memory \
    -external-url http://127.0.0.1:@PORT -public-host 127.0.0.1:@PORT) || exit 1
  make_bucket "http://127.0.0.1:$port" || {
    stop "$1"
    die "the bucket cannot be made"
  }
  echo "http://127.0.0.1:$port"
}

main "$@"
