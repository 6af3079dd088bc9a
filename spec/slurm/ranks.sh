#!/bin/bash
# What each rank says of its own at its end, and that nobody waits for a rank that cannot come.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh

# A job of so many nodes, a rank on each; its exit.json goes to $WORK/NAME.N.json, as all ends with its node.
ranks() { # NAME NODES TRAINING...
  submit "$1" -N"$2" --ntasks-per-node=1 <<END
#!/bin/bash
cat >$WORK/$1.task <<'TASK'
trap : TERM # this shell waits for what it started
$CKPT run --run $1 --dir /tmp/$1 --to $WORK/$1 --marker DONE --settle 0.5 -- ${*:3}
echo "\$?" >$WORK/$1.\$SLURM_PROCID.code
cp /tmp/$1.ckpt/exit.json $WORK/$1.\$SLURM_PROCID.json
TASK
srun bash $WORK/$1.task
echo "it ended"
END
}
code() { cat "$WORK/$1.$2.code" 2>/dev/null; }
newest_saved() { # NAME RANK: the number of the newest checkpoint that it wrote
  sed -n "s/.*\"saved\", \"step\": \([0-9]*\),.*\"rank\": $2,.*/\1/p" "$WORK/$1.log" | sort -n | tail -n 1
}
# What a rank says is true: durable, if its newest is in the target, else not, and that is named.
speaks_true() { # NAME RANK
  python3 - "$WORK/$1" "$WORK/$1.$2.json" "checkpoint-$(newest_saved "$1" "$2")" "$(code "$1" "$2")" <<'END'
import json, os, sys
store, said, newest, code = sys.argv[1:]
said = json.load(open(said))
there = any(name.split(".~")[0] == newest for name in os.listdir(store))
there = there and os.path.exists(os.path.join(store, newest, ".ckpt-manifest.json"))
named = newest in [item["unit"] for item in said["not_durable"]]
print(f"{newest}: {'in' if there else 'not in'} the target; code {code}, {said['summary']}")
sys.exit((there, code == "0", said["durable"], not named).count(there) != 4)
END
}

# ---- tasks that are not in step: each saves another checkpoint when it is told to end ----

ranks apart 4 "$(training apart --dir /tmp/apart --steps 1000 --apart --pace "0.\$((30 + 3 * SLURM_PROCID))")"
seen 90 "$WORK/apart.log" '"saved", "step": 10,'
sleep 2
scancel --signal=TERM "$JOB"
since=$SECONDS
seen 60 "$WORK/apart.out" "it ended"
((SECONDS - since < 20))
tell $? "ranks that have different last checkpoints do not wait for each other until they are killed"
for n in 0 1 2 3; do
  speaks_true apart $n >"$WORK/said"
  tell $? "rank $n: $(cat "$WORK/said")"
done
whole apart 1

# ---- a rank whose training dies ----

ranks dies 2 "bash -c 'if [[ \$SLURM_PROCID == 1 ]]; then
    timeout -s KILL 4 $(training dies --dir /tmp/dies --steps 1000 --apart); else
    exec $(training dies --dir /tmp/dies --steps 30 --apart); fi'"
seen 90 "$WORK/dies.log" '"end", "step": 30,'
since=$SECONDS
seen 90 "$WORK/dies.out" "it ended"
((SECONDS - since < 30))
tell $? "a rank that ended is not waited for, though --rank-wait is ten minutes"
[[ $(code dies 0) == 6 ]] && grep -q "rank 1 has no part of it, and has ended" "$TELL_LOG"
tell $? "and is named"
speaks_true dies 0 >"$WORK/said"
tell $? "rank 0: $(cat "$WORK/said")"
whole dies 1

# ---- a rank that is refused: another run has its state directory ----

refused() { # NAME RANK
  submit "$1" -N2 --ntasks-per-node=1 <<END
#!/bin/bash
srun --overlap -N1 -n1 -w "\$(scontrol show hostnames | sed -n $(($2 + 1))p)" $CKPT run --ranks off --run other --dir /tmp/$1 --to $WORK/$1.other -- sleep 60 &
until [[ -e $WORK/$1.other/.ckpt/log ]]; do sleep 0.1; done
srun --overlap -N2 -n2 $CKPT run --run $1 --dir /tmp/$1 --to $WORK/$1 --marker DONE --settle 0.5 -- \
  $(training "$1" --dir "/tmp/$1" --steps 10 --apart)
echo "it took \$SECONDS s"
wait
END
  seen 120 "$WORK/$1.out" "it took"
  TOOK=$(sed -n 's/^it took \(.*\) s$/\1/p' "$WORK/$1.out")
  scancel "$JOB"
}
refused first 0
((TOOK < 40)) && grep -q "rank 0 of launch .* has ended: another ckpt-lua has the state directory" "$TELL_LOG"
tell $? "where rank 0 is refused the others do not wait for it ($TOOK s)"
refused second 1
((TOOK < 40)) && grep -q "rank 1 has no part of it, and has ended: another ckpt-lua" "$TELL_LOG"
tell $? "where another rank is refused rank 0 does not wait for it ($TOOK s)"

echo "1..$tests"
exit $((failures > 0))
