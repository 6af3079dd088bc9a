#!/bin/bash
# Starts a stand-in for Google Cloud Storage, and what hands out tokens before it. Google's own library is
# served first, unchanged, where it is installed; then test_store_gs is.
set -u
cd "$(dirname "$0")/../.." || exit 1
DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-gs.XXXXXX") || exit 1
trap 'spec/servers/fakegcs.sh stop "$DIR/server"; rm -rf "$DIR"' EXIT
trap 'exit 130' INT TERM
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
unset GOOGLE_APPLICATION_CREDENTIALS GOOGLE_SKIP_SIGNATURE STORAGE_EMULATOR_HOST CLOUDSDK_CONFIG GCE_METADATA_HOST
if ! CKPT_TEST_GS=$(spec/servers/fakegcs.sh start "$DIR/server" 2>"$DIR/why"); then
  echo "1..0 # SKIP $(tail -n 1 "$DIR/why")"
  exit 0
fi
mkdir "$DIR/keys" || exit 1
# It ends with its input, which is this shell's.
coproc GATE { exec spec/servers/tokens.py "${CKPT_TEST_GS##*:}" "$DIR/keys" "$DIR/notes" 2>"$DIR/gate.err"; }
read -r port <&"${GATE[0]}"
export CKPT_TEST_GS CKPT_TEST_GS_GATE=http://127.0.0.1:$port CKPT_TEST_GS_NOTES=$DIR/notes CKPT_TEST_GS_KEYS=$DIR/keys
if python=$(spec/servers/google.sh python); then
  if ! "$python" spec/servers/ask_tokens.py "$CKPT_TEST_GS_GATE" "$DIR/keys" 2>"$DIR/why"; then
    echo "Bail out! google-auth does not get through: $(tail -n 1 "$DIR/why")"
    exit 1
  fi
else
  echo "# google-auth is not there (spec/servers/google.sh install): the stand-in is our word alone"
fi
"${CKPT_BUILD:-build}/spec/store/test_store_gs"
