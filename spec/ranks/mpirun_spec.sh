#!/bin/bash
# The real mpirun of Open MPI, whose tasks write into one directory: what is committed has the shards of all, also
# where the first one ends before the others. An independent reader judges the store (spec/slurm/judge.py).
cd "$(dirname "$0")/../.." || exit 1
if ! command -v mpirun >/dev/null; then
  echo "1..0 # SKIP mpirun is not installed (openmpi-bin)"
  exit 0
fi
# shellcheck source=spec/tap.sh
. spec/tap.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-mpirun.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}

tasks() { # NAME LEAST TRAINING...: LEAST commits at least are whole afterwards
  TELL_LOG=$work/$1.out
  timeout -k 5 100 mpirun --allow-run-as-root --oversubscribe -n 4 \
    "$CKPT" run --run "$1" --dir "$work/$1.dir" --to "$work/$1" --marker DONE -- \
    spec/slurm/trainer.py --log "$work/$1.log" --dir "$work/$1.dir" --shared "${@:3}" >"$TELL_LOG" 2>&1
  tell $? "$1: all of them end well"
  python3 -I spec/slurm/judge.py "$work/$1" "$work/$1.log" "$2" >>"$TELL_LOG" 2>&1
  tell $? "$1: each commit has the shards of all tasks"
}

# mpirun is told to end while its tasks work: the first one saves when it gets TERM, which takes longer than mpirun
# waits by default.
ended() { # NAME OPTION...: leaves what was said in $TELL_LOG
  TELL_LOG=$work/$1.out
  local dir=$work/$1.dir
  mkdir "$dir"
  # shellcheck disable=SC2016 # it is for the shell of the task
  # In the foreground it passes a signal on once; of two within seconds mpirun dies at once, and tells nobody.
  timeout --foreground -k 60 100 mpirun --allow-run-as-root --oversubscribe "${@:2}" -n 2 \
    "$CKPT" run --run "$1" --dir "$dir" --to "$work/$1" --marker DONE -- sh -c '
      save() { sleep 2; mkdir "$0/checkpoint-1"; : >"$0/checkpoint-1/DONE"; exit 0; }
      if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then trap save TERM; else trap "exit 0" TERM; fi
      : >"$0/../up.$OMPI_COMM_WORLD_RANK"
      while :; do sleep 0.1; done' "$dir" >"$TELL_LOG" 2>&1 &
  local pid=$!
  while [ ! -e "$work/up.0" ] || [ ! -e "$work/up.1" ]; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  rm -f "$work"/up.*
  kill -TERM "$pid"
  wait "$pid"
}

tasks even 1 --steps 10
tasks late 1 --steps 5 --late 4

ended short
grep -q "within 1 s: mpirun kills it then, --mca odls_base_sigkill_timeout 60 gives it more" "$TELL_LOG"
tell $? "a task that mpirun ends says how long that leaves, and what makes it more"
ended long --mca odls_base_sigkill_timeout 20
grep -q "within 20 s: mpirun kills it then" "$TELL_LOG" && "$CKPT" verify "$work/long" >>"$TELL_LOG" 2>&1 &&
  grep -q "checkpoint-1" <("$CKPT" ls "$work/long")
tell $? "a task to which mpirun leaves more has what it saves then committed"

echo "1..$tests"
exit $((failures > 0))
