#!/bin/bash
# The end of a grace: spec/store/grace.sh, or make test-grace
#
# A job whose last checkpoint of 1 GiB is on its way to a bucket, at 20 MiB/s, is told to end. It does, with 0,
# and the rest cannot be sent in the grace of 30 s: ckpt-lua has to be gone before that, with 13, and the
# checkpoint before it must be whole. The next run, on a faster way, saves what is missing.
#
# Environment: SIZE (1GiB), RATE (20971520 bytes a second), GRACE (30), CKPT_LUA (./ckpt-lua).
set -u
cd "$(dirname "$0")/../.." || exit 1
SIZE=$(numfmt --from=auto "${SIZE:-1Gi}") || exit 2
GRACE=${GRACE:-30}
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy "${RATE:-20971520}"
direct=$AWS_ENDPOINT_URL
out=$S3_DIR/out
mkdir "$out"

cat >"$S3_DIR/job" <<'JOB'
trap 'exit 0' TERM
mkdir checkpoint-1 && head -c 4000000 /dev/urandom >checkpoint-1/model.bin && touch checkpoint-1/DONE
while [[ ! -e ../go ]]; do sleep 0.1; done
mkdir checkpoint-2 && head -c "$1" /dev/zero >checkpoint-2/model.bin && touch checkpoint-2/DONE
while :; do sleep 0.1; done
JOB

run=("$CKPT" run --run grace --dir "$out" --to s3://ckpt-test/run --settle 0.2 --marker DONE --grace "$GRACE" --)

(
  cd "$out" || exit 1
  AWS_ENDPOINT_URL=$PROXY exec "${run[@]}" bash "$S3_DIR/job" "$SIZE"
) >"$S3_DIR/log" 2>&1 &
runner=$!
wait_for 60 "the first commit" grep -q 'committed checkpoint-1' "$S3_DIR/log"
touch "$S3_DIR/go"
wait_for 120 "the second upload" grep -q 'PUT .*partNumber=3' "$RULES.log"

begin=${EPOCHREALTIME/[.,]/} # a comma in some locales
kill -TERM "$runner"
wait "$runner"
rc=$?
took=$(LC_ALL=C awk -v a="$begin" -v b="${EPOCHREALTIME/[.,]/}" 'BEGIN { printf "%.1f", (b - a) / 1e6 }')
sent=$(grep -c 'PUT .*partNumber=' "$RULES.log")
sed 's/^/# /' "$S3_DIR/log"
tell "$((rc != 13))" "it ends with 13 (it was $rc; $sent parts were begun)"
tell "$(LC_ALL=C awk -v t="$took" -v g="$GRACE" 'BEGIN { print (t >= g) }')" "before the grace of $GRACE s is over (after $took s)"

listed=$("$CKPT" ls --json s3://ckpt-test/run | grep -c .)
tell "$((listed != 1))" "one checkpoint is listed ($listed)"
"$CKPT" restore s3://ckpt-test/run --dir "$S3_DIR/restored" >"$S3_DIR/why" 2>&1 &&
  diff -r "$out/checkpoint-1" "$S3_DIR/restored/checkpoint-1" >>"$S3_DIR/why"
tell $? "and it is restored as it was"

# What the slow way still holds of cut requests has to arrive first: a part that comes after its upload
# was given up is litter, which a later clean-up takes.
sleep 5
AWS_ENDPOINT_URL=$direct "${run[@]}" true >"$S3_DIR/log" 2>&1
rc=$?
sed 's/^/# /' "$S3_DIR/log"
rm -rf "$S3_DIR/restored"
"$CKPT" restore s3://ckpt-test/run --dir "$S3_DIR/restored" >"$S3_DIR/why" 2>&1 &&
  diff -r "$out/checkpoint-2" "$S3_DIR/restored/checkpoint-2" >>"$S3_DIR/why"
tell $((rc + $?)) "the next run saves the one that was under way"
# Uploads, not files: what a cut request left half received is the server's own affair.
left=$(find "$S3_DATA/.sgwtmp/multipart" -mindepth 2 -maxdepth 2 -type d | wc -l)
tell "$((left > 0))" "and takes the parts of the first try away ($left left)"
echo "1..$tests"
exit $((failures > 0))
