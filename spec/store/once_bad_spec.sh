#!/bin/bash
# One answer of a bucket that is bad, cut or missing is asked for again before anything is concluded; one that
# stays so is believed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0

out=$S3_DIR/out to=s3://ckpt-test/once
mkdir -p "$out/checkpoint-1"
head -c 300000 /dev/urandom >"$out/checkpoint-1/model.bin"
touch "$out/checkpoint-1/DONE"
ckpt sync "$out" --to "$to" --marker DONE --settle 0
tell $? "a checkpoint is saved"
export AWS_ENDPOINT_URL=$PROXY

restored() {
  rm -rf "$S3_DIR/back"
  ckpt restore "$to" --dir "$S3_DIR/back" && cmp -s "$out/checkpoint-1/model.bin" "$S3_DIR/back/checkpoint-1/model.bin"
}
obeyed() { grep -q " $1" "$RULES.log"; }

each() { # OBJECT ACTION TEXT
  rules "1 GET $1 $2\n"
  restored && obeyed "$2"
  tell $? "restore: $3"
  rules "1 GET $1 $2\n"
  ckpt verify "$to" && obeyed "$2"
  tell $? "verify: $3"
}
each model.bin "flip 1234" "a bit that is flipped on the way is read again"
each model.bin "bare 1000" "data that is cut without a word is read again"
each model.bin "status 404/NoSuchKey" "data that is missing once is asked for again"
each .ckpt-manifest "bare 100" "a manifest that is cut is read again"
each .ckpt-manifest "status 404/NoSuchKey" "a manifest that is missing once is asked for again"
each 00000000000000000003.json "bare 20" "an entry of the log that is cut is read again"
each 00000000000000000000.json "status 404/NoSuchKey" "a log that is missing once is asked for again"

rules "1 HEAD model.bin status 404\n"
ckpt verify "$to" && obeyed "status"
tell $? "verify: an object whose head is missing once is asked for again"

stays() { # ACTION TEXT
  rules "99 GET model.bin $1\n"
  ckpt restore "$to" --dir "$S3_DIR/never"
  [[ $? == 5 && ! -e $S3_DIR/never/checkpoint-1 ]]
  tell $? "$2"
}
stays "flip 1234" "what is damaged each time is damaged"
stays "status 404/NoSuchKey" "what is missing each time is missing"
echo "1..$tests"
exit $((failures > 0))
