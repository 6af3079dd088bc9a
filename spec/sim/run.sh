#!/bin/bash
# The whole of `make test-sim`: SEED=n replays one schedule with what happens in it; else COUNT
# schedules (20000) without a violation, 4000 with repairs, 4000 of ranks that end and come back, 300 of tasks with
# one directory, the seeds that once found one, and every seeded fault.
set -u
cd "$(dirname "$0")/../.." || exit 1
sim=$CKPT_BUILD/sim/sim

if [[ -n ${SEED-} ]]; then
  exec "$sim" --trace "$SEED"
fi

# What is told at the end of each part is TAP. A part of which nothing was played has failed.
# shellcheck source=spec/tap.sh
. spec/tap.sh

read -ra seeds < <(grep -o '^[0-9][0-9]*' spec/sim/seeds.txt | tr '\n' ' ')
((${#seeds[@]})) && "$sim" --seeds "${seeds[@]}"
tell $? "the ${#seeds[@]} seeds that once found something: 0 violations"

read -ra seeds < <(sed -n 's/^r\([0-9][0-9]*\).*/\1/p' spec/sim/seeds.txt | tr '\n' ' ')
((${#seeds[@]})) && "$sim" --repairs --seeds "${seeds[@]}"
tell $? "the ${#seeds[@]} seeds of repairs that once found something: 0 violations"

read -ra seeds < <(sed -n 's/^k\([0-9][0-9]*\).*/\1/p' spec/sim/seeds.txt | tr '\n' ' ')
((${#seeds[@]})) && "$sim" --ranks --seeds "${seeds[@]}"
tell $? "the ${#seeds[@]} seeds of ranks that once found something: 0 violations"

echo "schedules with what the protocol must stand:"
((${COUNT:=20000} > 0)) && "$sim" 1 "$COUNT"
tell $? "$COUNT schedules: 0 violations"

echo "schedules with lost entries and repairs:"
"$sim" --repairs 1 "${REPAIRS:=4000}"
tell $? "$REPAIRS schedules with repairs: 0 violations"

echo "schedules of ranks that end, fall silent and come back:"
"$sim" --ranks 1 "${RANKED:=4000}"
tell $? "$RANKED schedules of ranks: 0 violations"

echo "schedules of tasks with one directory:"
"$sim" --shared 1 "${SHARED:=300}"
tell $? "$SHARED schedules of tasks with one directory: 0 violations"

echo "seeded faults:"
mapfile -t faults < <(luajit spec/sim/faults.lua)
((${#faults[@]})) && printf '%s\n' "${faults[@]}" | xargs -P 2 -n 1 spec/sim/fault.sh
tell $? "${#faults[@]} seeded faults, each one caught"
echo "1..$tests"
exit $((failures > 0))
