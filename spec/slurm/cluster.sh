# shellcheck shell=bash
# For specs on a real cluster: to be sourced first of all, with the script's own words. The script then runs at
# the head of a cluster of its own (spec/servers/slurm.sh), and is skipped, and says so, where there is none.
#
#   WORK               a directory that all nodes see; each node's own /tmp is lost with it
#   CKPT               the runner
#   training NAME WORDS...   prints the command of a training whose log is $WORK/NAME.log
#   submit NAME WORDS...     sbatch with a script on standard input, whose output is $WORK/NAME.out; JOB is its
#                      number then
#   page N NAME WORDS...     prints the batch script of that number on docs/ranks.md; its places are NAME's, and
#                      its training is one of NAME with these words
#   state JOB          prints its state in Slurm's words, of an array one for each task
#   reaches SECONDS JOB STATE   waits for it
#   seen SECONDS FILE TEXT      waits for a line in a file
#   whole NAME [LEAST] one test: each commit of $WORK/NAME is whole, as judge.py says
#   node_all N         prints the processes of a node
#   node_lose N, node_freeze N, node_thaw N, node_return N
#   daemons_signal N SIGNAL NAMES   to those processes of a node that have one of the names, as "slurmd|srun"
set -u
if [[ -z ${CKPT_CLUSTER-} ]]; then
  here=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-slurm.XXXXXX") || exit 1
  trap 'spec/servers/slurm.sh stop "$here"; [[ -n ${KEEP-} ]] || rm -rf "$here"' EXIT
  trap 'exit 130' INT TERM
  chmod 755 "$here"
  if ! spec/servers/slurm.sh start "$here" 2>"$here/why"; then
    echo "1..0 # SKIP no cluster: $(tail -n 1 "$here/why")"
    exit 0
  fi
  unset "${!SLURM_@}"
  CKPT_CLUSTER=$here spec/servers/slurm.sh run "$here" "$BASH" "$0" "$@" &
  wait $!
  exit
fi
# shellcheck source=spec/tap.sh
. spec/tap.sh
WORK=$CKPT_CLUSTER/work
mkdir "$WORK" || exit 1
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
TRAINER=$PWD/spec/slurm/trainer.py
# As a user has them, in the command lines of batch scripts.
PATH=$(dirname "$CKPT"):$PATH
export PATH WORK CKPT TRAINER

training() { echo "$TRAINER --log $WORK/$1.log ${*:2}"; }

submit() { # NAME WORDS...: TELL_LOG is its output from now on
  local name=$1
  TELL_LOG=$WORK/$name.out
  : >>"$TELL_LOG"
  # shellcheck disable=SC2034 # for who asked
  JOB=$(sbatch --parsable --job-name="$name" --output="$TELL_LOG" --open-mode=append "${@:2}") || exit 1
}

page() { # N NAME WORDS...
  awk -v n="$1" '/^```/ { if (inside && text ~ /#SBATCH/ && ++found == n) printf "%s", text
      inside = !inside; text = ""; next }
    inside { text = text $0 "\n" }' docs/ranks.md |
    sed "s|/scratch/out|/tmp/$2|; s|s3://bucket/exp1|$WORK/$2 --run $2 --marker DONE --settle 0.5|
      s|python train.py|$(training "$2" --dir "/tmp/$2" "${@:3}")|"
}

state() { squeue -h -t all -j "$1" -o %T 2>/dev/null | sort -u; }
is() { [[ $(state "$1") == "$2" ]]; }
reaches() { wait_for "$1" "$3 of job $2" is "$2" "$3"; }
seen() { wait_for "$1" "\"$3\" in $2" grep -q -e "$3" "$2"; }

whole() { # NAME [LEAST]
  python3 -I spec/slurm/judge.py "$WORK/$1" "$WORK/$1.log" "${@:2}" >"$WORK/judged" 2>&1
  local rc=$?
  tail -n 20 "$WORK/judged" | sed 's/^/# /'
  tell $rc "$1: an independent reader finds each commit whole"
}

# How often a signal came to each trainer of NAME that it came to, the largest number.
came() { # NAME SIGNAL
  python3 -c '
import collections, json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
came = collections.Counter((l["host"], l["pid"]) for l in lines if l["what"] == "signal" and l["signal"] == sys.argv[2])
print(max(came.values(), default=0))' "$WORK/$1.log" "$2"
}

# ---- nodes ----

node_all() { # N: the first process last
  local first namespace pid
  first=$(cat "/proc/$(cat "$CKPT_CLUSTER/node.$1.pid")/task"/*/children)
  namespace=$(readlink "/proc/${first%% *}/ns/pid")
  for pid in /proc/[0-9]*; do
    [[ $(readlink "$pid/ns/pid" 2>/dev/null) == "$namespace" && ${pid#/proc/} != "${first%% *}" ]] && echo "${pid#/proc/}"
  done
}

# shellcheck disable=SC2046 # numbers
node_signal() { kill "-$2" $(node_all "$1") 2>/dev/null; }
node_freeze() { node_signal "$1" STOP; }
node_thaw() { node_signal "$1" CONT; }
daemons_signal() {
  local pid
  for pid in $(node_all "$1"); do
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) =~ ^($3)$ ]] && kill "-$2" "$pid"
  done
}
node_lose() { kill -KILL "$(cat "$CKPT_CLUSTER/node.$1.pid")"; }
node_return() {
  spec/servers/slurm.sh node "$CKPT_CLUSTER" "$1"
  scontrol update nodename="n$1" state=resume 2>/dev/null
  wait_for 60 "node $1" is_up "$1"
}
is_up() { [[ $(sinfo -h -n "n$1" -p low -o %T) =~ ^(idle|allocated|mixed)$ ]]; }
