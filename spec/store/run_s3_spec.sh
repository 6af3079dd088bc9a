#!/bin/bash
# The runner with a bucket as its target.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
export AWS_ENDPOINT_URL=$PROXY
out=$S3_DIR/out to=s3://ckpt-test/team/exp
mkdir "$out"

asked() { grep -c "$1" "$RULES.log"; }
run() { "$CKPT" run --run one --dir "$out" --to "$to" --settle 0.2 --marker DONE -- "$@" >"$S3_DIR/log" 2>&1; }
restored() { # NAME: is the newest that one, and as it was?
  rm -rf "$S3_DIR/restored"
  "$CKPT" restore "$to" --dir "$S3_DIR/restored" >>"$S3_DIR/log" 2>&1 &&
    diff -r "$out/$1" "$S3_DIR/restored/$1" >>"$S3_DIR/log" 2>&1
}
cat >"$S3_DIR/job" <<'JOB'
cd "$1" && mkdir "$2" "$2/sub dir" && head -c "$3" /dev/urandom >"$2/model.bin"
printf x >"$2/sub dir/"$'odd %41 \xff\n name' && : >"$2/empty" && touch "$2/DONE"
JOB

# --- save, list, verify, restore ------------------------------------------------------------

rules ''
run bash "$S3_DIR/job" "$out" checkpoint-1 20000000
tell $? "a run saves its checkpoint"
restored checkpoint-1
tell $? "which is restored byte for byte, odd names too"
"$CKPT" verify "$to" >"$S3_DIR/log" 2>&1
tell $? "and verified"
cmp -s "$out/checkpoint-1/model.bin" "$S3_DATA/team/exp/checkpoint-1/model.bin"
tell $? "its file stands in the bucket as it is"
echo x >>"$S3_DATA/team/exp/checkpoint-1/model.bin"
"$CKPT" verify "$to" >"$S3_DIR/log" 2>&1
tell "$(($? != 5))" "what was changed there is found"

# --- a save that fails goes on where it was -------------------------------------------------

rules '6 PUT partNumber=4& status 503/SlowDown\n'
run bash "$S3_DIR/job" "$out" checkpoint-2 60000000
tell $? "a save that failed once is tried again"
restored checkpoint-2
tell $? "it is whole"
twice=$(grep -o 'PUT .*partNumber=[0-9]*' "$RULES.log" | grep -v 'partNumber=4$' | sort | uniq -d | wc -l)
tell "$((twice || $(asked 'partNumber=4&') != 7))" "and no part that had arrived is sent again"
tell "$(($(grep -l '"attempt"' "$S3_DATA"/team/exp/.ckpt/log/* | xargs grep -l checkpoint-2 | xargs grep -l '"type":"attempt"' | wc -l) != 1))" "it is one attempt"
[[ -z $(find "$S3_DATA/.sgwtmp" -type f) ]]
tell $? "nothing is left of it"

# --- what cannot be -------------------------------------------------------------------------

AWS_SECRET_ACCESS_KEY=wrong "$CKPT" ls "$to" >"$S3_DIR/log" 2>&1
tell "$(($? != 7))" "wrong keys end with 7"
"$CKPT" ls s3://ckpt-none/x >"$S3_DIR/log" 2>&1
tell "$(($? != 10))" "no bucket with 10"
rules '99 * * status 503\n'
"$CKPT" ls "$to" >"$S3_DIR/log" 2>&1
tell "$(($? != 6))" "a server that stays busy with 6"
to=s3://ckpt-test/fresh
rm -rf "$out" "$out.ckpt" && mkdir "$out"
rules '99 PUT race status 200\n'
run bash "$S3_DIR/job" "$out" checkpoint-1 100
rc=$?
grep -q -- --single-writer "$S3_DIR/log"
tell "$(($? || rc == 0))" "a server that does not arbitrate is refused, and --single-writer is named"
echo "1..$tests"
exit $((failures > 0))
