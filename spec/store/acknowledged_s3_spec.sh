#!/bin/bash
# A bucket that takes its time: what is said to be there is what the server has acknowledged.
set -u
cd "$(dirname "$0")/../.." || exit 1
MIB=1048576 TOTAL=$((3 * 8 * 1048576 + 3))
TERMINAL=$PWD/spec/runner/terminal.py
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
out=$S3_DIR/out
to=s3://ckpt-test/slow
mkdir -p "$out/checkpoint-1"
head -c $((3 * 8 * MIB)) /dev/urandom >"$out/checkpoint-1/model.bin"
echo '{}' >"$out/checkpoint-1/trainer_state.json"
rules '99 PUT partNumber=3 hang'

AWS_ENDPOINT_URL=$PROXY "$TERMINAL" env TERM=xterm "$CKPT" sync "$out" --to "$to" --settle 0 \
  >"$S3_DIR/screen" 2>&1 &
runner=$!
disown
# shellcheck disable=SC2317 # wait_for calls it
left() { "$CKPT" status "$out" --json 2>"$S3_DIR/log" | grep -o '"bytes_left":[0-9]*,"unmatched"' | grep -o '[0-9]*'; }
# shellcheck disable=SC2317
all_but_one() { [[ $(left) == $((8 * MIB)) ]]; }
drawn() { tr '\r' '\n' <"$S3_DIR/screen" | grep -a 'saving checkpoint-1: '; }

wait_for 60 "two of three parts" all_but_one
tell $? "status knows of two parts, which are acknowledged, and of one, which is not"
why=$("$CKPT" why "$out/checkpoint-1" 2>&1)
grep -q "$((TOTAL - 8 * MIB)) of $TOTAL bytes are there" <<<"$why"
tell $? "so does why"
wait_for 30 "the line of progress" eval 'drawn | grep -q " 16 MiB of 24 MiB (66%)"'
tell $? "and the line of progress"
! drawn | grep -Eq '\((6[7-9]|[7-9][0-9]|100)%'
tell $? "which never says more"
sync=$(pgrep -P "$runner")
kill -9 "$sync"
wait_for 30 "its end" bash -c "! kill -0 $runner"
rules ''
ckpt sync "$out" --to "$to" --settle 0 && ckpt verify "$to"
tell $? "the next one ends it"

# At the end the target is looked at once more, if it answers.
cat >"$S3_DIR/job" <<'JOB'
mkdir "$1/.new" && echo w >"$1/.new/model.bin" && echo '{}' >"$1/.new/trainer_state.json" &&
  mv "$1/.new" "$1/checkpoint-2" && "$2" notify checkpoint=checkpoint-2 --wait &&
  echo "99 HEAD checkpoint-2/.ckpt-manifest.json hang" >"$3.new" && mv "$3.new" "$3"
JOB
AWS_ENDPOINT_URL=$PROXY ckpt run --run r --continue-run --dir "$out" --to "$to" -- \
  sh "$S3_DIR/job" "$out" "$CKPT" "$RULES"
tell $? "a run ends well where the target does not answer the last question"
grep -q '^HEAD .*checkpoint-2/.ckpt-manifest.json hang$' "$RULES.log" &&
  grep -q '; durable in s3://ckpt-test/slow$' "$S3_DIR/log"
tell $? "it was asked, and nothing is known against it"
rules ''
AWS_ENDPOINT_URL=$PROXY ckpt run --run r --continue-run --dir "$out" --to "$to" -- \
  sh -c "rm -rf '$S3_DATA'/slow/checkpoint-2*"
(($? == 5)) && grep -q 'NOT durable: checkpoint-2' "$S3_DIR/log"
tell $? "and one whose target was emptied meanwhile says so"

echo "1..$tests"
exit $((failures > 0))
