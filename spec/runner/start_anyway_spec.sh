#!/bin/bash
# --start-anyway: a job begins though its store does not answer, where what it goes on from is surely the newest;
# and what becomes of its saves when the store answers.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
direct=$AWS_ENDPOINT_URL
export AWS_ENDPOINT_URL=$PROXY
cat >"$S3_DIR/lib" <<'LIB'
save() { # DIR N
  mkdir "$1/checkpoint-$2" && echo "weights $2" >"$1/checkpoint-$2/model.bin" && touch "$1/checkpoint-$2/DONE"
}
LIB
down() { rules "999999 * * status 503/SlowDown\n"; }
up() { rules ""; }

# NAME WORDS... -- JOB: a run with a directory and a target of that name; the job is shell text, with save().
run() {
  local name=$1 words=()
  shift
  while [[ $1 != -- ]]; do words+=("$1") && shift; done
  out=$S3_DIR/$name
  mkdir -p "$out"
  rm -f "$S3_DIR/began"
  "$CKPT" run --run one --dir "$out" --to "s3://ckpt-test/$name" --marker DONE --settle 0.2 --start-wait 1s --grace 2s \
    "${words[@]}" \
    -- bash -c ". '$S3_DIR/lib'; echo \"\${CKPT_RESUME-none}\" >'$S3_DIR/began'; $2" >"$S3_DIR/log" 2>&1
}
began() { [[ -e $S3_DIR/began ]]; }
begun() { # NAME: a place with one commit
  up
  run "$1" -- "save '$S3_DIR/$1' 1" || { echo "Bail out! no commit"; exit 1; }
}
# A job that lives until the store was asked, and answered.
until_told="for i in {1..400}; do grep -q 'answers now\|is saved here any more' '$S3_DIR/log' && break; sleep 0.05; done"
heal="mv '$S3_DIR/none' '$RULES'"
: >"$S3_DIR/none"
heals() { : >"$S3_DIR/none"; }

begun tied
down && heals
run tied --start-anyway -- "save '$S3_DIR/tied' 2; $heal; $until_told; cat '$S3_DIR/tied.ckpt/watchers/'* >'$S3_DIR/told'"
[[ $? == 0 && $(<"$S3_DIR/began") == "$S3_DIR/tied/checkpoint-1" ]]
tell $? "the newest commit stands whole here: the job begins from it"
grep -q "committed checkpoint-2" "$S3_DIR/log"
tell $? "and when the store answers, what it saved is committed"
grep -q '"unit":"checkpoint-1"' "$S3_DIR/told"
tell $? "and the other watchers hear of what was saved before"

down
run tied -- true
[[ $? == 6 ]] && ! began
tell $? "without the option it does not begin"
run tied --start-anyway --restore checkpoint-1 -- true
[[ $? == 6 ]] && ! began
tell $? "nor from a checkpoint that was named"
run tied --start-anyway --rank 0 --world 2 --launch-id here -- true
[[ $? == 6 ]] && ! began && grep -q "saves alone" "$S3_DIR/log"
tell $? "nor one of several ranks"
run tied --start-anyway -- "exit 0"
[[ $? == 6 ]] && began
tell $? "a store that never answers is 6 at the end: nobody knows what is there"
cat "$S3_DIR/tied.ckpt/watchers/"* >"$S3_DIR/told" 2>/dev/null && ! grep -q '"unit"' "$S3_DIR/told"
tell $? "and no other watcher is told that anything need not stay"
run tied --start-anyway -- "trap : TERM; save '$S3_DIR/tied' 3; kill \$PPID; exit 0"
[[ $? == 13 ]] && began && grep -q "NOT durable: checkpoint-3" "$S3_DIR/log"
tell $? "what is not durable is named"

echo "return { api = 1, markers = { temp = '.temp' } }" >"$S3_DIR/temp.lua"
committed="for i in {1..200}; do grep -q 'committed checkpoint-1' '$S3_DIR/log' && break; sleep 0.05; done"
up
run temporary -p "$S3_DIR/temp.lua" -- "mkdir '$S3_DIR/temporary/checkpoint-1'; cd '$S3_DIR/temporary/checkpoint-1'; \
  echo x >model.bin; touch .temp DONE; '$CKPT' notify checkpoint=checkpoint-1; $committed; exit 3"
