#!/bin/bash
# Ranks of which one is frozen (SIGSTOP) and goes on later: spec/zombie/ranks.sh, or make test-zombie.
#
# The first rank stands still behind its own part, and another one commits for it, or a newer launch takes its place;
# then it goes on: no commit is wrong, and no word of it is. And a task of a shared directory stands still
# for longer than one may be silent (30 s), and comes back while the save is at its deadline. A reader of its own
# (spec/crash/check.py) compares what is committed.
#
# Speaks TAP. Environment: CKPT_LUA (./ckpt-lua), KEEP=1 (leaves the files).
set -u
cd "$(dirname "$0")/../.." || exit 1
CHECK=$PWD/spec/crash/check.py
export CKPT_LUA=${CKPT_LUA:-$PWD/ckpt-lua}
unset "${!SLURM_@}" RANK WORLD_SIZE

ROOT=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-zombie-ranks.XXXXXX") || exit 1
started=()
# shellcheck disable=SC2317 # the trap below calls it
clean_up() {
  local one
  for one in "${started[@]}"; do
    kill -CONT "$one" 2>/dev/null
    kill -KILL "$one" 2>/dev/null
  done
  if [[ -n ${KEEP-} ]]; then
    echo "# kept: $ROOT"
  else
    rm -rf "$ROOT"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# shellcheck source=spec/tap.sh
. spec/tap.sh

# What a rank does: it waits for a file before it makes its part, and for another one before it ends.
cat >"$ROOT/part" <<'JOB'
await() { until [[ -e $1 ]]; do read -r -t 0.05 <> <(:); done; }
await "$1"
mkdir -p "$CKPT_DIR/making" && echo "$MINE" >"$CKPT_DIR/making/shard-$MINE" && echo all >"$CKPT_DIR/making/config"
mv "$CKPT_DIR/making" "$CKPT_DIR/checkpoint-1"
await "$2"
exit 0
JOB

fresh_place() {
  W=$ROOT/$1
  mkdir -p "$W"
  findings=$W/findings
  : >"$findings"
}
complain() { printf '%s\n' "$*" >>"$findings"; }
wrong() {
  [[ ! -s $findings ]] || sed 's/^/# /' "$findings" >&2
  [[ -s $findings ]]
  echo "$((!$?))"
}

# Its process is pid[NAME]; its output is in NAME.log.
declare -A pid
start() { # NAME COMMAND...
  "${@:2}" >"$W/$1.log" 2>&1 &
  started+=($!)
  pid[$1]=$!
}

start_rank() { # RANK GO END
  MINE=$1 start "rank$1" "$CKPT_LUA" run --run one --dir "$W/out-$1" --to "file://$W/store" --settle 0.1 \
    --launch-id frozen --rank "$1" --world 3 --rank-wait 300s --grace 5 -- bash "$ROOT/part" "$2" "$3"
}

await() { # WHAT SECONDS COMMAND...
  local until=$((SECONDS + $2))
  until "${@:3}"; do
    ((SECONDS < until)) || { complain "$1 does not come" && return 1; }
    sleep 0.1
  done
}
# shellcheck disable=SC2317 # await() calls it
has_files() { compgen -G "$1" >/dev/null; }
commits() { "$CHECK" commits "$W/store" 2>/dev/null | wc -l; }
# shellcheck disable=SC2317 # await() calls it
has_commits() { (($(commits) == $1)); }

ends_with() { # NAME CODE
  wait "${pid[$1]}"
  local rc=$?
  ((rc == $2)) || complain "$1 ended with $rc, not $2: $(tail -n 1 "$W/$1.log")"
}

# The whole, as the ranks have made it: what several have is as the first one made it.
make_whole() {
  local rank
  mkdir -p "$W/whole"
  for rank in 0 1 2; do cp -pn "$W/out-$rank/checkpoint-1"/* "$W/whole"; done
}
check_store() { "$CHECK" store --source "checkpoint-1=$W/whole" "$W/store" >>"$findings" 2>&1; }
count_entries() { # TYPE
  grep -l "\"type\":\"$1\"" "$W"/store/.ckpt/log/* 2>/dev/null | wc -l
}

# The first rank has put its part, and stands still before the others do.
freeze_the_first() {
  local rank
  : >"$W/go-0"
  for rank in 0 1 2; do start_rank "$rank" "$W/go-$rank" "$W/end"; done
  await "the part of rank 0" 60 has_files "$W/store/.ckpt/parts/*/*/0" || return 1
  kill -STOP "${pid[rank0]}"
}

led_past() {
  local rank
  fresh_place led
  freeze_the_first
  : >"$W/go-1" && : >"$W/go-2"
  await "the commit of another rank" 120 has_commits 1
  make_whole
  check_store
  kill -CONT "${pid[rank0]}"
  : >"$W/end"
  for rank in 0 1 2; do ends_with "rank$rank" 0; done
  has_commits 1 || complain "$(commits) commits"
  (($(count_entries commit) == 1)) || complain "$(count_entries commit) entries of a commit"
  check_store
  for rank in 0 1 2; do
    grep -q '^ckpt-lua: committed' "$W/rank$rank.log" || complain "rank $rank does not say that it is committed"
    ! grep -E 'has no part|has ended|gave|not committed|unsaved' "$W/rank$rank.log" >>"$findings"
  done
  tell "$(wrong)" "a frozen first rank that another one commits for says, when it goes on, what is true"
}

pushed_aside() {
  local rank
  fresh_place aside
  freeze_the_first
  mkdir -p "$W/new"
  : >"$W/go"
  MINE=0 "$CKPT_LUA" run --run one --dir "$W/new" --to "file://$W/store" --settle 0.1 --take-over --grace 5 -- \
    bash "$ROOT/part" "$W/go" "$W/go" >"$W/new.log" 2>&1 || complain "the new run ended with $?: $(tail -n 1 "$W/new.log")"
  mkdir "$W/whole" && cp -p "$W"/new/checkpoint-1/* "$W/whole"
  : >"$W/go-1" && : >"$W/go-2"
  sleep 2 # the others come upon it by themselves
  kill -CONT "${pid[rank0]}"
  : >"$W/end"
  for rank in 0 1 2; do ends_with "rank$rank" 14; done
  has_commits 1 || complain "$(commits) commits"
  check_store
  for rank in 0 1 2; do
    ! grep '^ckpt-lua: committed' "$W/rank$rank.log" >>"$findings" || complain "rank $rank says that it is committed"
  done
  tell "$(wrong)" "ranks that a newer launch pushed aside while the first was frozen commit nothing, and end with 14"
}

# --- one directory ----------------------------------------------------------------------------

# On TERM the first saves at once; the other one's shard is written on until its own runner goes on.
cat >"$ROOT/shared" <<'JOB'
save() {
  mkdir -p "$CKPT_DIR/checkpoint-$1"
  echo "$MINE" >"$CKPT_DIR/checkpoint-$1/shard-$MINE"
}
if [[ $MINE == 0 ]]; then
  trap 'save 100; echo ok >"$CKPT_DIR/checkpoint-100/DONE"; exit 0' TERM
  save 1 && echo ok >"$CKPT_DIR/checkpoint-1/DONE"
else
  trap 'save 100; echo end >>"$CKPT_DIR/checkpoint-100/shard-1"; exit 0' TERM
  save 1
fi
while :; do read -r -t 0.1 <> <(:); done
JOB

start_task() { # INDEX
  MINE=$1 start "task$1" env TORCHELASTIC_RUN_ID=frozen RANK="$1" WORLD_SIZE=2 LOCAL_RANK="$1" LOCAL_WORLD_SIZE=2 \
    "$CKPT_LUA" run --run one --dir "$W/out" --to "file://$W/store" --marker DONE --settle 0.5 --grace "$GRACE" -- \
    bash "$ROOT/shared"
}

# It comes back so many seconds after TERM.
late_task() { # GRACE BACK
  local GRACE=$1 rc
  fresh_place "shared-$1-$2"
  start_task 0
  start_task 1
  await "the first checkpoint" 60 has_commits 1
  kill -STOP "${pid[task1]}"
  kill -TERM "${pid[task0]}" "${pid[task1]}"
  sleep "$2"
  kill -CONT "${pid[task1]}"
  wait "${pid[task0]}"
  rc=$?
  wait "${pid[task1]}"
  if has_commits 2; then
    [[ $(cat "$W/store/checkpoint-100/shard-1" 2>&1) == $'1\nend' ]] || complain "checkpoint-100 lacks the shard of task 1"
    ((rc == 0)) || complain "it is saved, and task 0 ended with $rc: $(tail -n 1 "$W/task0.log")"
    came="is saved"
  else
    ((rc != 0)) || complain "checkpoint-100 is not saved, and task 0 ended with 0: $(tail -n 1 "$W/task0.log")"
    grep -q 'checkpoint-100' "$W/task0.log" || complain "task 0 does not name checkpoint-100"
    came="is not, and named"
  fi
  "$CHECK" store --source "checkpoint-1=$W/out/checkpoint-1" --source "checkpoint-100=$W/out/checkpoint-100" \
    "$W/store" >>"$findings" 2>&1
  tell "$(wrong)" "a task frozen for $2 s of a grace of $1: what is not seen whole is not saved (checkpoint-100 $came)"
}

echo 1..4
led_past
pushed_aside
late_task 60 34
late_task 36 34
exit $((failures > 0))
