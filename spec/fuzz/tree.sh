#!/bin/bash
# spec/fuzz/tree.sh PROGRAM SEEDS PAGE: so many seeds of test_detect_fuzz that were not run before.
# PAGE says how many that were in all. They are run in batches: each that is clean counts at once,
# also if a later one is not, and the next run begins behind it.
set -eu
program=$1 seeds=$2 page=$3
batch=50 limit=900 # a batch that takes more seconds than that is stuck

# shellcheck disable=SC2016 # the backticks are the page's
counted() { sed -n 's/^| `make fuzz-tree` .* \([0-9]*\) seeds in all.*/\1/p' "$page"; }

((seeds > 0)) || { echo "fuzz-tree: NOTHING WAS RUN: SEEDS=$seeds" >&2; exit 1; }
[[ $(counted) ]] || { echo "fuzz-tree: $page has no row of it with \"N seeds in all\"" >&2; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
while ((seeds > 0)); do
  before=$(counted)
  count=$((seeds < batch ? seeds : batch)) after=$((before + count))
  # A test that says nothing has played nothing.
  if ! CMOCKA_MESSAGE_OUTPUT=TAP SEED=$((before + 1)) COUNT=$count timeout -k 5 $limit "$program" >"$log" 2>&1 ||
    ! grep -q '^ok 1' "$log"; then
    cat "$log"
    echo "fuzz-tree: one of the seeds failed, or was not played; again: SEED=$((before + 1)) COUNT=$count $program" >&2
    exit 1
  fi
  sed -i "s/^\(| \`make fuzz-tree\` .* \)$before seeds in all/\1$after seeds in all/" "$page"
  seeds=$((seeds - count))
  echo "fuzz-tree: seeds $((before + 1)) to $after clean, $after in all"
done
