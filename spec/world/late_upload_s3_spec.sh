#!/bin/bash
# A writer that was stopped (SIGSTOP) in the middle of a save, and whose upload arrives in the bucket
# when others have long done with that save: it is nobody's, is named by gc, and stays till the user
# removes it. And where another writer has gone on with the save, its commit stays what it is.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
TELL_LOG=("$S3_DIR/log" "$S3_DIR/zombie.log")
zombie=""
# shellcheck disable=SC2317 # the trap below calls it
clean_up() {
  [[ -z $zombie ]] || kill -KILL "$zombie" 2>/dev/null
  s3_end
}
trap clean_up EXIT
make() { # DIR NUMBER FILE...
  local name
  mkdir -p "$1/checkpoint-$2"
  for name in "${@:3}"; do echo "$name of $2" >"$1/checkpoint-$2/$name"; done
  echo '{}' >"$1/checkpoint-$2/trainer_state.json"
}
run() { # DIR OPTION...
  ckpt run --run one --dir "$1" --state "$1.state" --to "$to" --settle 0 "${@:2}" -- true
}
place() { # NAME
  to=s3://ckpt-test/$1 store=$S3_DATA/$1 old=$S3_DIR/$1.old new=$S3_DIR/$1.new
  mkdir "$old" "$new"
}

# Starts the run of $old and stops it when all but its model.bin is there: that one the server
# cannot take just now, so it is tried again when the run goes on.
stop_in_upload() {
  make "$old" 1 model.bin
  rm -f "$RULES.log"
  printf '9999 PUT checkpoint-1/model.bin status 503/SlowDown\n' >"$RULES"
  AWS_ENDPOINT_URL=$PROXY "$CKPT" run --run one --dir "$old" --state "$old.state" --to "$to" --settle 0 -- true \
    >"$S3_DIR/zombie.log" 2>&1 &
  zombie=$!
  for _ in {1..1000}; do
    grep -qs 'model.bin status' "$RULES.log" && [[ -e $store/checkpoint-1/trainer_state.json ]] && break
    sleep 0.02
  done
  kill -STOP "$zombie" || return 1
  : >"$RULES"
  [[ -e $store/checkpoint-1/trainer_state.json && ! -e $store/checkpoint-1/model.bin ]]
}

# 0: it was fenced, and its upload is there.
go_on() {
  local rc
  kill -CONT "$zombie"
  wait "$zombie"
  rc=$?
  zombie=""
  ((rc == 14)) && [[ -e $store/checkpoint-1/model.bin ]]
}

# --- others have swept and cleared the save -------------------------------------------------

place swept
stop_in_upload
tell $? "a writer is stopped in the middle of a save"
make "$new" 2 model.bin
run "$new" --take-over && [[ $(find "$store/.ckpt/cleared" -type f | wc -l) == 1 && ! -e $store/checkpoint-1 ]]
tell $? "the next one saves, and clears what that one has sent"
go_on
tell $? "that one goes on: its upload arrives, and it is fenced"
make "$new" 3 model.bin
for _ in 1 2; do
  ckpt gc "$to" --grace-delete 0 && grep -q '^left checkpoint-1' "$S3_DIR/log" && [[ -e $store/checkpoint-1/model.bin ]]
  tell $? "gc names what came late, and leaves it"
  run "$new" --continue-run && [[ -e $store/checkpoint-1/model.bin ]]
  tell $? "a run leaves it too"
done
make "$old" 4 model.bin
run "$old" --take-over && [[ -e $store/checkpoint-1/model.bin ]] && ckpt verify "$to"
tell $? "and so does its writer, when it comes back, and all that is committed is whole"
ckpt gc "$to" --remove checkpoint-1 && [[ ! -e $store/checkpoint-1 ]] && ckpt verify "$to"
tell $? "gc --remove removes it, and that alone"

# --- another one has gone on with the save, and committed it --------------------------------

place adopted
stop_in_upload
tell $? "a writer is stopped in the middle of a save"
make "$new" 1 # the same, without that file
run "$new" --take-over && [[ $(find "$store" -maxdepth 1 -name 'checkpoint-1*') == "$store/checkpoint-1" ]] &&
  ckpt verify "$to"
tell $? "the next one goes on with it in its place, and commits it"
go_on
tell $? "that one goes on: its upload arrives in the place of a live commit"
ckpt gc "$to" --grace-delete 0 && ckpt verify "$to" && [[ -e $store/checkpoint-1/model.bin ]]
tell $? "the commit stays whole, and nothing in its place is removed"
ckpt restore "$to" checkpoint-1 --dir "$S3_DIR/restored" && [[ $(ls "$S3_DIR/restored/checkpoint-1") == trainer_state.json ]]
tell $? "what is restored is what was committed"
echo "1..$tests"
exit $((failures > 0))
