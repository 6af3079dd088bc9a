#!/bin/bash
# One run that is killed again and again: spec/crash/crash.sh, or make test-crash SIZE=1GiB N=50; with
# TARGET=s3 (make test-crash-s3) its target is a bucket, of a server of its own. The files of versitygw are read;
# SERVER=minio-kms and the others of spec/servers/s3.sh are asked, by a client of its own.
#
# A trainer (trainer.py) writes checkpoints of 40 files under `ckpt-lua run`. It is killed with SIGKILL N
# times in a row: each second time as the runner enters a system call (strace, a call and a number by
# lot, recovery and restore included), else at a moment by lot (the runner alone, or the trainer too).
# Each time:
#   - the newest checkpoint is restored into an empty directory, and must be the last one that was
#     reported as committed, or a newer one, equal byte for byte to what it must be;
#   - each checkpoint that the store lists is compared in the same way, once;
#   - the next start resumes; the trainer compares what it is given before it goes on.
# Each third time the trainer's directory is lost too, so the next start must restore.
#
# Environment: TARGET (file), SERVER (versitygw), SETUP (no: nothing is installed), KEEP (with a number only so many
# are kept, and the others deleted at once), SIZE of a checkpoint (64MiB), N kills (20), CRASH_DIR (a fresh directory
# below /tmp; up to 8 x SIZE), SEED of the lots (the time; it is printed), CKPT_LUA (./ckpt-lua).
set -u
cd "$(dirname "$0")/../.." || exit 1
HERE=$PWD/spec/crash
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
N=${N:-20}
size=$(numfmt --from=auto "${SIZE:-64Mi}" 2>/dev/null || numfmt --from=iec-i --suffix=B "${SIZE-}") || exit 2
size=${size%B}

RANDOM=$((${SEED:=$((EPOCHSECONDS % 32768))}))
# Time for a save, at 200 MB/s. One that takes longer has also the time of the trainer's next save.
pause=$(LC_ALL=C awk -v s="$size" 'BEGIN { printf "%.1f", 1 + s / 2e8 }')
# A store only grows: after so many commits the run begins anew at another place.
((most = size > 256 << 20 ? 3 : 8))
# Calls that the engine makes and the trainer does not: strace cannot tell them apart. What goes to a
# bucket goes by sendto, in pieces of parts, manifests and log entries.
calls=fsync,fdatasync,linkat,renameat2,mkdirat,unlinkat,fchmod,utimensat,copy_file_range
TARGET=${TARGET:-file}
if [[ $TARGET == s3 ]]; then
  # shellcheck source=spec/servers/s3.sh
  . spec/servers/s3.sh
  [[ ${SETUP-} == no || ${SERVER:-versitygw} == versitygw ]] || "spec/servers/${SERVER%%-*}.sh" install
  s3_begin || exit 0
  calls=fsync,fdatasync,renameat2,mkdirat,fchmod,utimensat,sendto,connect
  pause=$(LC_ALL=C awk -v s="$size" 'BEGIN { printf "%.1f", 1 + s / 5e7 }')
fi

ROOT=$(mktemp -d "${CRASH_DIR:-/tmp}/ckpt-crash.XXXXXX") || exit 1
retention=()
if [[ -n ${KEEP-} ]]; then
  echo "return { api = 1, keep = keep.last($KEEP) }" >"$ROOT/keep.lua"
  retention=(-p "$ROOT/keep.lua" --grace-delete 0 --max-delete "100%")
fi
session=""
# shellcheck disable=SC2317 # the trap below calls it
clean_up() {
  [[ -z $session ]] || kill -9 -- "-$session" 2>/dev/null
  rm -rf "$ROOT"
  [[ $TARGET != s3 ]] || s3_end
}
trap clean_up EXIT
trap 'exit 130' INT TERM

commits=0 bytes=0 in_parts=0 in_object=0 differences=0 torn=0 resumed=0 by_call=0 by_runner=0 by_group=0 late=0 places=0
say() { printf '# %s\n' "$*"; }
wrong() { # torn|differences TEXT...
  (($1 += 1))
  say "round $round: WRONG: ${*:2}"
  tail -n 5 "$W/log" | sed 's/^/#   /'
}

# --- the run --------------------------------------------------------------------------------

