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

tasks even 1 --steps 10
tasks late 1 --steps 5 --late 4

echo "1..$tests"
exit $((failures > 0))
