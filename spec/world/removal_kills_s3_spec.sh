#!/bin/bash
# A removal in a bucket that is killed between any two of its requests is finished by the next one, and
# what somebody else has put there stays: a request hangs, or is carried out and not answered, and its
# process is killed; then another gc comes.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
direct=$AWS_ENDPOINT_URL

# --- what there is to remove ----------------------------------------------------------------

kill_to=s3://ckpt-test/kill kill_store=$S3_DATA/kill
one=$S3_DIR/one
make_one() {
  mkdir -p "$one/checkpoint-$1"
  echo "weights $1" | tee "$one/checkpoint-$1/model.bin" >"$one/checkpoint-$1/trainer_state.json"
}
make_one 1
make_one 2
ckpt sync "$one" --to "$kill_to" --settle 0
cp -a "$kill_store" "$S3_DIR/saved"
ckpt rm "$kill_to" checkpoint-1
mv "$kill_store" "$S3_DIR/deleted"
mv "$S3_DIR/saved" "$kill_store"
echo mine >"$S3_DIR/deleted/checkpoint-1/notes.txt"
# A save that was given up, and whose clean-up was not allowed.
printf '9999 PUT checkpoint-3/.ckpt-manifest status 403/AccessDenied\n9999 POST ?delete status 403/AccessDenied\n' >"$RULES"
make_one 3
AWS_ENDPOINT_URL=$PROXY ckpt run --dir "$one" --to "$kill_to" --continue-run --settle 0 -- true
: >"$RULES"
mv "$kill_store" "$S3_DIR/swept"
echo mine >"$S3_DIR/swept/checkpoint-3/notes.txt"
cp -a "$S3_DIR/swept/checkpoint-2/model.bin" "$S3_DIR/swept/checkpoint-3/copy.bin" # with its mark
grep -rl '"type":"sweep"' "$S3_DIR/swept/.ckpt/log" >/dev/null && [[ -e $S3_DIR/swept/checkpoint-3/model.bin ]]
tell $? "a save is given up, and all that it sent is there still"

# --- and who is killed in it ----------------------------------------------------------------

files_in() { find "$1" -type f -printf '%f\n' 2>/dev/null | sort | tr '\n' ' '; }

killed_at() { # TEMPLATE CHECKPOINT REST RULE
  local pid rc=1
  rm -rf "$kill_store" "$RULES.log"
  cp -a "$S3_DIR/$1" "$kill_store"
  printf '1 %s\n' "$4" >"$RULES"
  AWS_ENDPOINT_URL=$PROXY "$CKPT" gc "$kill_to" --grace-delete 0 >"$S3_DIR/log" 2>&1 &
  pid=$!
  for _ in {1..200}; do
    grep -qsE ' (hang|late 60)$' "$RULES.log" && rc=0 && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  sleep 0.1
  kill -KILL "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  : >"$RULES"
  ((rc == 0)) || return 1
  AWS_ENDPOINT_URL=$direct ckpt gc "$kill_to" --grace-delete 0 || return 1
  grep -q "^left $2" "$S3_DIR/log" || return 1
  AWS_ENDPOINT_URL=$direct ckpt verify "$kill_to" || return 1
  [[ $(files_in "$kill_store/$2") == "$3" && $(files_in "$kill_store/.ckpt/cleared" | wc -w) == 1 &&
    -z $(files_in "$kill_store/.ckpt/clearing") ]]
}

walk_kills() { # TEMPLATE CHECKPOINT REST REQUEST...
  local step
  for step in "${@:4}"; do
    killed_at "${@:1:3}" "$step hang"
    tell $? "$1: killed before \"$step\", it is finished by the next"
    [[ $step == HEAD* || $step == GET* ]] && continue
    killed_at "${@:1:3}" "$step late 60"
    tell $? "$1: killed behind \"$step\", it is finished by the next"
  done
}
walk_kills deleted checkpoint-1 'notes.txt ' 'HEAD .ckpt/cleared' 'GET .ckpt/clearing' \
  'GET checkpoint-1/.ckpt-manifest' 'PUT .ckpt/clearing' 'DELETE checkpoint-1/.ckpt-manifest' 'POST ?delete' \
  'PUT .ckpt/cleared' 'DELETE .ckpt/clearing'
# Each object is asked for its mark.
walk_kills swept checkpoint-3 'copy.bin notes.txt ' 'HEAD .ckpt/cleared' 'HEAD checkpoint-3/copy.bin' \
  'HEAD checkpoint-3/trainer_state.json' 'POST ?delete' 'GET uploads' 'PUT .ckpt/cleared'
echo "1..$tests"
exit $((failures > 0))
