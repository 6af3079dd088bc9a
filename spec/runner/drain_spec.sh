#!/bin/bash
# `drain`: a live run makes durable what is complete, in time or not, and its job goes on.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
export AWS_ENDPOINT_URL=$PROXY
log=$S3_DIR/log
: >"$log"
cat >"$S3_DIR/job" <<'JOB'
i=0
while [[ ! -e $1/end ]]; do
  if [[ -e $1/make.$((i + 1)) ]]; then
    i=$((i + 1))
    mkdir "$1/out/.new" && head -c 100000 /dev/zero >"$1/out/.new/model.bin" && mv "$1/out/.new" "$1/out/checkpoint-$i"
  fi
  sleep 0.05
done
JOB

asked() { "$CKPT" "$1" "$top/out" --state "$top/state" "${@:2}"; }
# shellcheck disable=SC2317 # of wait_for
lives() { asked status --json | grep '"alive":true'; }
begin() { # NAME WORDS...: a run, whose job makes checkpoints when it is told to
  top=$S3_DIR/$1
  TELL_LOG=("$log" "$top/log")
  mkdir -p "$top/out"
  "$CKPT" run --dir "$top/out" --state "$top/state" --run "$1" --settle 0.1 "${@:2}" \
    -- bash "$S3_DIR/job" "$top" >"$top/log" 2>&1 &
  runner=$!
  wait_for 60 "the run" lives
}
is() { "$CKPT" why "checkpoint-$1" --dir "$top/out" --state "$top/state" --json | grep -E "\"cause\":\"($2)\""; }
make() { # N CAUSE: the next one, and what becomes of it
  touch "$top/make.$1"
  wait_for 60 "checkpoint-$1 to be $2" is "$1" "$2"
}
drain() { asked drain "$@" >"$log" 2>&1; }
ends() {
  touch "$top/end"
  wait "$runner"
}
says() { grep -q -e "$1" "$log"; }

# ---- where there is nothing to do ----
mkdir "$S3_DIR/nobody"
ckpt drain "$S3_DIR/nobody"
tell $(($? != 4)) "where no run is alive it is 4"

cat >"$S3_DIR/rate.lua" <<'LUA'
return { api = 1, sync = when.seconds(3600) }
LUA
begin rate --to "$S3_DIR/rate.store" -p "$S3_DIR/rate.lua"
drain && says "drained    nothing to save"
tell $? "with no checkpoint there is nothing to save"

# ---- what a rule of pace holds back ----
make 1 committed
make 2 skipped
drain --for 60s && says "durable    checkpoint-2" && says "drained    durable in .*rate.store"
tell $? "what a rule of pace holds back is saved"
is 2 committed >"$log"
tell $? "and is committed then"
make 3 skipped
tell 0 "the job goes on, and so does the rule"
ends
tell $? "the run ends as it would have"

cat >"$S3_DIR/never.lua" <<'LUA'
return { api = 1, sync = function() return false, "never" end }
LUA
begin never --to "$S3_DIR/never.store" -p "$S3_DIR/never.lua"
make 1 skipped
drain --json && says '"unit":"checkpoint-1","step":1,"result":"not_wanted"' && says '"drained":"not_wanted","status":"OK"'
tell $? "what the policy does not want is not wanted, which is 0"
ends

# ---- a target that cannot be reached ----
begin away --to s3://ckpt-test/away
make 1 committed
rules '999999 PUT checkpoint- status 503/SlowDown\n'
make 2 'retrying|uploading'
drain --for 3s
tell $(($? != 13)) "while the target is away it is 13, when time is up"
says "time was up (3 s) before it was durable: checkpoint-2, .* of .* left"
tell $? "the checkpoint is named, with what is left of it"
kill -0 "$runner"
tell $? "the job lives"
asked drain --for 3s >"$S3_DIR/first" 2>&1 &
first=$!
asked drain --for 60s --json >"$S3_DIR/second" 2>&1 &
second=$!
wait "$first"
tell $(($? != 13)) "of two the one whose time is up ends with 13"
rules ''
wait "$second"
tell $? "and the other one waits for the target to be back"
cp "$S3_DIR/second" "$log"
says '"unit":"checkpoint-2","step":2,"result":"durable"'
tell $? "and says that it is durable"

# ---- a run that ends meanwhile ----
rules '999999 PUT checkpoint- status 503/SlowDown\n'
make 3 'retrying|uploading'
asked drain --for 60s >"$log" 2>&1 &
first=$!
touch "$top/end"
sleep 1
rules ''
wait "$runner"
tell $? "a run that ends during a drain ends as it would have"
wait "$first"
tell $? "and the drain tells what was durable by then"

# ---- policies that cannot be asked yet: what they remember is in a target that is away ----
cat >"$S3_DIR/hurried.lua" <<'LUA'
return { api = 1, sync = function(e) return e.event == "preempt" or e.checkpoint.step == 1 end }
LUA
begin anyway --to s3://ckpt-test/anyway -p "$S3_DIR/hurried.lua"
make 1 committed
ends
rm "$top/end" "$top/make.1"
mkdir "$top/out/.new" && head -c 1000 /dev/zero >"$top/out/.new/model.bin"
rules '999999 * * status 503/SlowDown\n'
begin anyway --to s3://ckpt-test/anyway -p "$S3_DIR/hurried.lua" --start-anyway --start-wait 1s
drain --for 1s
tell $(($? != 13)) "of a target that has not answered yet nobody says that all is durable"
says "has not answered since the run began"
tell $? "and that is said"
mv "$top/out/.new" "$top/out/checkpoint-2"
# shellcheck disable=SC2317 # of wait_for
complete() { "$CKPT" why checkpoint-2 --dir "$top/out" --state "$top/state" | grep "is not known while"; }
wait_for 60 "checkpoint-2 to be complete" complete
drain --for 2s
tell $(($? != 13)) "what no policy could be asked about is not called unwanted"
says "checkpoint-2.*what the policies remember is not known while the store does not answer"
tell $? "and that is said"
asked status --json >"$log" && says '"bytes_pending":1000,"seconds_to_durable":null'
tell $? "it counts as pending, for who knows how long"
asked drain --for 60s >"$log" 2>&1 &
first=$!
sleep 1
rules ''
wait "$first"
tell $? "it is waited for until the target answers, and then it is saved in spite of the rule"
ends
echo "1..$tests"
exit $((failures > 0))
