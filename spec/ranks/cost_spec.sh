#!/bin/bash
# What ranks may ask of a bucket, by the count of cost.py.
set -u
cd "$(dirname "$0")/../.." || exit 1
if [[ -n ${SANITIZE:-} ]]; then
  echo "1..0 # SKIP what is asked does not change with sanitizers, and each process takes long to start"
  exit 0
fi
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
RANKS=4 MINUTE=20 TARGET=s3://ckpt-test/cost ROWS=$S3_DIR/rows python3 spec/ranks/cost.py >"$S3_DIR/log" 2>&1
tell $? "four ranks save two checkpoints, and end"

# PHASE MEMBER: what is known of it
of() {
  python3 -c '
import json, sys
print(*[int(row[sys.argv[3]]) for row in map(json.loads, open(sys.argv[1])) if row["phase"].startswith(sys.argv[2])])
' "$S3_DIR/rows" "$@"
}

raced=$(of start raced)
((raced == 1))
tell $? "one rank of the launch runs the race of writers: $raced"
# Where the machine is slow, who waits has looked more than once: each look is 5 s after the one before, or more.
most=$(of "a checkpoint" most) slow=$(of "a checkpoint" seconds)
((most > 0 && most <= 6 + (slow > 10 ? (slow - 5) / 5 : 0)))
tell $? "a rank asks at most 6 times for a checkpoint, beside its files: $most"
lists=$(of a lists)
[[ $lists =~ ^[01](" "[01])*$ ]]
tell $? "ranks but the first list the parts once at most, also while one is late: $lists"
asked=$(of nothing requests)
((asked == 0))
tell $? "ranks that have nothing to do ask nothing: $asked"
# It is announced and sent with 4, and looked for after 5, 12 and perhaps 20 seconds.
most=$(of "a rank is late" most)
((most > 0 && most <= 8))
tell $? "who waits for a rank that is late looks for one key, more and more seldom: $most in 20 s"
echo "1..$tests"
exit $((failures > 0))
