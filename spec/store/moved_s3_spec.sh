#!/bin/bash
# A log that stands already, in a bucket that has moved: whether the server that answers now arbitrates between
# writers is tried out before anything is written, where it has another address or calls itself otherwise.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
direct=$AWS_ENDPOINT_URL
export AWS_ENDPOINT_URL=$PROXY

out=$S3_DIR/out to=s3://ckpt-test/team/moved step=0
save() { # another checkpoint, and what came of it
  step=$((step + 1))
  mkdir -p "$out/checkpoint-$step" && echo "$step" >"$out/checkpoint-$step/model.bin" && touch "$out/checkpoint-$step/DONE"
  ckpt sync "$out" --to "$to" --marker DONE --settle 0 "$@"
}
races() { grep -c 'PUT .*/race-' "$RULES.log"; }
all() { (cd "$S3_DATA" && find . -type f ! -path './.sgwtmp/*' -exec sha256sum {} + | sort -k 2); }
is() { # TEXT WANTED GOT
  echo "wanted $2, got $3" >>"$S3_DIR/log"
  tell "$([[ $2 == "$3" ]]; echo $?)" "$1"
}

rules ''
save
is "a new place is tried out" 80 "$(races)"
rules ''
save
tell $? "a second save"
is "needs no trial" 0 "$(races)"
rules ''
rm -rf "$out.ckpt"
save
is "nor does one from another state directory" 0 "$(races)"

# --- the same address, another server behind it ---------------------------------------------

all >"$S3_DIR/before"
rules '9999 * * strip if-none-match Other/2\n'
save
is "one that calls itself otherwise, and ignores If-None-Match, is refused" 2 $?
grep -q 'cannot arbitrate between writers' "$S3_DIR/log" && grep -q -- --single-writer "$S3_DIR/log"
tell $? "which says why, and what helps"
all | diff "$S3_DIR/before" - >>"$S3_DIR/log"
tell $? "and nothing was written there"
for n in 1 2; do
  "$CKPT" run --dir "$S3_DIR/q$n" --to "$to" --take-over --continue-run -- true >"$S3_DIR/log" 2>&1 &
done
wait
all | diff "$S3_DIR/before" - >"$S3_DIR/log"
tell $? "nor by two runs at once, which would both have a term of one number"

for verb in "rm $to checkpoint-1" "mark bad $to checkpoint-1" "gc $to --grace-delete 0"; do
  # shellcheck disable=SC2086 # its words
  ckpt $verb
  is "${verb%% *} is refused, too" 2 $?
done
lost=$S3_DATA/team/moved/.ckpt/log/00000000000000000002.json
cp -a "$lost" "$S3_DIR/lost" && rm "$lost" # versitygw keeps its attributes
ckpt repair "$to" --take-over
is "so is repair, of which two would both take one epoch" 2 $?
cp -a "$S3_DIR/lost" "$lost"
all | diff "$S3_DIR/before" - >"$S3_DIR/log"
tell $? "and has written nothing"
ckpt restore "$to" --dir "$S3_DIR/back"
tell $? "who only reads may read"

rules '9999 * * strip nothing Other/2\n'
save
tell $? "one that arbitrates is taken"
is "after a trial" 80 "$(races)"
rules '9999 * * strip nothing Other/2\n'
save
is "and needs no other one" 0 "$(races)"
rules ''
save
is "nor does the one before" 0 "$(races)"

# --- another address ------------------------------------------------------------------------

export AWS_ENDPOINT_URL=$direct
save
tell $? "another address, too, is taken after a trial"
grep -q "${direct##*/}" "$S3_DATA/team/moved/.ckpt/race"
tell $? "which is noted in the store"
save --single-writer
tell $? "--single-writer needs none"

# --- what is noted is a hint ----------------------------------------------------------------

for text in '' x '{"format":1,"reader":1,"proven":[1]}' '{"format":9,"reader":9}'; do
  printf '%s' "$text" >"$S3_DATA/team/moved/.ckpt/race"
  save
  tell $? "what cannot be read ($text) costs a trial, and is replaced"
  grep -q "${direct##*/}" "$S3_DATA/team/moved/.ckpt/race"
  tell $? "by what can be read"
done
rm "$S3_DATA/team/moved/.ckpt/race"
export AWS_ENDPOINT_URL=$PROXY
rules ''
save
is "where nothing is noted, as by 1.0, it is tried out" 80 "$(races)"
ckpt gc "$to" --remove-run --yes
[[ ! -e $S3_DATA/team/moved/.ckpt/race ]]
tell $? "a run that is removed takes it along"
echo "1..$tests"
exit $((failures > 0))
