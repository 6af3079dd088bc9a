#!/bin/bash
# What `doctor` says of a bucket, with a real server: a good one, wrong keys, no bucket, a server that does not
# arbitrate, a clock that is off, rights that lack.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
direct=$AWS_ENDPOINT_URL to=s3://ckpt-test/place

says() { grep -qE "$1" "$S3_DIR/log"; }
nothing_left() { ! find "$S3_DATA" | grep -q doctor; }

ckpt doctor "$to" && says '^saving there would work: 0 faults, 0 warnings$'
tell $? "a good bucket has no fault"
says '^ok +race ' && says '^ok +unfinished ' && says '^ok +large .* MB/s'
tell $? "the race, a cut upload and a large object were tried"
says '^ok +credentials .*variables AWS_ACCESS_KEY_ID' && ! says testsecret
tell $? "it says whose credentials, and no secret"
printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" >"$S3_DIR/keys"
(unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY && AWS_SHARED_CREDENTIALS_FILE=$S3_DIR/keys ckpt doctor "$to") &&
  says '^ok +credentials .*from a file of profiles;'
tell $? "which source that is, if it is another one"
says '^ok +server .*VERSITYGW.*us-east-1' && says '^ok +clock ' && says '^ok +checksums .*CRC64NVME and CRC-32C'
tell $? "it says which server that is, its clock and its checksums"
says '^ok +log .*nothing was ever committed' && nothing_left
tell $? "nothing is left"

mkdir -p "$S3_DIR/out/checkpoint-1"
echo x >"$S3_DIR/out/checkpoint-1/DONE"
ckpt sync "$S3_DIR/out" --to "$to" --marker DONE --settle 0 && ckpt doctor "$to" &&
  says '^ok +log .* 1 checkpoint in .* newest checkpoint-1; its last writer has ended'
tell $? "a log that stands there has its line"

ckpt doctor s3://no-such-bucket/x
[[ $? == 10 ]] && says '^FAULT +place +there is no such bucket' && says 'to do: make the bucket'
tell $? "a bucket that is not there is a fault"

AWS_SECRET_ACCESS_KEY=wrong ckpt doctor "$to"
[[ $? == 7 ]] && says '^FAULT +place .*SignatureDoesNotMatch' && says 'to do: give credentials'
tell $? "wrong keys are a fault"

export AWS_ENDPOINT_URL=$PROXY
rules "9999 PUT * says 412 200\n"
ckpt doctor "$to"
[[ $? == 7 ]] && says '^FAULT +race ' && says 'to do: .*--single-writer' && nothing_left
tell $? "a server that lets two writers win is a fault"

rules "9999 * * date 3600\n"
ckpt doctor "$to"
says '^WARNING +clock .* 3(599|600|601) s ahead of this machine'
tell $? "a clock that is an hour off is named"

rules "9999 PUT * status 403/AccessDenied\n"
ckpt doctor "$to"
[[ $? == 7 ]] && says '^FAULT +write .*AccessDenied' && says 'to do: .*s3:PutObject' && says '^ok +log .*1 checkpoint'
tell $? "who may only read is told so, and the log all the same"

rules "9999 DELETE * status 403/AccessDenied\n9999 POST ?delete status 403/AccessDenied\n"
ckpt doctor "$to" && says '^WARNING +delete ' && says 'to do: .*--no-delete' && says '^WARNING +left '
tell $? "who may not delete is warned, and told what is left"
rules ""

rules "9999 GET uploads status 501/NotImplemented\n"
ckpt doctor "$to" && says '^WARNING +unfinished ' && says 'AbortIncompleteMultipartUpload'
tell $? "where cut uploads are not told, a rule of the bucket is asked for"

AWS_ENDPOINT_URL=$direct ckpt doctor "$to" --json && python3 - "$S3_DIR/log" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert lines[-1] == {"ok": True, "faults": 0, "warnings": 0}, lines[-1]
assert {"race", "credentials", "clock", "checksums"} <= {line["topic"] for line in lines[:-1]}
PY
tell $? "--json has a line for each finding, and one at the end"
echo "1..$tests"
exit $((failures > 0))
