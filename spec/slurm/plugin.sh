#!/bin/bash
# srun's --ckpt options, which the SPANK plugin of contrib/slurm brings, with the real srun and slurmstepd.
cd "$(dirname "$0")/../.." || exit 1
PLUGIN=${CKPT_BUILD:-$PWD/build}/contrib/slurm/spank_ckpt.so
[[ -e $PLUGIN ]] || { echo "1..0 # SKIP the plugin was not built: there is no slurm/spank.h (libslurm-dev)" && exit; }
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh
echo "required $PLUGIN" >"$CKPT_CLUSTER/plugstack.conf"
fast="--marker DONE --settle 0.5"

# ---- tasks are saved, and others are left alone ----

# shellcheck disable=SC2046,SC2086 # the words of a command
srun -N2 --ntasks-per-node=1 --ckpt-to "$WORK/saved" --ckpt-dir /tmp/saved --ckpt-options "$fast" \
  $(training saved --dir /tmp/saved --steps 10) >"$WORK/saved.out" 2>&1
TELL_LOG=$WORK/saved.out
tell $? "a step with --ckpt-to ends as its tasks do"
whole saved 2

# shellcheck disable=SC2016 # the task has the words
shown() { "$@" bash -c 'printf "<%s>" "$0" "$@"; env | grep -c ^CKPT_TASK; exit 7' "two words" '*' ''; }
TELL_LOG=$WORK/shown.out
shown srun -n1 --ckpt-to "$WORK/shown" --ckpt-dir /tmp/shown >"$WORK/shown.out" 2>"$WORK/shown.err"
[[ $? == 7 && $(cat "$WORK/shown.out") == "<two words><*><>0" ]]
tell $? "the command gets its own words and ends with its own code, and sees nothing of the plugin's"
shown srun -n1 >"$WORK/plain.out" 2>"$WORK/plain.err"
[[ $? == 7 && $(cat "$WORK/plain.out") == "<two words><*><>0" ]]
tell $? "a step without the options is as it was"

echo 'return { api = 1, sync = function() return "skip", "too hot" end }' >"$WORK/none.lua"
# shellcheck disable=SC2046,SC2086
srun -n1 --ckpt-to "$WORK/none" --ckpt-dir /tmp/none --ckpt-policy "$WORK/none.lua" --ckpt-options "$fast" \
  $(training none --dir /tmp/none --steps 5) >"$WORK/none.out" 2>&1
TELL_LOG=$WORK/none.out
grep -q "not wanted" "$TELL_LOG" && [[ $($CKPT ls "$WORK/none" 2>/dev/null | grep -c '^checkpoint') == 0 ]]
tell $? "the policy decides"

# ---- what cannot be done is said before a task begins ----

refused() { # TEXT COMMAND...
  TELL_LOG=$WORK/refused.out
  rm -f "$WORK/began"
  "${@:2}" >"$TELL_LOG" 2>&1
  [[ $? == 2 && ! -e $WORK/began ]] && grep -q -e "$1" "$TELL_LOG"
}
for optional in required optional; do
  echo "$optional $PLUGIN" >"$CKPT_CLUSTER/plugstack.conf"
  refused "give both --ckpt-to and --ckpt-dir" srun -n1 --ckpt-to "$WORK/half" touch "$WORK/began"
  tell $? "half of the options is refused, where the plugin is $optional"
done
echo "required $PLUGIN" >"$CKPT_CLUSTER/plugstack.conf"
echo "0 touch $WORK/began" >"$WORK/multi"
refused "a step with --multi-prog cannot be saved" srun -n1 --ckpt-to "$WORK/multi.store" --ckpt-dir /tmp/multi \
  --multi-prog "$WORK/multi"
tell $? "so is a step of several programs"
mkdir "$WORK/alone" && cp "$PLUGIN" "$WORK/alone/"
echo "required $WORK/alone/spank_ckpt.so" >"$CKPT_CLUSTER/plugstack.conf"
refused "ckpt-task is not beside the plugin" srun -n1 --ckpt-to "$WORK/half" --ckpt-dir /tmp/half touch "$WORK/began"
tell $? "a task does not begin without its runner"
echo "required $PLUGIN" >"$CKPT_CLUSTER/plugstack.conf"

# ---- a user, and root's daemon ----

mkdir -m 1777 "$WORK/users"
TELL_LOG=$WORK/users.out
cat >"$WORK/train.sh" <<END
mkdir -p /tmp/users/checkpoint-1 && id -u >/tmp/users/checkpoint-1/w && touch /tmp/users/checkpoint-1/DONE
END
chmod 755 "$WORK" && chmod 644 "$WORK/train.sh"
setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp srun -n1 --chdir=/tmp --ckpt-to "$WORK/users/store" \
  --ckpt-dir /tmp/users --ckpt-options "$fast" bash "$WORK/train.sh" >"$TELL_LOG" 2>&1 &&
  [[ $(cat "$WORK/users/store/checkpoint-1/w") == 65534 &&
    -z $(find "$WORK/users/store" ! -user 65534) ]]
tell $? "all that is done is done as the user"
! ldd "$PLUGIN" | grep -qE "lua|curl|ssl|jansson"
tell $? "slurmstepd gets no Lua and no curl with it"

# ---- preempted, and started again ----

submit again -N1 --requeue --open-mode=append <<END
#!/bin/bash
srun --ckpt-to $WORK/again --ckpt-dir /tmp/again --ckpt-options "--requeue --run again $fast" \
  $(training again --dir /tmp/again --steps 40)
END
again=$JOB
seen 60 "$WORK/again.log" '"saved", "step": 5,'
scancel --signal=TERM "$again"
seen 90 "$WORK/again.log" '"end", "step": 40,'
reaches 60 "$again" COMPLETED
whole again 2
grep -q '"life": "1"' "$WORK/again.log"
tell $? "a job that was told to end goes on from its last checkpoint"

echo "1..$tests"
exit $((failures > 0))
