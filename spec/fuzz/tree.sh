#!/bin/bash
# spec/fuzz/tree.sh PROGRAM SEEDS PAGE: so many seeds of test_detect_fuzz that were not run before.
# PAGE says how many that were in all; when all were clean, it says the new number.
set -eu
program=$1 seeds=$2 page=$3

# shellcheck disable=SC2016 # the backticks are the page's
before=$(sed -n 's/^| `make fuzz-tree` .* \([0-9]*\) seeds in all.*/\1/p' "$page")
[[ $before ]] || { echo "fuzz-tree: $page has no row of it with \"N seeds in all\"" >&2; exit 1; }
((seeds > 0)) || { echo "fuzz-tree: NOTHING WAS RUN: SEEDS=$seeds" >&2; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for ((seed = before + 1; seed <= before + seeds; seed++)); do
  # A test that says nothing has played nothing.
  if ! CMOCKA_MESSAGE_OUTPUT=TAP SEED=$seed timeout -k 5 60 "$program" >"$log" 2>&1 || ! grep -q '^ok 1' "$log"; then
    cat "$log"
    echo "fuzz-tree: seed $seed failed, or was not played; again: SEED=$seed $program" >&2
    exit 1
  fi
done
after=$((before + seeds))
sed -i "s/^\(| \`make fuzz-tree\` .* \)$before seeds in all/\1$after seeds in all/" "$page"
echo "fuzz-tree: $seeds seeds clean, $after in all"
