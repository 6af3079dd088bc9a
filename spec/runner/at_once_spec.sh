#!/bin/bash
# Two jobs that begin in the same moment with one target, as tasks of an array do: one of them saves, and the
# other is refused. A term is opened before its lease is written, so each used to push the other aside.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/tap.sh
. spec/tap.sh
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
TOP=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-at-once.XXXXXX") || exit 1
trap 'rm -rf "$TOP"' EXIT

job() { # NAME
  "$CKPT" run --run one --dir "$TOP/$1" --to "$TOP/store" --settle 0.1 -- \
    sh -c "mkdir '$TOP/$1/checkpoint-1' && echo x >'$TOP/$1/checkpoint-1/f' && sleep 2" >"$TOP/$1.log" 2>&1
  echo $? >"$TOP/$1.code"
}

for round in 1 2 3; do
  rm -rf "${TOP:?}"/*
  mkdir "$TOP/a" "$TOP/b"
  job a &
  job b &
  wait
  TELL_LOG=("$TOP/a.log" "$TOP/b.log")
  [[ $(sort -n "$TOP/a.code" "$TOP/b.code" | xargs) == "0 11" ]]
  tell $? "of two that begin at once one is refused ($round)"
  [[ $("$CKPT" ls "$TOP/store" | grep -c checkpoint-1) == 1 ]]
  tell $? "and the other saves"
done
echo "1..$tests"
exit $((failures > 0))
