#!/bin/bash
# A proxy that dies in the middle of net.sh costs no scenario: it is started again, that is said, and
# what was under way is played again.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-lost.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

TMPDIR=$work COUNT=6 PATIENCE=8 "$(dirname "$0")/net.sh" >"$work/out" 2>&1 &
net=$!
# The second one that is started: the first is only tried. It dies while scenarios have begun.
for _ in {1..600}; do
  kill -0 "$net" 2>/dev/null || break
  begun=("$work"/ckpt-s3.*/work/*/out)
  [[ ! -d ${begun[0]} ]] || break
  sleep 0.05
done
sleep 0.5
killed=no
for file in "$work"/ckpt-s3.*/toxiproxy/pid; do
  [[ -e $file ]] && kill -KILL "$(<"$file")" && killed=yes
done
wait "$net"
rc=$?

if grep -q '^1\.\.0 # SKIP' "$work/out"; then
  cat "$work/out"
  exit 0
fi
[[ $killed == yes && $rc == 0 ]] && grep -q '^ok 1 - 6 scenarios were played' "$work/out" &&
  grep -q '^# toxiproxy died, and was started again' "$work/out"
rc=$?
((rc == 0)) || sed 's/^/# /' "$work/out"
echo "$( ((rc)) && echo 'not ok' || echo ok) 1 - a proxy that dies is started again, and what was under way is played again"
echo 1..1
exit "$rc"
