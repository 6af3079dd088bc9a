#!/bin/bash
# What others put under a name that was ours once stays, in a bucket: other tools' files, a backup,
# late writes.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
out=$S3_DIR/out to=s3://ckpt-test/exp store=$S3_DATA/exp
mkdir "$out"

save() {
  for n; do
    mkdir -p "$out/checkpoint-$n"
    echo "weights $n" >"$out/checkpoint-$n/model.bin"
    echo '{}' >"$out/checkpoint-$n/trainer_state.json"
    sleep 0.02
  done
}
sync() { ckpt sync "$out" --to "$to" --settle 0; }
gc() { ckpt gc "$to" --grace-delete 0; }
cleared() { find "$store/.ckpt/cleared" -type f 2>/dev/null | wc -l; }

# --- other tools' files ---------------------------------------------------------------------

save 1 2
sync
cp -a "$store/checkpoint-1" "$S3_DIR/backup" # with its metadata
ckpt rm "$to" checkpoint-1 --grace-delete 0
tell "$(($? || $(find "$store/checkpoint-1" -type f 2>/dev/null | wc -l) || $(cleared) != 1))" "a deleted checkpoint is gone, and that is written down"
# A guard: without a table, before removals kept one, this was so too.
tell "$(find "$store/.ckpt/clearing" -type f 2>/dev/null | wc -l)" "its table is not kept any longer"
mkdir -p "$store/checkpoint-1"
echo mine >"$store/checkpoint-1/thesis.bin"
echo mine >"$store/checkpoint-1/model.bin"
save 3
sync && gc && [[ -e $store/checkpoint-1/thesis.bin && -e $store/checkpoint-1/model.bin ]] &&
  grep -q 'left checkpoint-1' "$S3_DIR/log"
tell $? "what another tool puts there stays, whatever it is called, and gc names it"
ckpt run --dir "$out" --to "$to" --continue-run --settle 0 -- true && [[ -e $store/checkpoint-1/thesis.bin ]]
tell $? "a run leaves it too"
rm -r "$store/checkpoint-1"
cp -a "$S3_DIR/backup" "$store/checkpoint-1"
gc && diff -r "$S3_DIR/backup" "$store/checkpoint-1" >/dev/null
tell $? "so does a backup of it that is copied back with its metadata"
rm -r "$store/checkpoint-1"

# --- among those of a checkpoint that is deleted --------------------------------------------

echo mine >"$store/checkpoint-2/notes.txt"
echo 'longer than it was' >"$store/checkpoint-2/model.bin"
ckpt rm "$to" checkpoint-2 --grace-delete 0
tell "$(($? || $(find "$store/checkpoint-2" -type f | wc -l) != 2))" "a file among its own stays, and one that was replaced"
grep -q 'checkpoint-2: 2 objects' "$S3_DIR/log"
tell $? "and both are told of"
gc && grep -q 'left checkpoint-2' "$S3_DIR/log" && [[ -e $store/checkpoint-2/notes.txt ]]
tell $? "gc names them"

# --- a save that is given up ----------------------------------------------------------------

printf '9999 PUT checkpoint-4/.ckpt-manifest status 403/AccessDenied\n' >"$RULES"
save 4
AWS_ENDPOINT_URL=$PROXY "$CKPT" run --dir "$out" --to "$to" --continue-run --settle 0 -- true >"$S3_DIR/log" 2>&1
: >"$RULES"
# A guard: removals did that before they asked for marks.
tell "$(find "$store/checkpoint-4" -type f 2>/dev/null | wc -l)" "of a save that was given up nothing is left"
mkdir -p "$store/checkpoint-4"
cp -a "$store/checkpoint-3/." "$store/checkpoint-4" # a live one, by its metadata too
gc && [[ -e $store/checkpoint-4/model.bin ]] && grep -q 'holds the data of checkpoint-3' "$S3_DIR/log"
tell $? "a live checkpoint's bytes under its name stay, and gc says whose they are"
rm -r "$store/checkpoint-4"

# --- uploads in parts, of which nothing shows yet ---------------------------------------------

ask() { spec/servers/ask.py "$@" 2>&1; }
begin_upload() { ask POST "/ckpt-test/exp/$1" uploads= >"$S3_DIR/answer" || cat "$S3_DIR/answer" >&2; }
has_upload() { ask GET /ckpt-test "prefix=exp%2F&uploads=" | grep -q "<Key>exp/$1</Key>"; }

begin_upload checkpoint-5/before
begin_upload checkpoint-3/beside # a live one
sleep 1.1 # a server's times have no fractions
printf '9999 PUT checkpoint-5/.ckpt-manifest status 403/AccessDenied\n' >"$RULES"
save 5
AWS_ENDPOINT_URL=$PROXY "$CKPT" run --dir "$out" --to "$to" --continue-run --settle 0 -- true >"$S3_DIR/log" 2>&1
: >"$RULES"
grep -q checkpoint-5 "$S3_DIR/log" && [[ ! -e $store/checkpoint-5/model.bin ]] && has_upload checkpoint-5/before
tell $? "what was begun under the name of a save before it was announced stays when that is given up"
sleep 1.1
begin_upload checkpoint-5/behind
gc && has_upload checkpoint-5/before && has_upload checkpoint-5/behind && has_upload checkpoint-3/beside
tell $? "gc leaves it, what was begun behind the clearing, and what was begun beside a live one"
grep -q '^left checkpoint-5/before' "$S3_DIR/log" && grep -q '^left checkpoint-5/behind' "$S3_DIR/log" &&
  ! grep -q 'left checkpoint-3/beside' "$S3_DIR/log"
tell $? "it names the two under a name of nobody's"
ckpt gc "$to" --remove checkpoint-5 && ! has_upload checkpoint-5/before && ! has_upload checkpoint-5/behind
tell $? "gc --remove aborts them"
has_upload checkpoint-3/beside
tell $? "and no other one"
echo "1..$tests"
exit $((failures > 0))
