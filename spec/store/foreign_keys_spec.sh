#!/bin/bash
# Keys of another tool's that cannot be files here: an error names each, and nothing of its place is brought.
set -u
cd "$(dirname "$0")/../.." || exit 1
DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-keys.XXXXXX") || exit 1
trap 'rm -rf "$DIR"' EXIT
# shellcheck source=spec/tap.sh
. spec/tap.sh
TELL_LOG=$DIR/log
CKPT=${CKPT_LUA:-$PWD/ckpt-lua} KEYS=$PWD/spec/servers/keys.py
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY AWS_PROFILE AWS_SESSION_TOKEN
export AWS_ACCESS_KEY_ID=k AWS_SECRET_ACCESS_KEY=s AWS_REGION=us-east-1
export AWS_SHARED_CREDENTIALS_FILE=$DIR/none AWS_CONFIG_FILE=$DIR/none
cd "$DIR" || exit 1

restore() { # KEY...: of a place that has these
  local port
  coproc BUCKET { exec "$KEYS" "$@"; }
  local pid=$BUCKET_PID
  read -r port <&"${BUCKET[0]}"
  AWS_ENDPOINT_URL=http://127.0.0.1:$port timeout 20 "$CKPT" restore s3://theirs/exp --dir back >log 2>&1
  local rc=$?
  eval "exec ${BUCKET[1]}>&-"
  wait "$pid" 2>/dev/null
  return $rc
}
refused() { # TEXT NAMED KEY...
  restore good "${@:3}"
  local rc=$?
  ((rc != 0 && rc < 124)) && grep -qF -- "$2" log && [[ -z $(find back -type f 2>/dev/null) && ! -e evil ]]
  tell $? "$1"
}

restore good 'sub/100%' && [[ $(cat back/exp/good back/exp/sub/100%) == goodsub/100% ]]
tell $? "what can be files comes back"
rm -rf back
refused "an empty component is refused by its name" 'a//b' 'a//b'
refused "a directory that has bytes, too" 'x/' 'x/'
refused "the way out, too" '../evil' '../evil'
refused "within a key, too" 'a/../../evil' 'a/../../evil'
refused "a dot, too" 'a/./b' 'a/./b'
long=$(printf 'n%.0s' {1..256})
refused "a component that no file system takes, too" "${long:0:40}" "$long"
refused "a file that is a directory, too" 'both' both both/file
echo "1..$tests"
