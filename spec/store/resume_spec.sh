#!/bin/bash
# A save to a bucket that is cut by SIGKILL goes on where it was, in the next run and on another node. What is
# sent a second time is counted.
#
# Environment: PARTS (20, of 8 MiB), RATE (80 MiB a second), CKPT_LUA (./ckpt-lua).
set -u
cd "$(dirname "$0")/../.." || exit 1
MIB=1048576
PARTS=${PARTS:-20}
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
cat >"$S3_DIR/job" <<'JOB'
cd "$1" && mkdir "$2" && head -c "$3" /dev/urandom >"$2/model.bin" &&
  for i in 1 2 3; do head -c 3000000 /dev/urandom >"$2/$i.bin"; done && touch "$2/DONE"
sleep 600
JOB

run() { "$CKPT" run --run one --dir "$out" --to "$to" --settle 0.2 --marker DONE "$@" >"$S3_DIR/log" 2>&1; }
# A run with its job in a session of their own, which are killed when COMMAND holds.
killed_when() { # COMMAND...
  setsid "$CKPT" run --run one --dir "$out" --to "$to" --settle 0.2 --marker DONE -- \
    bash "$S3_DIR/job" "$out" "$unit" $((PARTS * 8 * MIB)) >"$S3_DIR/log" 2>&1 &
  local runner=$!
  disown
  wait_for 60 "what it is killed for" "$@"
  kill -9 -- "-$runner"
  wait_for 60 "its end" bash -c "! pgrep -s $runner"
}
restored() { # NAME
  rm -rf "$S3_DIR/restored"
  "$CKPT" restore "$to" --dir "$S3_DIR/restored" >>"$S3_DIR/log" 2>&1 &&
    diff -r "$out/$1" "$S3_DIR/restored/$1" >>"$S3_DIR/log" 2>&1
}
attempts() { grep -l '"type":"attempt"' "$log"/* | xargs grep -l "\"unit\":\"$1\"" | wc -l; }

begin() { # of a unit: a fresh log of requests
  unit=$1
  : >"$RULES.log"
}

s3_proxy $((${RATE:-80} * MIB))
export AWS_ENDPOINT_URL=$PROXY
out=$S3_DIR/out to=s3://ckpt-test/exp log=$S3_DATA/exp/.ckpt/log
mkdir "$out"
parts() { grep -o 'PUT .*model.bin.*partNumber=[0-9]*' "$RULES.log" | grep -o '[0-9]*$' | sort -n; }

# Parts that were on their way when it was killed may have arrived, or not.
check() { # TEXT
  local sent
  sent=$(parts | wc -l)
  tell "$((sent + first < PARTS || sent + first > PARTS + 8))" \
    "$1 sends the $sent parts of 8 MiB that are missing after $first were begun"
  tell "$(($(grep -c 'POST .*uploads=' "$RULES.log") > 0))" "to the upload that was begun"
  tell "$(($(attempts "$unit") != 1))" "and it is one attempt"
  restored "$unit"
  tell $? "which is restored byte for byte"
  [[ -z $(find "$S3_DATA/.sgwtmp" -type f) ]]
  tell $? "nothing is left of it"
}

begin checkpoint-1
killed_when grep -q "model.bin.*partNumber=$((PARTS * 6 / 8))&" "$RULES.log"
first=$(parts | wc -l)
begin checkpoint-1
run -- true
tell $? "a run after a crash ends well"
check "it"

begin checkpoint-2
killed_when grep -q "model.bin.*partNumber=$((PARTS * 6 / 8))&" "$RULES.log"
first=$(parts | wc -l)
begin checkpoint-2
mkdir "$S3_DIR/node2"
cp -a "$out" "$S3_DIR/node2/"
out=$S3_DIR/node2/out
run --take-over --state "$S3_DIR/node2/state" -- true
tell $? "a run of another node, with the same files, ends well"
check "it"

# Other bytes than those that were sent: nothing of them may come in.
begin checkpoint-3
killed_when grep -q "model.bin.*partNumber=$((PARTS * 3 / 8))&" "$RULES.log"
printf x | dd of="$out/checkpoint-3/model.bin" bs=1 seek=$((3 * MIB)) conv=notrunc status=none
printf x | dd of="$out/checkpoint-3/1.bin" bs=1 seek=5 conv=notrunc status=none
begin checkpoint-3
run --take-over -- true
tell $? "a run after a crash and a change ends well"
restored checkpoint-3
tell $? "and what it saved is what stands there now"

# An upload of that name that somebody else began before the save was announced is that one's: what it
# would make has none of our marks. The run is killed before it has begun its own.
ask() { spec/servers/ask.py "$@" 2>&1; }
has_upload() { ask GET /ckpt-test "prefix=exp%2F&uploads=" | grep -q "<Key>exp/$1</Key>"; }
ask POST /ckpt-test/exp/checkpoint-4/model.bin uploads= >"$S3_DIR/answer" || cat "$S3_DIR/answer" >&2
sleep 1.1 # a server's times have no fractions
rules '99 POST checkpoint-4/model.bin?uploads= hang\n'
begin checkpoint-4
killed_when grep -q 'POST .*model.bin.uploads=' "$RULES.log"
rules ''
begin checkpoint-4
run -- true
tell $? "a run after a crash before it began to send ends well"
tell "$(($(grep -c 'POST .*model.bin.uploads=' "$RULES.log") != 1))" "it begins an upload of its own"
has_upload checkpoint-4/model.bin
tell $? "and leaves the one that somebody else has begun"
tell "$(($(attempts checkpoint-4) != 1))" "it is one attempt"
restored checkpoint-4
tell $? "which is restored byte for byte"

echo "1..$tests"
exit $((failures > 0))
