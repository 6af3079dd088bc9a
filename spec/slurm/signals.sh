#!/bin/bash
# How Slurm ends a job, and what becomes of it: scancel, preemption, the time limit, with srun and without.
# The batch scripts are those of docs/ranks.md, to the letter but for their places and their training.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh

# ---- scancel: the job gets TERM once, and what it saves is kept; KillWait is all the time there is ----

submit cancelled -N4 --ntasks-per-node=1 --requeue <<END
#!/bin/bash
srun $CKPT run --dir /tmp/c --to $WORK/cancelled --marker DONE --settle 0.5 --requeue -- \
  $(training cancelled --dir /tmp/c --steps 1000)
END
seen 60 "$WORK/cancelled.log" '\"saved\", \"step\": 10,'
scancel "$JOB"
reaches 60 "$JOB" CANCELLED
[[ $(came cancelled TERM) == 1 ]]
tell $? "after scancel each training gets TERM once"
whole cancelled 2
sleep 8
is "$JOB" CANCELLED
tell $? "a job that was cancelled is not started again"

submit stubborn -N1 -n1 <<END
#!/bin/bash
srun $CKPT run --dir /tmp/s --to $WORK/stubborn --marker DONE --settle 0.5 -- \
  $(training stubborn --dir /tmp/s --steps 1000 --ignore)
END
seen 60 "$WORK/stubborn.log" '\"saved\", \"step\": 5,'
scancel "$JOB"
seen 30 "$TELL_LOG" "ckpt-lua: [0-9]* committed"
tell $? "a training that does not end is ended before KillWait is over, and the last word is said"

# ---- in the batch script, without srun: slurmstepd signals all of it, or, for --signal=B:, the script alone ----

batch() { # NAME EXEC WORDS...
  submit "$1" -N1 "${@:3}" <<END
#!/bin/bash
$2 $CKPT run --dir /tmp/$1 --to $WORK/$1 --marker DONE --settle 0.5 -- $(training "$1" --dir "/tmp/$1" --steps 1000)
END
  seen 60 "$WORK/$1.log" '\"saved\", \"step\": 5,'
}
batch plain ""
scancel "$JOB"
reaches 60 "$JOB" CANCELLED
[[ $(came plain TERM) == 1 ]]
tell $? "a training in the batch script gets TERM once"
batch replaced exec
scancel "$JOB"
reaches 60 "$JOB" CANCELLED
[[ $(came replaced TERM) == 1 ]]
tell $? "also where exec made the script our own process"
batch alone exec
scancel --batch --signal=TERM "$JOB"
seen 30 "$WORK/alone.log" '"told"'
[[ $(came alone TERM) == 1 ]]
tell $? "a signal for the script alone is passed on, once"
for name in plain replaced alone; do whole $name; done

# ---- preemption ----

again() { seen "$2" "$WORK/$1.log" '"start", "step": [1-9]'; }

submit preempted --nodes=4 --ntasks-per-node=1 < <(page 1 preempted --steps 40)
seen 60 "$WORK/preempted.log" '"saved", "step": 10,'
sbatch -p high -N4 -n16 -o /dev/null --wrap "sleep 1" >/dev/null
again preempted 60
tell $? "a job that was preempted is started again, and goes on from what it saved"
reaches 60 "$JOB" COMPLETED
[[ $(came preempted TERM) == 1 ]]
tell $? "and each training got TERM once"
whole preempted 4

# ---- the time limit: Slurm looks at it each 30 s, and warns up to 60 s before what was asked for ----

submit limited --nodes=4 --ntasks-per-node=1 -t 2 --signal=TERM@60 < <(page 1 limited --steps 1000)
limited=$JOB
submit script -n1 -t 2 --signal=B:TERM@60 < <(page 2 script --steps 1000)
script=$JOB
for name in limited script; do
  again $name 180
  tell $? "$name: a job whose time is over is started again, and goes on from what it saved"
  [[ $(came $name TERM) == 1 ]]
  tell $? "$name: each training got TERM once"
done
scancel "$limited" "$script"
reaches 60 "$limited" CANCELLED
reaches 60 "$script" CANCELLED
whole limited 2
whole script 2

echo "1..$tests"
exit $((failures > 0))
