#!/bin/bash
# Jobs on a real Slurm cluster, what of them takes under a minute; `make test-slurm` has the rest.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh

# ---- one task; four tasks, each node with a directory of its own ----

submit one -N1 -n1 <<END
#!/bin/bash
srun $CKPT run --dir /tmp/one --to $WORK/one --marker DONE --settle 0.5 -- $(training one --dir /tmp/one --steps 10)
END
one=$JOB
submit four -N4 --ntasks-per-node=1 <<END
#!/bin/bash
srun $CKPT run --dir /tmp/four --to $WORK/four --marker DONE --settle 0.5 -- $(training four --dir /tmp/four --steps 10)
END
four=$JOB
reaches 60 "$one" COMPLETED
whole one 2
reaches 60 "$four" COMPLETED
whole four 1
grep -q '"rank": 3, "world": 4, "host": "n4"' "$WORK/four.log"
tell $? "four tasks ran on four nodes"

echo "1..$tests"
exit $((failures > 0))
