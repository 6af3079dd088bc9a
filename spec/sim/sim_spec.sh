#!/bin/bash
# The short form of `make test-sim`: some hundred schedules, the seeds that once found something, and
# whether the faults are still faults.
set -u
cd "$(dirname "$0")/../.." || exit 1
sim=${CKPT_BUILD:-build}/sim/sim

test_one() {
  local number=$1 promise=$2 out
  shift 2
  if out=$("$sim" "$@"); then
    echo "ok $number - $promise"
  else
    echo "not ok $number - $promise"
    echo "$out"
  fi
}

# What the engine's text has moved away from under it is a fault no more, and nobody would notice.
test_faults() {
  local number=$1 dir name bad=0 count=0
  dir=$(mktemp -d) || exit 1
  for name in $(luajit spec/sim/faults.lua); do
    count=$((count + 1))
    luajit spec/sim/faults.lua "$name" "$dir" >/dev/null || bad=$((bad + 1))
  done 2>&1
  rm -rf "$dir"
  ((count > 0 && bad == 0)) || printf 'not '
  echo "ok $number - each_fault_can_be_put_back_into_the_engine"
}

echo 1..8
test_one 1 "no_schedule_breaks_the_protocol" 1 600
seeds=$(grep -o '^[0-9][0-9]*' spec/sim/seeds.txt | tr '\n' ' ')
# shellcheck disable=SC2086 # each seed is an argument
test_one 2 "the_seeds_that_once_found_something_find_nothing" --seeds $seeds
test_faults 3
test_one 4 "no_schedule_of_lost_entries_and_repairs_breaks_a_promise" --repairs 1 300
seeds=$(sed -n 's/^r\([0-9][0-9]*\).*/\1/p' spec/sim/seeds.txt | tr '\n' ' ')
# shellcheck disable=SC2086
test_one 5 "the_seeds_of_repairs_that_once_found_something_find_nothing" --repairs --seeds $seeds
test_one 6 "no_rank_that_ends_or_falls_silent_is_waited_for_in_vain_or_told_what_is_not_true" --ranks 1 200
seeds=$(sed -n 's/^k\([0-9][0-9]*\).*/\1/p' spec/sim/seeds.txt | tr '\n' ' ')
# shellcheck disable=SC2086
test_one 7 "the_seeds_of_ranks_that_once_found_something_find_nothing" --ranks --seeds $seeds
test_one 8 "no_unit_is_complete_that_a_task_of_its_directory_has_not_seen_so" --shared 1 20
