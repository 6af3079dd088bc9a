#!/bin/bash
# moto, an S3 in Python that checks neither keys nor checksums, on loopback: spec/servers/moto.sh VERB [DIR]
#
#   install      brings it, once, from PyPI below ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/servers/moto (300 MB)
#   start DIR    starts one for DIR (which has its log and its pid; its data are in memory), makes the bucket
#                "ckpt-test" and prints the endpoint. PORT in the environment takes that one instead of a free one.
#   stop DIR     ends it
set -u
NAME=moto WHAT="moto"
# shellcheck source=spec/servers/server.sh
. "$(dirname "$0")/server.sh"
SERVER=$ROOT/moto/bin/moto_server

# shellcheck disable=SC2317 # go_install calls it: server.sh's main installs by that
install() {
  local work=$ROOT/moto
  rm -rf "$work"
  python3 -m venv "$work" &&
    timeout "${PIP_PATIENCE:-1800}" "$work/bin/pip" install -q --disable-pip-version-check 'moto[server,s3]==5.2.5' >&2
}

# Its put-if-absent is no single step: of requests at the same time two may win. So it is asked one after the other.
ONE_BY_ONE='
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)'

start() { # DIR
  local port
  mkdir -p "$1" || die "$1 cannot be made"
  # Each start of Python takes a while on a busy machine.
  port=$(PATIENCE=60 begin "$1" "${PORT-}" "${SERVER%/*}/python" -c "$ONE_BY_ONE" @PORT) || exit 1
  AWS_ENDPOINT_URL=http://127.0.0.1:$port
  export AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID=testkey AWS_SECRET_ACCESS_KEY=testsecret AWS_REGION=us-east-1
  "$(dirname "$0")/ask.py" PUT /ckpt-test >/dev/null || die "it made no bucket: $(tail -n 3 "$1/log")"
  echo "$AWS_ENDPOINT_URL"
}

main "$@"
