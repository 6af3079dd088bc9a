#!/bin/bash
# A target that says by its query how the bucket is reached, as Ray and pyarrow write it: one place with
# the same target without the query.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
HOST=${AWS_ENDPOINT_URL#http://}
QUERY="scheme=http&endpoint_override=$HOST&region=us-east-1&allow_bucket_creation=true"
PLAIN=s3://ckpt-test/run WAY="s3://ckpt-test/run?$QUERY"
endpoint=$AWS_ENDPOINT_URL
unset AWS_ENDPOINT_URL AWS_REGION
cd "$S3_DIR" || exit 1
make_one() { # STEP
  mkdir -p "out/checkpoint-$1" && head -c 3000 /dev/urandom >"out/checkpoint-$1/model.bin" &&
    touch "out/checkpoint-$1/DONE"
}

make_one 1
ckpt sync out --to "$WAY" --marker DONE && grep -q "1 committed" log && [[ -e $S3_DATA/run/checkpoint-1/model.bin ]]
tell $? "a target with a query is saved to, and no key has the query in it"
ckpt why checkpoint-1 --dir out && ! grep -q "AWS_ENDPOINT_URL\|amazonaws" log && grep -q durable log
tell $? "why finds its way to the store by itself"
AWS_ENDPOINT_URL=$endpoint ckpt sync out --to "$PLAIN" --marker DONE && ! grep -q "1 committed" log
tell $? "without the query it is the same target: nothing is saved again"
uri=$("$CKPT" latest "$WAY" --uri 2>log) && [[ $uri == "$PLAIN/checkpoint-1?$QUERY" ]]
tell $? "what latest --uri prints has the query"
ckpt restore "$uri" --dir back && cmp -s back/checkpoint-1/model.bin out/checkpoint-1/model.bin
tell $? "and can be restored as it is"
make_one 2
ckpt run --dir out --to "$WAY" --marker DONE --continue-run -- true && [[ -e $S3_DATA/run/checkpoint-2/model.bin ]]
tell $? "a run goes on there"
ckpt ls "$PLAIN?regoin=us-east-1"
[[ $? == 2 ]] && grep -q '"regoin=..."' log && grep -q endpoint_override log
tell $? "a key that is not known is refused, with those that are"
ckpt ls "$PLAIN?aws_secret_access_key=hidden"
[[ $? == 2 ]] && ! grep -q hidden log
tell $? "a secret is refused and not repeated"
echo "1..$tests"
exit "$((failures > 0))"
