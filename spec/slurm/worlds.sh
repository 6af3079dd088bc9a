#!/bin/bash
# Ranks that start again as another number, on other nodes: 4, 2, 3, each node with a directory of its own.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh

# The steps from which tasks of a world began.
began() { sed -n "s/.*\"start\", \"step\": \([0-9]*\),.*\"world\": $1,.*/\1/p" "$WORK/worlds.log" | sort -u | xargs; }

world() { # TASKS NODES STEPS: the training goes on to that step
  submit worlds -N"$1" --ntasks-per-node=1 -w "$2" <<END
#!/bin/bash
srun $CKPT run --run worlds --dir /tmp/worlds --to $WORK/worlds --marker DONE --settle 0.5 -- \
  $(training worlds --dir /tmp/worlds --steps "$3")
END
  reaches 120 "$JOB" COMPLETED
}
world 4 "n[1-4]" 10
world 2 "n[3-4]" 20
[[ $(began 2) == 10 ]]
tell $? "two ranks go on from what four have saved ($(began 2))"
world 3 "n[1-3]" 30
[[ $(began 3) == 20 ]]
tell $? "and three from what the two have ($(began 3))"
whole worlds 6

echo "1..$tests"
exit $((failures > 0))
