#!/bin/bash
# The short form of `make test-sim`: some hundred schedules, and the seeds that once found something.
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

echo 1..2
test_one 1 "no_schedule_breaks_the_protocol" 1 300
seeds=$(grep -o '^[0-9][0-9]*' spec/sim/seeds.txt | tr '\n' ' ')
# shellcheck disable=SC2086 # each seed is an argument
test_one 2 "the_seeds_that_once_found_something_find_nothing" --seeds $seeds
