#!/bin/bash
# newest_only in a bucket: the two newest have all, the older ones go on as what is left of them.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
at=s3://ckpt-test/thin
out=$S3_DIR/out
mkdir "$out"
cat >"$S3_DIR/wish.lua" <<'LUA'
return { api = 1, queue = "all", newest_only = { "optimizer.pt", "*_optim_states.pt" } }
LUA
cat >"$S3_DIR/job" <<'JOB'
for n in 1 2 3 4; do
  mkdir -p "$1/.new/global_step$n"
  printf 'PK\5\6%018d%d' 0 "$n" >"$1/.new/model.pt"
  printf 'PK\5\6%01018d' "$n" >"$1/.new/optimizer.pt"
  printf 'PK\5\6%0518d' "$n" >"$1/.new/global_step$n/rank_0_optim_states.pt"
  echo '{}' >"$1/.new/trainer_state.json"
  mv "$1/.new" "$1/checkpoint-$n"
done
JOB
run() {
  ckpt run -v --run one --dir "$out" --to $at --settle 0 --grace-delete 0 --max-delete 100% -p "$S3_DIR/wish.lua" -- "$@"
}
run bash "$S3_DIR/job" "$out"
tell $? "four checkpoints are in the bucket"
files() {
  find "$S3_DATA/thin" -path "*$1*" \( -name optimizer.pt -o -name '*_optim_states.pt' \) | wc -l
}
[[ "$(files checkpoint-1/) $(files checkpoint-2/) $(files checkpoint-3/) $(files checkpoint-4/)" == "0 0 2 2" ]]
tell $? "the two newest have the optimizer, the older ones have not"
grep -q 'checkpoint-1 stays without 2 of its files' "$S3_DIR/log"
tell $? "which is told"
ckpt verify $at
tell $? "all of them are whole"
ckpt restore $at checkpoint-1 --dir "$S3_DIR/back"
tell $? "an older one comes back"
[[ -f $S3_DIR/back/checkpoint-1/model.pt && ! -e $S3_DIR/back/checkpoint-1/optimizer.pt ]] &&
  cmp -s "$out/checkpoint-1/model.pt" "$S3_DIR/back/checkpoint-1/model.pt"
tell $? "with its weights, and without what was taken"
rm -rf "${out:?}"/*
run test -f "$out/checkpoint-4/optimizer.pt"
tell $? "a start goes on from the newest, with all that it has"
ckpt gc $at --grace-delete 0
[[ "$(files checkpoint-3/) $(files checkpoint-4/)" == "2 2" ]]
tell $? "gc takes nothing more"
echo "1..$tests"
exit $((failures > 0))
