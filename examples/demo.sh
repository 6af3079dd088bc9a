#!/bin/bash
# The main job, shown: a training run is killed twice, resumes, and ends with the same bits as one
# that was never killed. Each thing it says is checked; the exit status is 0 only if all was so.
#
#   examples/demo.sh      (or: make demo)
#
# Environment: CKPT_LUA (./ckpt-lua), KEEP=1 (leaves the files where they are and says where).
set -u
cd "$(dirname "$0")/.." || exit 1
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}

STEPS=240 EVERY=30
# The optimizer's state takes 2 s to be written, as that of a large model would.
TRAINER=(luajit examples/train.lua --steps "$STEPS" --save-every "$EVERY")
SLOW_SAVES=(--save-delay 2)

D=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-demo.XXXXXX") || exit 1
OUT=$D/out STORE=$D/store
session="" # the runner that is going on; it leads a session of its own

clean_up() {
  [[ -z $session ]] || kill -9 -- "-$session" 2>/dev/null
  if [[ -n ${KEEP-} ]]; then echo "The files are in $D"; else rm -rf "$D"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# --- saying and checking --------------------------------------------------------------------

step() { printf '\n%s\n' "== $*"; }
say() { printf '   %s\n' "$@"; }

fail() {
  printf '\nNOT SO: %s\n' "$*"
  local log
  for log in "$D"/*.log; do
    [[ ! -s $log ]] || { echo "--- the end of $log" && tail -n 15 "$log"; }
  done
  exit 1
}

claim() { # TEXT COMMAND...: says it if the command agrees
  local text=$1
  shift
  "$@" >>"$D/checks.log" 2>&1 || fail "$text"
  say "$text"
}

wait_for() { # SECONDS TEXT COMMAND...
  local until=$((SECONDS + $1)) text=$2
  shift 2
  until "$@"; do
    ((SECONDS < until)) || fail "$text"
    sleep 0.05
  done
}

# --- looking ---------------------------------------------------------------------------------

commits_in() { grep -c '^ckpt-lua: committed ' "$1"; }
has_commits() { (($(commits_in "$1") >= $2)); }
newest_commit() { "$CKPT" ls --json "$STORE" | sed -n 's/.*"name":"\([^"]*\)".*/\1/p' | tail -n 1; }
newest_dir() { printf '%s\n' "$OUT"/checkpoint-* | sort -t- -k2,2n -V | tail -n 1; }
size_of() { stat -c %s "$1" 2>/dev/null || echo 0; }

# A save is going on: no trainer_state.json yet, and optimizer.pt grows.
in_a_save() {
  local dir before
  dir=$(newest_dir)
  before=$(size_of "$dir/optimizer.pt")
  ((before > 0)) || return 1
  sleep 0.15
  (($(size_of "$dir/optimizer.pt") > before)) && [[ ! -e $dir/trainer_state.json ]]
}

# The live processes of a session: "PID PARENT" lines. (/proc, because ps may not be installed.)
session_of() {
  local stat rest state parent sid
  for stat in /proc/[0-9]*/stat; do
    rest=$(cat "$stat" 2>/dev/null) || continue
    read -r state parent _ sid _ <<<"${rest##*) }"
    [[ $sid != "$1" || $state == [ZX] ]] || echo "${rest%% *} $parent"
  done
}
all_gone() { [[ -z $(session_of "$1") ]]; }

# --- doing -----------------------------------------------------------------------------------

# The same command each time: whoever starts the job again need not know that it was killed.
start() { # LOG
  setsid "$CKPT" run --dir "$OUT" --to "file://$STORE" --settle 1 --resume-arg '--resume {}' -- \
    "${TRAINER[@]}" "${SLOW_SAVES[@]}" --dir "$OUT" >"$1" 2>&1 &
  session=$!
}

resumed_from() { # LOG CHECKPOINT: the trainer said so
  grep -qx "resumed from $OUT/$2 at step ${2#checkpoint-}" "$1"
}

step "1. The reference: the same training, alone, never killed"
"${TRAINER[@]}" --dir "$D/reference" >"$D/reference.log" 2>&1 || fail "the trainer does not work"
reference=$(grep '^final ' "$D/reference.log") || fail "the reference has no last line"
say "It ends with: $reference"

step "2. The training under ckpt-lua; everything is killed in the middle of a save"
say "$ ckpt-lua run --dir out --to file://store --settle 1 --resume-arg '--resume {}' -- \\" \
  "    ${TRAINER[*]} ${SLOW_SAVES[*]} --dir out"
start "$D/first.log"
wait_for 40 "two checkpoints are committed in 40 s" has_commits "$D/first.log" 2
wait_for 20 "a save begins" in_a_save
kill -9 -- "-$session"
wait "$session" 2>/dev/null
wait_for 5 "nothing of it lives on" all_gone "$session"
session=""
torn=$(basename "$(newest_dir)")
say "$(commits_in "$D/first.log") checkpoints were committed. Then SIGKILL, to the runner and the trainer at once."
say "Left behind in out/$torn, the newest directory:"
find "$OUT/$torn" -type f -printf '     %9s bytes  %f\n' | sort -k3
claim "It is torn: trainer_state.json, which comes last, is not there." test ! -e "$OUT/$torn/trainer_state.json"
if "${TRAINER[@]}" --dir "$OUT" --resume auto >"$D/alone.log" 2>&1; then
  fail "the trainer cannot resume by itself"
fi
say "The trainer by itself takes the newest directory, and fails at each new start:" \
  "  $(tail -n 1 "$D/alone.log")"
good=$(newest_commit)
[[ $good == checkpoint-* ]] || fail "the store lists a commit"
claim "The store does not list $torn. Its newest is $good." test "$good" != "$torn"
claim "All that it lists is whole, to the last byte (ckpt-lua verify)." "$CKPT" verify "$STORE"

step "3. The same command again"
start "$D/second.log"
wait_for 30 "the trainer resumes from $good" resumed_from "$D/second.log" "$good"
say "The trainer resumed from $good, the newest commit."
claim "The torn $torn was moved to quarantine; nothing of it was deleted." \
  test -e "$(find "$OUT.ckpt/quarantine" -path "*/$torn/optimizer.pt")"

step "4. The runner alone is killed, and the directory is lost too"
wait_for 40 "it commits again" has_commits "$D/second.log" 2
sleep 0.7
trainer=$(session_of "$session" | awk -v runner="$session" '$2 == runner { print $1 }')
[[ -n $trainer ]] || fail "the trainer runs"
kill -9 "$session"
wait "$session" 2>/dev/null
wait_for 10 "the trainer (process $trainer) ends when its runner is gone" all_gone "$session"
session=""
say "SIGKILL to the runner only. The kernel told the trainer (process $trainer) with SIGTERM: it ended."
rm -rf "$OUT"
say "Then out/ was deleted, as if the next start were on another machine's empty disk."
good=$(newest_commit)
[[ $good == checkpoint-* ]] || fail "the store lists a commit"

step "5. The same command again, to the end"
start "$D/third.log"
wait "$session"
code=$?
session=""
claim "The newest commit, $good, was restored from the store, and the trainer resumed from it." \
  resumed_from "$D/third.log" "$good"
claim "It ended with 0, and all that it saved is durable." test $code -eq 0
claim "Nothing was trained from the beginning again." \
  test "$(cat "$D/second.log" "$D/third.log" | grep -c '^started with')" -eq 0
say "  $(tail -n 1 "$D/third.log")"
final=$(grep '^final ' "$D/third.log")
say "never killed: $reference" "killed twice: $final"
claim "Loss and weights are equal, to the bit." test "$final" = "$reference"

step "6. What the store has"
"$CKPT" ls "$STORE" || fail "the store can be listed"
claim "Its newest is the last one, checkpoint-$STEPS." test "$(newest_commit)" = "checkpoint-$STEPS"
claim "Each one is whole, to the last byte." "$CKPT" verify "$STORE"
claim "It can be restored into another directory." "$CKPT" restore "$STORE" --dir "$D/restored"
claim "What is restored is what the trainer wrote." \
  diff -r "$OUT/checkpoint-$STEPS" "$D/restored/checkpoint-$STEPS"
printf '\nDone: killed twice, nothing lost but the work since the last checkpoint. %d s.\n' "$SECONDS"
