#!/bin/bash
# Saves to gs:// through a proxy that loses answers and cuts bodies: what is called committed is there, byte
# by byte, and no secret is told.
set -u
cd "$(dirname "$0")/../.." || exit 1
DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-gs.XXXXXX") || exit 1
SERVER=$PWD/spec/servers/fakegcs.sh PROXY=$PWD/spec/servers/proxy.py CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
proxy_pid=""
trap '[[ -z $proxy_pid ]] || kill "$proxy_pid" 2>/dev/null; "$SERVER" stop "$DIR/server"; rm -rf "$DIR"' EXIT
trap 'exit 130' INT TERM
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY GOOGLE_APPLICATION_CREDENTIALS
if ! url=$("$SERVER" start "$DIR/server" 2>"$DIR/why"); then
  echo "1..0 # SKIP $(tail -n 1 "$DIR/why")"
  exit 0
fi
# shellcheck source=spec/tap.sh
. spec/tap.sh
TELL_LOG=$DIR/log
cd "$DIR" || exit 1
: >rules
mkfifo port
"$PROXY" "${url##*:}" "$DIR/rules" 0 >port 2>proxy.err &
proxy_pid=$!
disown
read -r number <port
export STORAGE_EMULATOR_HOST=http://127.0.0.1:$number
mkdir -p out/checkpoint-1 && head -c 30000000 /dev/urandom >out/checkpoint-1/model.bin && touch out/checkpoint-1/DONE

cycle() { # TEXT RULE
  printf '%s\n' "$2" >rules.new && mv rules.new rules && rm -rf out.ckpt back
  timeout 120 "$CKPT" sync out --to "gs://ckpt-test/$tests" --marker DONE >log 2>&1 &&
    timeout 60 "$CKPT" restore "gs://ckpt-test/$tests" --dir back >>log 2>&1 &&
    cmp out/checkpoint-1/model.bin back/checkpoint-1/model.bin >>log 2>&1
  tell $? "$1"
}
cycle "a part whose answer was lost" "1 PUT upload_id lose"
cycle "a part that was cut on its way" "1 PUT upload_id cut 3000000"
cycle "a small object whose answer was lost" "1 POST uploadType=multipart lose"
cycle "an upload whose beginning was lost" "1 POST uploadType=resumable lose"
cycle "a server that is busy" "2 POST uploadType=resumable status 503"
cycle "a read that was cut" "1 GET alt=media short 100"

printf '9999 POST uploadType=multipart status 501\n' >rules.new && mv rules.new rules && rm -rf out.ckpt
"$CKPT" sync out --to gs://ckpt-test/race --marker DONE >log 2>&1
[[ $? == 2 ]] && grep -q ' gs://ckpt-test: the server does not know' log
tell $? "a server that does not arbitrate is refused, and named as it is written"
echo "1..$tests"
exit "$((failures > 0))"