# Another place, in which one checkpoint is committed: what no kill may take away.
fresh_place() { # [STRACE...]
  [[ -z ${W-} ]] || rm -rf "$W" "$STORE"
  places=$((places + 1))
  W=$ROOT/$places acked=""
  STORE=$W/store TO=file://$W/store
  [[ $TARGET != s3 ]] || STORE=${S3_DATA:-$W}/$places TO=s3://$S3_BUCKET/$places
  mkdir -p "$W/out"
  : >"$W/seen" && : >"$W/log"
  local until=$((SECONDS + 300))
  start "$@"
  until [[ -n $(reported) ]]; do
    if [[ -z $(alive) ]] || ((SECONDS > until)); then
      say "a run does not work without a kill:"
      tail -n 20 "$W/log"
      exit 1
    fi
    sleep 0.1
  done
  kill -9 -- "-$session"
  how="with its trainer, when it had committed one"
  after_kill
}

# The trainer makes two more checkpoints than were reported, for the disk's sake, and then waits.
start() { # [STRACE...]
  local last
  last=$(reported | tail -n 1)
  last=${last#checkpoint-}
  setsid "$@" "$CKPT" run --run crash --dir "$W/out" --to "$TO" --settle 0.5 \
    --marker DONE --resume-arg '{}' "${retention[@]}" -- \
    "$HERE/trainer.py" train "$W/out" "$size" "$pause" $((${last:-0} + 2)) >>"$W/log" 2>&1 &
  session=$!
  disown # the shell would report each kill
}

# The live processes of the session, "PID COMMAND".
alive() {
  local stat rest state sid
  for stat in /proc/[0-9]*/stat; do
    rest=$(cat "$stat" 2>/dev/null) || continue
    read -r state _ _ sid _ <<<"${rest##*) }"
    [[ $sid != "$session" || $state == [ZX] ]] || echo "${rest%% *} ${rest#* }"
  done
}

wait_gone() { # SECONDS: 0 if nothing of the session is left
  local until=$((SECONDS + $1))
  while [[ -n $(alive) ]]; do
    ((SECONDS < until)) || return 1
    sleep 0.1
  done
}

reported() { sed -n 's/^ckpt-lua: committed \(checkpoint-[0-9]*\) .*/\1/p' "$W/log"; }

lot() { echo $(((RANDOM << 15 | RANDOM) % $1)); }

# The lower numbers come more often: each thread counts for itself, so a high one may never come.
kill_at_call() {
  local call number
  while
    read -r call number < <(sed -n "$(($(lot "$(wc -l <"$ROOT/most")") + 1))p" "$ROOT/most")
    # Most of what a bucket's server sees comes by this one.
    [[ $TARGET != s3 ]] || (($(lot 2))) || read -r call number < <(grep '^sendto ' "$ROOT/most")
    # These are made by a restore only.
    [[ $call == fchmod || $call == utimensat ]] && [[ -z $acked || -d $W/out ]]
  do :; done
  number=$(($(lot $(($(lot "$number") + 1))) + 1))
  how="as the runner entered its $call number $number"
  # Without --seccomp-bpf: with it strace 6.1 loses injections.
  start strace -f -o /dev/null -e "trace=$call" -e "inject=$call:signal=SIGKILL:when=$number"
  if wait_gone $((cycle * 2 / 1000 + 3)); then
    by_call=$((by_call + 1))
  else
    how="by lot ($call number $number did not come)"
    late=$((late + 1))
    kill -9 -- "-$session"
  fi
}

kill_by_lot() {
  local ms
  ms=$(lot $((cycle * 3 / 2)))
  start
  sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
  if (($(lot 2))); then
    how="with its trainer, after $ms ms"
    by_group=$((by_group + 1))
    kill -9 -- "-$session"
  else
    how="alone, after $ms ms"
    by_runner=$((by_runner + 1))
    kill -9 "$session"
  fi
}

# --- after a kill ---------------------------------------------------------------------------

# Each listed checkpoint is compared when it is first seen; later kills cannot change it unnoticed,
# for the newest is restored each time.
compare_listed() {
  local number unit dir count
  if ! "$HERE/check.py" commits "$STORE" >"$W/listed" 2>&1; then
    wrong torn "the log: $(cat "$W/listed")"
    return
  fi
  while read -r number unit dir; do
    grep -qx "$number" "$W/seen" && continue
    echo "$number" >>"$W/seen"
    commits=$((commits + 1))
    compare torn "$STORE/$dir" "$unit"
  done <"$W/listed"
  count=$("$CKPT" ls --json "$TO" 2>/dev/null | wc -l)
  ((count == $(wc -l <"$W/listed"))) || wrong torn "ls has $count checkpoints, the log $(wc -l <"$W/listed")"
}

compare() { # torn|differences PATH UNIT
  local text
  if text=$("$HERE/trainer.py" compare "$2" "${3#checkpoint-}" "$size" 2>&1); then
    bytes=$((bytes + text))
  else
    wrong "$1" "$text"
  fi
}

compare_restored() {
  local unit
  acked=$(reported | tail -n 1)
  if ! "$CKPT" restore "$TO" --dir "$W/restored" >"$W/restore.log" 2>&1; then
    [[ -z $acked && ! -s $W/listed ]] || wrong differences "no restore: $(tail -n 1 "$W/restore.log")"
    return
  fi
  unit=$(ls "$W/restored")
  ((${unit#checkpoint-} >= ${acked:+${acked#checkpoint-}}+0)) ||
    wrong differences "$unit was restored, $acked was reported"
  compare differences "$W/restored/$unit" "$unit"
  rm -rf "$W/restored"
}

has_parts() {
  if [[ -n $S3_DATA ]]; then
    [[ -n $(find "$S3_DATA/.sgwtmp" -type f 2>/dev/null | head -n 1) ]]
  else
    spec/servers/ask.py GET "/$S3_BUCKET" uploads= | grep -q "<Key>$places/"
  fi
}

# What of the save that was killed had arrived.
look_at_server() {
  sleep 0.3 # it may be carrying out what it has whole
  [[ -n $S3_DATA ]] || spec/servers/mirror.py "$S3_BUCKET" "$places" "$STORE" || wrong differences "the bucket cannot be read"
  if has_parts; then
    in_parts=$((in_parts + 1))
  elif ((round && $(find "$STORE" -name .ckpt-manifest.json | wc -l) > $("$HERE/check.py" commits "$STORE" | wc -l))); then
    in_object=$((in_object + 1))
  fi
}

after_kill() {
  wait_gone 15 || wrong differences "the trainer goes on after the runner's death: $(alive)"
  session=""
  [[ $TARGET != s3 ]] || look_at_server
  ! grep -q DIFFERS "$W/log" || wrong differences "$(grep DIFFERS "$W/log")"
  compare_listed
  compare_restored
  resumed=$((resumed + $(grep -c '^resumed ' "$W/log")))
  say "round $round: killed $how; the last that was reported: ${acked:-none}; in the store: $(wc -l <"$W/listed")"
  # The log keeps the reports of this place; what the trainer said is counted.
  reported | tail -n 1 | sed 's/.*/ckpt-lua: committed & (before)/' >"$W/log.new"
  mv "$W/log.new" "$W/log"
  rm -rf "$W/out.ckpt/quarantine"
  ((round % 3)) || rm -rf "$W/out"
  (($(wc -l <"$W/listed") < most)) || fresh_place
}

# --- main -----------------------------------------------------------------------------------

command -v strace >/dev/null || { echo "crash.sh: strace is needed"; exit 1; }
say "$N kills, checkpoints of 40 files and $size bytes, target $TARGET ${SERVER-}, SEED=$SEED"
round=0
begin=${EPOCHREALTIME/[.,]/} # a comma in some locales
fresh_place strace -f --seccomp-bpf -o "$ROOT/trace" -e "trace=$calls"
cycle=$(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
# A restore makes other calls, and each thread has its own numbers: the most of any thread counts.
rm -rf "$W/out"
start strace -f --seccomp-bpf -o "$ROOT/trace.restore" -e "trace=$calls"
sleep "$((cycle / 1000 + 1))"
kill -9 -- "-$session"
how="with its trainer, after a restore"
awk '$2 ~ /^[a-z]/ { sub(/\(.*/, "", $2); n = ++count[FILENAME $1 $2]; if (n > most[$2]) most[$2] = n }
  END { for (call in most) print call, most[call] }' "$ROOT/trace" "$ROOT/trace.restore" >"$ROOT/most"
after_kill
say "from a start to a commit: $cycle ms; the most that a thread makes: $(sort "$ROOT/most" | paste -sd, | sed 's/,/, /g')"

for ((round = 1; round <= N; round++)); do
  if ((by_call <= late + by_runner + by_group)); then kill_at_call; else kill_by_lot; fi
  after_kill
done

say "$N kills: $by_call at a system call; by lot $by_runner of the runner alone, $((by_group + late)) of all"
say "  ($late of these because their call did not come); $commits commits seen at $places places, $resumed starts resumed and compared,"
say "  $bytes bytes compared, $SECONDS s"
[[ $TARGET != s3 ]] || say "  $in_parts kills left parts of an upload, $in_object a manifest without its commit"
# Without a kill, a commit that was compared or a start that resumed there is nothing to be right about.
((by_call + late + by_runner + by_group == N && N > 0 && commits > 0 && bytes > 0 && resumed > 0))
unplayed=$?
((!unplayed)) || say "nothing was played, or less than $N kills"
printf '%s 1 - %d kills: %d differences, %d torn checkpoints listed\n1..1\n' \
  "$( ((unplayed + differences + torn)) && echo 'not ok' || echo ok)" "$N" "$differences" "$torn"
exit $((unplayed + differences + torn > 0))
