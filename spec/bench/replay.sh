#!/bin/bash
# `make bench-replay`: what `policy replay` costs, by how many checkpoints are kept at a time: seconds of
# the processor, of the runner and of the policies' process together.
set -u
cd "$(dirname "$0")/../.." || exit 1
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
made=${CKPT_BUILD:-build}/spec/commit/log/test_log_made
dir=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
TIMEFORMAT='%U %S'
printf '%8s %6s %10s %7s %12s\n' commits kept asked cpu_s us_per_asked
for commits in ${COMMITS:-2000 5000 10000}; do
  rm -rf "$dir/log"
  "$made" "$dir/log" "$commits" || exit 1
  for kept in ${KEPT:-100 1000 2000}; do
    echo "return { api = 1, keep = keep.last($kept) }" >"$dir/last.lua"
    { time "$CKPT" policy replay "$dir/log" -p "$dir/last.lua" --max-delete 100% --json >"$dir/out"; } 2>"$dir/time" ||
      { cat "$dir/time"; exit 1; }
    # After each commit it is asked about those that are left, and the new one.
    tail -n 1 "$dir/time" | awk -v n="$commits" -v k="$kept" '{
      full = n > k ? k : n
      asked = full * (full + 1) / 2 + (n - full) * (k + 1)
      printf "%8d %6d %10d %7.1f %12.2f\n", n, k, asked, $1 + $2, ($1 + $2) * 1e6 / asked
    }'
  done
done
