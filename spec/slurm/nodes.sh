#!/bin/bash
# Nodes that are lost or frozen under a job, two live copies of one job, arrays, chains.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh

# A job of two nodes, each with a directory of its own.
both() { # NAME STEPS
  submit "$1" -N2 --ntasks-per-node=1 --requeue <<END
#!/bin/bash
srun $CKPT run --run $1 --dir /tmp/$1 --to $WORK/$1 --marker DONE --settle 0.5 --rank-wait 1m -- \
  $(training "$1" --dir "/tmp/$1" --steps "$2")
END
}
saved() { seen 90 "$WORK/$1.log" "\"saved\", \"step\": $2,"; }
# Where the machine is busy the first commit comes long after its files: without it there is nothing to go on from.
committed() { seen 90 "$WORK/$1.out" 'committed checkpoint-'; }
node_of_first() { sed -n 's/.*"rank": 0,.*"host": "n\([1-4]\)".*/\1/p' "$WORK/$1.log" | tail -n 1; }
node_of_other() { sed -n 's/.*"rank": 1,.*"host": "n\([1-4]\)".*/\1/p' "$WORK/$1.log" | tail -n 1; }
# Slurm waits a minute, and for several answers, until it gives the rest of a job up whose node is frozen.
again() { seen 300 "$WORK/$1.log" '"start", "step": [1-9]'; }

# Resumes the nodes that Slurm has drained, since it could not end the rest of a job there at once.
nodes_resume() {
  local n
  for n in 1 2 3 4; do
    scontrol update nodename="n$n" state=resume 2>/dev/null
    wait_for 60 "node $n" is_up "$n"
  done
}

# ---- a node is lost, with its processes and its disk ----

both lost 80
saved lost 10
committed lost
n=$(node_of_first lost)
node_lose "$n"
again lost
tell $? "after the loss of the first rank's node the job goes on from what is in the store"
reaches 120 "$JOB" COMPLETED
whole lost 5
node_return "$n"

# ---- a node is frozen: the job goes on elsewhere, and what wakes up later writes nothing ----

both frozen 100
saved frozen 10
committed frozen
n=$(node_of_first frozen)
node_freeze "$n"
again frozen
tell $? "where the first rank's node is frozen the job goes on elsewhere"
reaches 120 "$JOB" COMPLETED
node_thaw "$n"
nodes_resume
sleep 5
whole frozen 5

# ---- Slurm's own processes on a node stand still, and the tasks there do not ----

commits() { grep -c 'committed checkpoint-' "$WORK/$1.out"; }
# shellcheck disable=SC2317 # wait_for calls it
more_than() { (($(commits "$1") > $2)); }

both stepd 60
saved stepd 10
committed stepd
n=$(node_of_other stepd)
daemons_signal "$n" STOP slurmstepd
had=$(commits stepd)
wait_for 60 "three more commits" more_than stepd $((had + 2))
daemons_signal "$n" CONT slurmstepd
reaches 120 "$JOB" COMPLETED
[[ $(grep -c '"start"' "$WORK/stepd.log") == 2 ]]
tell $? "the daemon of a step stands still, and the job saves and ends"
whole stepd 5

both deaf 100
saved deaf 10
committed deaf
n=$(node_of_other deaf)
daemons_signal "$n" STOP "slurmd|slurmstepd"
again deaf
tell $? "where Slurm's daemons of a node stand still, the job goes on elsewhere"
reaches 120 "$JOB" COMPLETED
daemons_signal "$n" CONT "slurmd|slurmstepd"
nodes_resume
sleep 5
whole deaf 5

# ---- two live copies of one job: what slurmctld makes of one when it is killed at the wrong moment ----