down
run temporary -p "$S3_DIR/temp.lua" --start-anyway -- "exit 0"
[[ $? == 6 && -e $S3_DIR/temporary/checkpoint-1/model.bin ]]
tell $? "a temporary checkpoint stays where nobody knows whether the store has it"

begun changed
down
echo other >"$S3_DIR/changed/checkpoint-1/model.bin"
run changed --start-anyway -- true
[[ $? == 6 ]] && ! began && grep -q "stands whole" "$S3_DIR/log"
tell $? "a checkpoint that is not as it was committed ties nothing"

begun lost
down
rm -rf "$S3_DIR/lost.ckpt"
run lost --start-anyway -- true
[[ $? == 6 ]] && ! began
tell $? "nor one of which the journal knows nothing"
run lost --start-anyway --restore never -- "trap : TERM; kill \$PPID; exit 0"
[[ $? == 13 && $(<"$S3_DIR/began") == none ]]
tell $? "with --restore never there is nothing to be tied to"

# Somebody else goes on with the target, past the proxy, from a directory of his own.
elsewhere() { # NAME WORDS... -- JOB
  AWS_ENDPOINT_URL=$direct "$CKPT" run --dir "$S3_DIR/$1.2" --to "s3://ckpt-test/$1" --marker DONE --settle 0.2 \
    "${@:2}" >"$S3_DIR/log2" 2>&1
}
begun ahead
elsewhere ahead --run one -- bash -c ". '$S3_DIR/lib'; save '$S3_DIR/ahead.2' 7" || echo "Bail out! no second commit"
down && heals
run ahead --start-anyway -- "save '$S3_DIR/ahead' 2; $heal; $until_told; exit 0"
[[ $? == 11 ]] && began && grep -q "not the one that this job came from" "$S3_DIR/log"
tell $? "a newest commit that is not the one it came from ends saving, and the run with 11"
AWS_ENDPOINT_URL=$direct "$CKPT" ls s3://ckpt-test/ahead >"$S3_DIR/log" 2>&1 && ! grep -q checkpoint-2 "$S3_DIR/log"
tell $? "and nothing of it is there"
down && heals
run ahead --start-anyway -- "$heal; $until_told; exit 3"
[[ $? == 3 ]]
tell $? "the job's own code comes first"

up
run groups -- "mkdir '$S3_DIR/groups/a'; save '$S3_DIR/groups/a' 1"
elsewhere groups --run one -- bash -c ". '$S3_DIR/lib'; save '$S3_DIR/groups.2/a' 7" || echo "Bail out! no second commit"
down && heals
run groups --start-anyway -- "$heal; $until_told; exit 0"
[[ $? == 11 ]] && began && grep -q "not the one that this job came from" "$S3_DIR/log"
tell $? "each group of which the directory knew is asked for, not only the one at the top"

begun other
rm -rf "$S3_DATA/other"
elsewhere other --run two -- bash -c ". '$S3_DIR/lib'; save '$S3_DIR/other.2' 1" || echo "Bail out! nobody took it"
down && heals
run other --start-anyway -- "$heal; $until_told"
[[ $? == 11 ]] && grep -q "another run's" "$S3_DIR/log"
tell $? "so does another run"

begun alive
elsewhere alive --run one -- bash -c "touch '$S3_DIR/holds'; until [[ -e $S3_DIR/end ]]; do sleep 0.1; done" &
wait_for 20 "the other writer" test -e "$S3_DIR/holds"
down && heals
run alive --start-anyway -- "$heal; $until_told"
[[ $? == 11 ]] && grep -q "another writer is alive" "$S3_DIR/log"
tell $? "and a writer that is alive, which is not pushed aside"
touch "$S3_DIR/end"
wait $!
tell $? "it ends as if nobody had come"
echo "1..$tests"
exit $((failures > 0))
