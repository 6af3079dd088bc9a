#!/bin/bash
# Jobs whose tasks another launcher starts: the real mpirun of Open MPI, and the real torchrun with its elastic
# restart. torchrun is that of PATH, else the one that `make test-frameworks` has installed.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh
for torch in "$(command -v torchrun)" "${XDG_CACHE_HOME:-$HOME/.cache}"/ckpt-lua/frameworks/*/bin/torchrun; do
  [[ -x $torch ]] && break
  torch=
done
skipped() {
  tests=$((tests + 1))
  echo "ok $tests # SKIP $1"
}
ran() { echo "$CKPT run --run $1 --dir /tmp/$1 --to $WORK/$1 --marker DONE --settle 0.5 --"; }

# The checkpoints that tasks of two resumed from.
started() { sed -n 's/.*"start", "step": \([1-9][0-9]*\),.*"world": 2,.*/\1/p' "$WORK/$1.log" | xargs; }
goes_on() { # NAME LAUNCHER
  [[ $(started "$1") == "10 10" && $(grep -c "$2 ended with" "$TELL_LOG") == 2 ]]
  tell $? "$2: where a rank is killed, both go on from their last checkpoint at the next start ($(started "$1"))"
}

# ---- mpirun ----

if command -v mpirun >/dev/null; then
  submit mpi -N2 --ntasks-per-node=1 <<END
#!/bin/bash
for try in 1 2; do
  mpirun --allow-run-as-root -n 2 $(ran mpi) $(training mpi --dir /tmp/mpi --steps 20 --die 12)
  echo "mpirun ended with \$?"
done
END
  seen 180 "$WORK/mpi.out" "mpirun ended with 0"
  reaches 60 "$JOB" COMPLETED
  whole mpi 2
  goes_on mpi mpirun
else
  skipped "mpirun is not installed (openmpi-bin)"
fi

# ---- torchrun ----

if [[ -n $torch ]]; then
  elastic="$torch --rdzv-backend c10d --rdzv-endpoint n1:29400 --no-python"
  submit torch -N2 --ntasks-per-node=1 <<END
#!/bin/bash
for try in 1 2; do
  srun -K $elastic --nnodes 2 --nproc-per-node 1 --rdzv-id "\$SLURM_JOB_ID.\$try" -- $(ran torch) \
    $(training torch --dir /tmp/torch --steps 20 --die 12)
  echo "torchrun ended with \$?"
done
END
  seen 400 "$WORK/torch.out" "torchrun ended with 0"
  reaches 60 "$JOB" COMPLETED
  whole torch 2
  goes_on torch torchrun

  # One torchrun starts all of its tasks again, and counts that.
  submit elastic -N1 -n1 <<END
#!/bin/bash
$elastic --nnodes 1 --nproc-per-node 2 --max-restarts 2 --rdzv-id "\$SLURM_JOB_ID" -- \
  bash -c 'exec $CKPT run --ranks task --run elastic --dir /tmp/elastic.\$RANK --to $WORK/elastic --marker DONE \
    --settle 0.5 -- $(training elastic --dir "/tmp/elastic.\$RANK" --steps 20 --die 12)'
echo "torchrun ended with \$?"
END
  seen 400 "$WORK/elastic.out" "torchrun ended with"
  whole elastic 2
  grep -q "torchrun ended with 0" "$TELL_LOG" && [[ $(started elastic) == "10 10" ]]
  tell $? "torchrun: the tasks that it starts again by itself go on from one checkpoint, and end well"

  # It is told to end, and the task saves at that, which takes it longer than a launcher that waits a second.
  ended() { # NAME: leaves what was said in $TELL_LOG, and the seconds from TERM to the last beat of the task in $took
    TELL_LOG=$WORK/$1.out
    # shellcheck disable=SC2016 # it is for the shell of the task
    "$torch" --standalone --nproc-per-node 1 --no-python -- \
      "$CKPT" run --run "$1" --dir "$WORK/$1.dir" --to "$WORK/$1" --marker DONE -- sh -c '
        save() { date +%s >"$0.term"; sleep 6; mkdir "$0/checkpoint-1"; : >"$0/checkpoint-1/DONE"; }
        trap save TERM
        : >"$0.up"
        while date +%s >"$0.now"; do mv "$0.now" "$0.last"; sleep 0.2; done' "$WORK/$1.dir" >"$TELL_LOG" 2>&1 &
    local pid=$!
    wait_for 120 "the task of torchrun" test -e "$WORK/$1.dir.up"
    kill -TERM "$pid"
    wait "$pid"
    took=$(($(cat "$WORK/$1.dir.last") - $(cat "$WORK/$1.dir.term")))
  }
  ended patient
  ((took >= 26)) && grep -q "within 30 s" "$TELL_LOG" &&
    grep -q "checkpoint-1" <("$CKPT" ls "$WORK/patient")
  tell $? "torchrun: a task that it ends has the 30 s that it says, and what it saves then is committed ($took s)"
  TORCH_ELASTIC_SHUTDOWN_TIMEOUT=10 ended short
  ((took >= 7 && took < 26)) && grep -q "within 10 s: torchrun kills it then" "$TELL_LOG"
  tell $? "torchrun: or as many as its variable gives it ($took s)"
else
  skipped "torchrun is not installed (make test-frameworks brings it)"
fi

echo "1..$tests"
exit $((failures > 0))