submit copies -N4 --ntasks-per-node=1 <<END
#!/bin/bash
copy() {
  srun -N2 -n2 -w "\$2" $CKPT run --run copies --dir /tmp/copies --to $WORK/copies --marker DONE --settle 0.5 -- \
    $(training copies --dir /tmp/copies --steps 40) >$WORK/copy.\$1 2>&1
  echo "\$?" >$WORK/copy.\$1.code
}
copy a "n[1-2]" &
until [[ -e $WORK/copies/checkpoint-10/.ckpt-manifest.json ]]; do sleep 0.1; done
copy b "n[3-4]" &
wait
END
reaches 180 "$JOB" COMPLETED
grep -q "fenced" "$WORK/copy.a" && [[ $(cat "$WORK/copy.a.code") == 14 ]]
tell $? "of two live copies of a job the first is fenced, and says so"
[[ $(cat "$WORK/copy.b.code") == 0 ]] && grep -q "resume from" "$WORK/copy.b"
tell $? "and the second goes on from what it saved"
whole copies 3

# ---- an array, each task with a target of its own; and two with one ----

submit array --array=1-4 -n1 <<END
#!/bin/bash
srun $CKPT run --run "a\$SLURM_ARRAY_TASK_ID" --dir /tmp/array-\$SLURM_ARRAY_TASK_ID \
  --to $WORK/array/\$SLURM_ARRAY_TASK_ID --marker DONE --settle 0.5 -- \
  $(training "array-\$SLURM_ARRAY_TASK_ID" --dir "/tmp/array-\$SLURM_ARRAY_TASK_ID" --steps 10)
END
reaches 90 "$JOB" COMPLETED
for n in 1 2 3 4; do
  mv "$WORK/array/$n" "$WORK/array-$n"
  whole "array-$n" 2
done

submit twice --array=1-2 -N1 --exclusive <<END
#!/bin/bash
srun $CKPT run --run twice --dir /tmp/twice --to $WORK/twice --marker DONE --settle 0.5 -- \
  $(training twice --dir /tmp/twice --steps 30) || echo "task \$SLURM_ARRAY_TASK_ID ends with \$?"
END
wait_for 90 "the end of both" eval "[[ \$(state $JOB) == COMPLETED ]]"
[[ $(grep -c "^task [12] ends with 11$" "$WORK/twice.out") == 1 ]]
tell $? "of two tasks of an array with one target one is refused"
whole twice 4

# ---- the last task of an array, which has the array's own number ----

submit last --array=1-3 -N1 -n1 --requeue <<END
#!/bin/bash
exec $CKPT run --requeue --run "l\$SLURM_ARRAY_TASK_ID" --dir /tmp/last-\$SLURM_ARRAY_TASK_ID \
  --to $WORK/last/\$SLURM_ARRAY_TASK_ID --marker DONE --settle 0.5 -- \
  $(training "last-\$SLURM_ARRAY_TASK_ID" --dir "/tmp/last-\$SLURM_ARRAY_TASK_ID" --steps 1000)
END
for n in 1 2 3; do seen 60 "$WORK/last-$n.log" '"saved", "step": 5,'; done
scancel --batch --signal=TERM "${JOB}_3"
again last-3
tell $? "the last task of an array is started again"
sleep 6
[[ $(cat "$WORK"/last-[12].log | grep -c '"start"') == 2 ]]
tell $? "and no other one of it"
scancel "$JOB"

# ---- a chain ----

page 3 chain --steps 60 >"$WORK/chain.sh"
submit chain --nodes=2 --ntasks-per-node=1 -w "n[1-2]" <"$WORK/chain.sh"
first=$JOB
submit chain --nodes=2 --ntasks-per-node=1 -w "n[3-4]" <"$WORK/chain.sh"
saved chain 10
scancel --full --signal=KILL "$first"
reaches 60 "$JOB" RUNNING
again chain
tell $? "the next job of a chain goes on from what a killed one saved"
python3 -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
last = max(l["time"] for l in lines if l["job"] == sys.argv[2])
sys.exit(min(l["time"] for l in lines if l["job"] == sys.argv[3]) > last + 40)' "$WORK/chain.log" "$first" "$JOB"
tell $? "at once, though the lease of the killed one stands"
reaches 90 "$JOB" COMPLETED
whole chain 4

echo "1..$tests"
exit $((failures > 0))
