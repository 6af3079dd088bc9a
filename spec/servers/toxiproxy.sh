#!/bin/bash
# A proxy that spoils connections, on loopback: spec/servers/toxiproxy.sh VERB [DIR]
#
#   install      builds it once, as spec/servers/versitygw.sh does its server
#   start DIR    starts one for DIR (which has its log and its pid), and prints the port of its API
#   stop DIR     ends it
set -u
NAME=toxiproxy WHAT=toxiproxy MODULE=github.com/Shopify/toxiproxy/v2/cmd/server@v2.9.0
# shellcheck source=spec/servers/server.sh
. "$(dirname "$0")/server.sh"

start() { # DIR
  mkdir -p "$1" || die "$1 cannot be made"
  begin "$1" "" env LOG_LEVEL=error "$SERVER" -host 127.0.0.1 -port @PORT
}

main "$@"
