#!/bin/bash
# The cost to evict in a comment of the job, as Slurm lets it be written: --slurm-comment, and nobody else's is touched.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/slurm/cluster.sh
. spec/slurm/cluster.sh
USER_WORK=$WORK/user
mkdir -m 777 "$USER_WORK" && chmod 755 "$WORK" || exit 1

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
shows() { scontrol show job "$1" | grep -q "^ *$2"; }
words() { # NAME DIR WORDS...: a run whose job saves one checkpoint and stays
  echo "$CKPT run --dir /tmp/$1 --to $2/$1 --marker DONE --settle 0.5 ${*:3} -- sh -c \
    'mkdir -p /tmp/$1/checkpoint-7; echo w >/tmp/$1/checkpoint-7/w; touch /tmp/$1/checkpoint-7/DONE; sleep 100'"
}
ours() { echo "$1=ckpt-lua time=[0-9]* last_durable_time=[0-9-]* step=[0-9-]* bytes_pending=[0-9]* seconds_to_durable=[0-9-]* lost_since=[0-9]*"; }

submit admin -N1 -n1 --wrap "srun $(words admin "$WORK" --slurm-comment admin)"
admin=$JOB
submit quiet -N1 -n1 --wrap "srun $(words quiet "$WORK")"
quiet=$JOB
submit others -N1 -n1 --comment="project x" --wrap "srun $(words others "$WORK" --slurm-comment user)"
others=$JOB
wait_for 60 "an AdminComment" shows "$admin" "$(ours AdminComment)"
tell 0 "an operator's job has the cost in AdminComment"
seen 60 "$WORK/others.out" "its comment is another's: project x"
shows "$others" "Comment=project x"
tell $? "a comment that somebody else wrote stays, and that is said"
seen 60 "$WORK/quiet.out" "committed checkpoint-7"
! shows "$quiet" "\\(Admin\\)\\?Comment=ckpt-lua"
tell $? "without the option nothing is written"
scancel "$admin" "$quiet" "$others"

# A user who is no operator.
as_user() { # NAME WORDS...
  TELL_LOG=$USER_WORK/$1.out
  JOB=$("${nobody[@]}" sbatch --parsable -D "$USER_WORK" --output="$TELL_LOG" -N1 -n1 --wrap "srun $(words "$1" "$USER_WORK" "${@:2}")")
}
if "${nobody[@]}" "$CKPT" version >/dev/null 2>&1; then
  as_user refused --slurm-comment admin
  seen 60 "$TELL_LOG" "its comment: .*ermission denied.*it is left alone from here on"
  seen 60 "$TELL_LOG" "committed checkpoint-7"
  ! shows "$JOB" "AdminComment=ckpt-lua"
  tell $? "a user is refused AdminComment, that is said, and the job is saved"
  [[ $(grep -c "denied" "$TELL_LOG") == 1 ]]
  tell $? "once"
  as_user allowed -v --slurm-comment user
  wait_for 200 "a Comment" shows "$JOB" "$(ours Comment)"
  tell 0 "and may write Comment"
else
  tests=$((tests + 1))
  echo "ok $tests - a user is refused AdminComment # SKIP nobody cannot run $CKPT"
fi
echo "1..$tests"
exit $((failures > 0))
