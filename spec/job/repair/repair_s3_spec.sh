#!/bin/bash
# repair in a bucket of versitygw: what went is mended, the objects of the saves are as they were, and
# the run goes on.
set -u
cd "$(dirname "$0")/../../.." || exit 1
# shellcheck source=spec/tap.sh
. spec/tap.sh
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
S=s3://ckpt-test/run
L=$S3_DATA/run/.ckpt/log

save() { # N
  mkdir -p "$S3_DIR/out/checkpoint-$1"
  echo "w$1" >"$S3_DIR/out/checkpoint-$1/model.bin"
  ckpt sync "$S3_DIR/out" --to $S --settle 0 --trust
}

names() { "$CKPT" latest $S 2>/dev/null; "$CKPT" ls $S 2>/dev/null | grep -o '^checkpoint-[0-9]*' | tr '\n' ' '; }

data() { (cd "$S3_DATA/run" && find . -path ./.ckpt -prune -o -type f -print | sort | xargs md5sum); }

mends() { # EXPECTED: it is broken by now
  local before
  before=$(data)
  ! ckpt ls $S >/dev/null || [[ ${2-} == tail ]] || return 1
  ckpt repair $S -n || return 1
  [[ -z $(ls "$S3_DATA/run/.ckpt/epoch" 2>/dev/null) || $1 == *checkpoint-5* ]] || return 1
  ckpt repair $S || return 1
  [[ $(data) == "$before" ]] || return 1
  [[ "$(names | tr '\n' ' ')" == "$1" ]] || return 1
  ckpt verify $S
}

for i in 1 2 3 4; do save $i; done
rm "$L/00000000000000000006.json"
mends "checkpoint-4 checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4 "
tell $? "an entry in the middle that went is mended, and the saves stay"

save 5
[[ $(names | head -1) == checkpoint-5 ]] && ckpt verify $S
tell $? "the run goes on in the new log"

find "$S3_DATA/run/.ckpt/log.1" -type f | sort | tail -n 2 | xargs rm
mends "checkpoint-5 checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4 checkpoint-5 " tail
tell $? "a lost end of the new log is mended by a newer one"

rm -r "$S3_DATA/run/.ckpt/log" "$S3_DATA/run/.ckpt/log".* "$S3_DATA/run/.ckpt/epoch"
ckpt repair $S && [[ $(names | tail -1) == "checkpoint-1 checkpoint-2 checkpoint-3 checkpoint-4 checkpoint-5 " ]] &&
  ckpt verify $S && ckpt restore $S --dir "$S3_DIR/back" &&
  diff -r "$S3_DIR/back/checkpoint-5" "$S3_DIR/out/checkpoint-5"
tell $? "of a log of which nothing is left the manifests tell all"
echo "1..$tests"
exit $((failures > 0))
