#!/bin/bash
# An outage of the store while the job runs is a line, however often it saves, and a line when it is over.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
export AWS_ENDPOINT_URL=$PROXY
out=$S3_DIR/out
mkdir "$out"
printf '999999 PUT checkpoint- status 503/SlowDown\n' >"$S3_DIR/down"
: >"$S3_DIR/up"
# It saves until two saves in a row were tried in vain; then the store is back, and the last one is its newest.
cat >"$S3_DIR/job" <<'JOB'
save() {
  mkdir "$1/.new" && echo "weights $2" >"$1/.new/model.bin" && mv "$1/.new" "$1/checkpoint-$2"
}
tried() { grep -c 'PUT .*model.bin.*status' "$RULES.log" 2>/dev/null || true; }
cp "$S3_DIR/down" "$RULES"
i=0
while [[ $(tried) -lt ${TRIES:-13} ]]; do save "$1" $((i += 1)) && sleep 0.5; done
cp "$S3_DIR/up" "$RULES"
JOB
export RULES S3_DIR
ckpt run --run one --dir "$out" --to s3://ckpt-test/outage --settle 0.2 -- bash "$S3_DIR/job" "$out"
tell $? "a job whose store was away for a while ends with all durable"
[[ $(grep -c "could not be saved yet" "$S3_DIR/log") == 1 ]]
tell $? "the outage is one line"
[[ $(grep -c "saving works again, after" "$S3_DIR/log") == 1 ]]
tell $? "and so is its end"
echo "1..$tests"
exit $((failures > 0))
