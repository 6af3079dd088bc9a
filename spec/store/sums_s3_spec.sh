#!/bin/bash
# What stands in a bucket is compared by checksums of our own and the server's, on servers that differ in them:
# as they are; with ETags that are no MD5, as where a bucket encrypts; without CRC64NVME; refusing to hear of it; and
# with a bulk delete that wants an MD5. A save is cut and gone on with, and ranks with one equal file save together.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
server=$AWS_ENDPOINT_URL
test_c=${CKPT_BUILD:-build}/spec/store/test_store_s3_sums

look_like() { # SUMS NAME WHAT...
  local sums=$1 name=$2
  shift 2
  AWS_ENDPOINT_URL=$server
  s3_disguise "$@"
  AWS_ENDPOINT_URL=$DISGUISE
  [[ -z $proxy_pid ]] || kill "$proxy_pid"
  rm -f "$S3_DIR/port"
  s3_proxy 0
  AWS_ENDPOINT_URL=$PROXY
  cp "$S3_DIR/rules" "$S3_DIR/log" # nothing yet
  CKPT_TEST_S3=$server CKPT_TEST_S3_PROXY=$PROXY CKPT_TEST_S3_RULES=$RULES CKPT_TEST_S3_SUMS=$sums \
    CKPT_TEST_S3_AS=$name "$test_c" >"$S3_DIR/c" 2>&1
  tell $? "$name: what stands is known by its bytes"
  grep -E '^not ok|ERROR|LINE' "$S3_DIR/c" | sed 's/^/# /' | head -20
}

rank() { # R DIR TO
  "$CKPT" run --run ranks --dir "$2" --to "$3" --settle 0.2 --marker DONE --rank "$1" --world 2 --launch-id L \
    --rank-wait 60s -- cp -r "$2.made/checkpoint-5" "$2/" >"$S3_DIR/log.$1" 2>&1
}

# Both ranks have one equal small file and one equal large one, beside their own.
together() { # NAME
  touch "$S3_DIR/log" "$S3_DIR/log.0" "$S3_DIR/log.1"
  TELL_LOG=("$S3_DIR/log" "$S3_DIR/log.0" "$S3_DIR/log.1")
  local to=s3://ckpt-test/ranks-$1 dir=$S3_DIR/ranks-$1 r
  head -c 20000000 /dev/urandom >"$S3_DIR/large"
  for r in 0 1; do
    mkdir -p "$dir/$r" "$dir/$r.made/checkpoint-5"
    echo '{"equal":1}' >"$dir/$r.made/checkpoint-5/trainer_state.json"
    cp "$S3_DIR/large" "$dir/$r.made/checkpoint-5/large.bin"
    head -c 3000 /dev/urandom >"$dir/$r.made/checkpoint-5/rank-$r.bin"
    touch "$dir/$r.made/checkpoint-5/DONE"
  done
  rank 0 "$dir/0" "$to" &
  rank 1 "$dir/1" "$to"
  local second=$?
  wait $!
  tell "$(($? + second))" "$1: ranks with equal files save together"
  cp "$dir/1.made/checkpoint-5/rank-1.bin" "$dir/0.made/checkpoint-5/"
  ckpt restore "$to" --dir "$dir/restored" &&
    diff -r "$dir/0.made/checkpoint-5" "$dir/restored/checkpoint-5" >>"$S3_DIR/log"
  tell $? "$1: and what they saved comes back"
}

# A file of 5 parts, cut behind the third; the next try sends the rest of it, where sums tell, or all of it.
cut_and_on() { # NAME PARTS-OF-THE-NEXT-TRY
  TELL_LOG=("$S3_DIR/log")
  local to=s3://ckpt-test/cut-$1 dir=$S3_DIR/cut-$1 parts
  mkdir -p "$dir/checkpoint-1"
  head -c 40000000 /dev/urandom >"$dir/checkpoint-1/model.bin"
  touch "$dir/checkpoint-1/DONE"
  rules '99 PUT partNumber=4 hang\n'
  "$CKPT" run --run one --dir "$dir" --to "$to" --settle 0.2 --marker DONE -- sleep 600 >"$S3_DIR/log" 2>&1 &
  local runner=$!
  disown
  wait_for 60 "part 4" grep -q 'partNumber=4&' "$RULES.log"
  wait_for 60 "part 5" grep -q 'partNumber=5&' "$RULES.log"
  sleep 1
  kill -9 "$runner"
  wait_for 60 "its end" bash -c "! kill -0 $runner 2>/dev/null"
  rules ''
  ckpt run --run one --dir "$dir" --to "$to" --settle 0.2 --marker DONE -- true
  tell $? "$1: a save that was cut is gone on with"
  parts=$(grep -c 'PUT .*partNumber=' "$RULES.log")
  tell "$((parts != $2))" "$1: with $2 parts ($parts)"
  ckpt ls "$to" && ! grep -q '\.~' "$S3_DIR/log"
  tell $? "$1: under its own name"
  ckpt restore "$to" --dir "$dir.back" && cmp "$dir/checkpoint-1/model.bin" "$dir.back/checkpoint-1/model.bin"
  tell $? "$1: and restored byte for byte"
}

# A file goes behind our back before the save is committed: that try fails, and the next one sends it again.
taken_away() {
  local to=s3://ckpt-test/taken dir=$S3_DIR/taken
  TELL_LOG=("$S3_DIR/log")
  mkdir -p "$dir/checkpoint-1"
  head -c 20000000 /dev/urandom >"$dir/checkpoint-1/model.bin"
  head -c 5000 /dev/urandom >"$dir/checkpoint-1/a.bin"
  touch "$dir/checkpoint-1/DONE"
  rules '1 POST model.bin?uploadId= late 4\n'
  "$CKPT" run --run one --dir "$dir" --to "$to" --settle 0.2 --marker DONE -- true >"$S3_DIR/log" 2>&1 &
  local runner=$!
  wait_for 60 "the end of the upload" grep -q 'POST .*model.bin?uploadId=' "$RULES.log"
  wait_for 60 "the small file" test -e "$S3_DATA/taken/checkpoint-1/a.bin"
  rm "$S3_DATA/taken/checkpoint-1/a.bin"
  wait "$runner"
  tell $? "a save that loses a file before its commit ends well"
  grep -q 'a.bin was sent, and is not there any more' "$S3_DIR/log"
  tell $? "it says so"
  tell "$(($(grep -c 'PUT .*a.bin ' "$RULES.log") != 2))" "it sends that one again"
  tell "$(($(grep -c 'PUT .*model.bin' "$RULES.log") != 3))" "and nothing else"
  ckpt restore "$to" --dir "$dir.back" && diff -r "$dir/checkpoint-1" "$dir.back/checkpoint-1" >>"$S3_DIR/log"
  tell $? "it is restored byte for byte"
}

look_like yes "as it is" as-it-is
taken_away
look_like yes "bulk delete with MD5" md5
look_like yes "ETags that are no MD5" etags
together etags
cut_and_on etags 1
look_like no "without CRC64NVME" nosums etags
together nosums
cut_and_on nosums 5
look_like no "refuses CRC64NVME" refuses etags
together refuses
cut_and_on refuses 5

echo "1..$tests"
exit $((failures > 0))
