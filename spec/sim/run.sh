#!/bin/bash
# The whole of `make test-sim`: SEED=n replays one schedule with what happens in it; else COUNT
# schedules (20000) without a violation, the seeds that once found one, and every seeded fault.
set -u
cd "$(dirname "$0")/../.." || exit 1
sim=$CKPT_BUILD/sim/sim

if [[ -n ${SEED-} ]]; then
  exec "$sim" --trace "$SEED"
fi

seeds=$(grep -o '^[0-9][0-9]*' spec/sim/seeds.txt | tr '\n' ' ')
# shellcheck disable=SC2086 # each seed is an argument
"$sim" --seeds $seeds || exit 1
echo "schedules with what the protocol must stand:"
"$sim" 1 "${COUNT:-20000}" || exit 1
echo "0 violations"

echo "seeded faults:"
luajit spec/sim/faults.lua | xargs -P 2 -n 1 spec/sim/fault.sh || {
  echo "not every seeded fault was caught"
  exit 1
}
echo "$(luajit spec/sim/faults.lua | wc -l) seeded faults, each one caught"
