#!/bin/bash
# --wait-lease: another writer's end is waited for. What Slurm says of its job counts on the same cluster alone;
# a stand-in for squeue and sacct says it here.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-lease.XXXXXX") || exit 1
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
# shellcheck source=spec/tap.sh
. spec/tap.sh
TELL_LOG=$work/log
holders=()
trap 'kill -9 -- "${holders[@]/#/-}" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
unset SLURM_JOB_ID SLURM_CLUSTER_NAME SLURM_PROCID SLURM_NTASKS

# squeue says what stands in the file of the job; without one it knows no such job.
mkdir "$work/bin"
cat >"$work/bin/squeue" <<'END'
#!/bin/sh
for word; do job=$word; done
echo "$0 $*" >>"$WORK/asked"
cat "$WORK/state.$job" 2>/dev/null || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
END
sed -i "s|\$WORK|$work|g" "$work/bin/squeue"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/sacct"
chmod +x "$work/bin/squeue" "$work/bin/sacct"
PATH=$work/bin:$PATH

# A run that holds the target N for as long as its job lives, which is until the file "end" is there.
holder() { # N [VARIABLE=VALUE...]
  mkdir "$work/out$1"
  setsid env "${@:2}" "$CKPT" run --run one --dir "$work/out$1" --to "$work/store$1" -- sh -c \
    "touch '$work/holds$1'; until [ -e '$work/end$1' ]; do sleep 0.1; done" >"$work/holder$1.log" 2>&1 &
  holders+=($!)
  disown
  wait_for 20 "the holder" test -e "$work/holds$1"
}
run() { # N WORDS...
  mkdir -p "$work/other$1"
  "$CKPT" run --run one --dir "$work/other$1" --to "$work/store$1" "${@:2}" -- touch "$work/began$1" \
    >"$work/log" 2>&1
}
began() { [[ -e $work/began$1 ]]; }

holder 1
run 1
[[ $? == 11 ]] && ! began 1
tell $? "without it, a live writer is 11"
grep -q -- "--wait-lease" "$work/log"
tell $? "which names it"
run 1 --wait-lease 1s
[[ $? == 11 ]] && ! began 1
tell $? "a wait that is over is 11, too"
(sleep 1.5 && touch "$work/end1") &
run 1 --wait-lease 5m && began 1
tell $? "a run waits for the writer's end, and begins"
grep -q "Its end is waited for, for up to 300 s" "$work/log"
tell $? "and says what it waits for"

holder 2 SLURM_JOB_ID=71 SLURM_CLUSTER_NAME=alpha
grep -q '"job":"slurm:alpha/71"' "$work/store2/.ckpt/lease"
tell $? "a lease has the job with its cluster"
ours() { SLURM_JOB_ID=72 SLURM_CLUSTER_NAME=$1 run 2 --wait-lease 2s --ranks off; }
ours alpha
[[ $? == 11 && -s $work/asked ]] && ! began 2
tell $? "a job that Slurm does not know is not over"
echo RUNNING >"$work/state.71"
ours alpha
[[ $? == 11 ]]
tell $? "nor is one that runs"
echo COMPLETING >"$work/state.71"
ours alpha
[[ $? == 11 ]]
tell $? "nor one whose processes are being ended"
echo CANCELLED >"$work/state.71"
: >"$work/asked"
ours beta
[[ $? == 11 && ! -s $work/asked ]]
tell $? "another cluster is not asked"
SLURM_JOB_ID=72 SLURM_CLUSTER_NAME=alpha run 2 --ranks off
[[ $? == 11 ]]
tell $? "nobody is asked where no wait was wanted"
SLURM_JOB_ID=72 SLURM_CLUSTER_NAME=alpha run 2 --wait-lease 1h --ranks off && began 2
tell $? "where Slurm says that the job is over, the run begins at once"
grep -q "slurm:alpha/71, whose lease still stands, is over" "$work/log"
tell $? "and says why"
echo "1..$tests"
exit $((failures > 0))
