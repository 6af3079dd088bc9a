#!/bin/bash
# Tasks on several nodes that write into one directory, and several on each node's own: what is committed has the
# shards of all, however the job ends. The nodes have processes of their own: of another one's nobody sees an open
# file.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh

# The runner for tasks that see one directory, and a training whose last task comes late.
one() { # NAME OPTIONS...
  echo "$CKPT run --run $1 --dir $WORK/$1.dir --dir-is shared --to $WORK/$1 --marker DONE ${*:2} --"
}
late() { training "$1" --dir "$WORK/$1.dir" --shared "${@:2}"; }

# ---- ended by 0 ----

submit late -N4 --ntasks-per-node=1 <<END
#!/bin/bash
srun $(one late) $(late late --steps 5 --late 8)
END
late=$JOB
reaches 90 "$late" COMPLETED
whole late 1

submit polled -N4 --ntasks-per-node=1 <<END
#!/bin/bash
srun $(one polled --poll) $(late polled --steps 15 --late 4)
END
reaches 120 "$JOB" COMPLETED
whole polled 1

# ---- ended by TERM: each has the grace to save ----

submit term -N4 --ntasks-per-node=1 <<END
#!/bin/bash
srun $(one term --settle 6 --grace 25) $(late term --steps 400 --late 3)
END
seen 120 "$WORK/term.out" "committed checkpoint-"
scancel --signal=TERM "$JOB.0"
reaches 90 "$JOB" COMPLETED
whole term 2
last=$(sed -n 's/.*"what": "saved", "step": \([0-9]*\),.*/\1/p' "$WORK/term.log" | sort -n | tail -n 1)
grep -q "newest checkpoint-$last " "$WORK/term.out"
tell $? "what was saved on TERM, by each a little later, is the newest ($last)"

# ---- preempted: each has the grace to save, and the next start goes on from that ----

submit preempted -N4 --ntasks-per-node=1 --requeue <<END
#!/bin/bash
srun $(one preempted --requeue) $(late preempted --steps 40 --late 2)
END
seen 120 "$WORK/preempted.log" '"saved", "step": 5,'
sbatch -p high -N4 -n16 -o /dev/null --wrap "sleep 1" >/dev/null
seen 90 "$WORK/preempted.log" '"start", "step": [1-9]'
told=$(sed -n 's/.*"what": "told", "step": \([0-9]*\),.*/\1/p' "$WORK/preempted.log" | sort -u)
from=$(sed -n 's/.*"what": "start", "step": \([1-9][0-9]*\),.*/\1/p' "$WORK/preempted.log" | sort -u)
[[ -n $told && $from == "$told" ]] && grep -q "newest checkpoint-$told " "$WORK/preempted.out"
tell $? "what was saved at a preemption, by each a little later, is committed, and the next start goes on from it ($told, $from)"
reaches 120 "$JOB" COMPLETED
[[ $(came preempted TERM) == 1 ]]
tell $? "and each training got TERM once"
whole preempted 2

# ---- two tasks on each node, whose directory is its own ----

submit own -N2 --ntasks-per-node=2 <<END
#!/bin/bash
srun $CKPT run --run own --dir /tmp/own --to $WORK/own --marker DONE -- \
  $(training own --dir /tmp/own --steps 5 --late 6)
END
reaches 120 "$JOB" COMPLETED
whole own 1

echo "1..$tests"
exit $((failures > 0))
