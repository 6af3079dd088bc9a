#!/bin/bash
# gc with a bucket: after a job that may not delete, and after one that was killed in its upload.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
direct=$AWS_ENDPOINT_URL
out=$S3_DIR/out to=s3://ckpt-test/exp store=$S3_DATA/exp
mkdir "$out"

run() { AWS_ENDPOINT_URL=$PROXY "$CKPT" run --run one --dir "$out" --to "$to" --settle 0.2 --marker DONE "$@" >"$S3_DIR/log" 2>&1; }
gc() { AWS_ENDPOINT_URL=$direct "$CKPT" gc "$to" "$@" >"$S3_DIR/log" 2>&1; }
age() { find "$store/.ckpt" -exec touch -d "$1 hours ago" {} +; }
cat >"$S3_DIR/job" <<'JOB'
cd "$1" || exit
for n in "${@:3}"; do
  mkdir "checkpoint-$n" && head -c "$2" /dev/urandom >"checkpoint-$n/model.bin" && : >"checkpoint-$n/DONE"
  "$CKPT_LUA" notify "checkpoint=checkpoint-$n" --wait -q
done
exit 0
JOB
echo 'return { api = 1, keep = keep.last(1) }' >"$S3_DIR/last.lua"
export CKPT_LUA=$CKPT

# --- a job whose role may not delete --------------------------------------------------------

denied='9999 DELETE * status 403/AccessDenied\n9999 POST delete status 403/AccessDenied\n'
rules "$denied"
run --no-delete -p "$S3_DIR/last.lua" --max-delete 100% --grace-delete 0 -- bash "$S3_DIR/job" "$out" 1000 1 2 3
tell $? "a job whose role may not delete, and that is told so, ends well"
[[ -e $store/checkpoint-1/model.bin && -e $store/checkpoint-2/model.bin ]]
tell $? "what it does not keep is still there"
[[ $("$CKPT" ls "$to" --json | wc -l) == 1 ]]
tell $? "and hidden"
gc --grace-delete 0 --dry-run && [[ -e $store/checkpoint-1/model.bin ]]
tell $? "gc from another role says what it would do"
gc --grace-delete 0 && [[ ! -e $store/checkpoint-1 && ! -e $store/checkpoint-2 ]]
tell $? "and does it"
AWS_ENDPOINT_URL=$direct "$CKPT" verify "$to" >"$S3_DIR/log" 2>&1
tell $? "what is kept is whole"
rules "$denied"
age 30
AWS_ENDPOINT_URL=$PROXY "$CKPT" gc "$to" >"$S3_DIR/log" 2>&1
tell "$(($? != 7))" "gc of a role that may not delete ends with 7"
rules ''
age 30
gc
tell "$(($? || $(find "$store/.ckpt" -name 'lease-probe.*' | wc -l)))" "what it could not remove goes later"

# --- a job that is killed while it sends ----------------------------------------------------

rules '9 PUT partNumber=3& hang\n'
run -- bash "$S3_DIR/job" "$out" 60000000 4 &
until grep -qs 'partNumber=3&' "$RULES.log"; do sleep 0.1; done
pid=$(pgrep -P $! -f "run --run one" || echo $!)
pkill -KILL -P "$pid" 2>/dev/null
kill -KILL "$pid"
wait 2>/dev/null
# Not their parts: one may still come to stand there.
uploads() { find "$S3_DATA/.sgwtmp/multipart" -mindepth 2 -maxdepth 2 -type d 2>/dev/null | wc -l; }
before=$(uploads)
gc --grace-delete 0
tell "$(($? || before == 0 || $(uploads) != before))" "its upload stays while its term may be alive"
age 2
gc
tell "$(($? || $(uploads) != before))" "and while somebody may go on with it"
gc --grace-delete 1h
tell "$(($? || $(uploads) != 0))" "then gc takes it away"
grep -q 'removed attempt checkpoint-4' "$S3_DIR/log"
tell $? "and says so"
rules ''
rm -rf "$out/checkpoint-4"
run -- bash "$S3_DIR/job" "$out" 60000000 5
tell $? "the next run begins as if nothing had been"
echo "1..$tests"
exit $((failures > 0))
