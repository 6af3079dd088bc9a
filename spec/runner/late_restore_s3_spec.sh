#!/bin/bash
# What is restored while the job runs holds up no end: a store that falls silent in the middle of it is left.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
export AWS_ENDPOINT_URL=$PROXY
out=$S3_DIR/out
mkdir "$out"
# A Trainer's checkpoints, of which the first is the best.
cat >"$S3_DIR/job" <<'JOB'
for n in 1 2; do
  mkdir "$1/.new"
  echo "weights $n" >"$1/.new/model.bin"
  echo arguments >"$1/.new/training_args.bin"
  echo '{"best_model_checkpoint": "out/checkpoint-1"}' >"$1/.new/trainer_state.json"
  mv "$1/.new" "$1/checkpoint-$n"
  sleep 1
done
JOB
run() {
  ckpt run --run one --dir "$out" --to s3://ckpt-test/late --grace 3 -- "$@"
}
run bash "$S3_DIR/job" "$out"
tell $? "two checkpoints are in the store"
rm -rf "${out:?}"/*
printf '999999 GET checkpoint-1/model.bin hang\n' >"$RULES"
begun=$SECONDS
run true
tell $? "the job ends well, though its best one does not come"
took=$((SECONDS - begun))
((took < 25))
tell $? "the store is not waited for: $took s"
grep -q 'checkpoint-1, which checkpoint-2 names, is NOT here' "$S3_DIR/log"
tell $? "and that is said"
: >"$RULES"
run bash -c "for i in {1..200}; do [ -f '$out/checkpoint-1/model.bin' ] && exit 0; sleep 0.1; done; exit 1"
tell $? "the next start brings it"
echo "1..$tests"
exit $((failures > 0))
