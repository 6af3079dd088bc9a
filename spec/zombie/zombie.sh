#!/bin/bash
# Writers that are pushed aside and do not know it: spec/zombie/zombie.sh, or make test-zombie.
#
# A run is stopped (SIGSTOP) as it makes its n-th system call of a kind (a bucket: while the answer to
# its n-th request is on the way); a run on another host, with
# another state directory, takes its place, saves and ends; then the first one goes on. Its term must
# be over: it stops by itself with code 14 and says who took over, nothing of the winner's is touched,
# and gc removes what its late writes left, or names it, and gc --remove removes that. A reader of its
# own (spec/crash/check.py) compares all that is committed. Then: the clone of a machine with all its state, and two launches of one job at
# the same time.
#
# Speaks TAP. Environment: CKPT_LUA (./ckpt-lua), ZOMBIE_STRIDE (1; 5: every fifth point), TARGET (file;
# s3: a server of its own), KEEP=1 (leaves the files).
set -u
cd "$(dirname "$0")/../.." || exit 1
CHECK=$PWD/spec/crash/check.py
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
TARGET=${TARGET:-file}
# Calls that the engine makes and the trainer does not.
calls=(linkat fsync renameat2)

skip() {
  echo "1..0 # SKIP $*"
  exit 0
}
[[ -z ${SANITIZE-} ]] || skip "a sanitizer and strace do not go together"
command -v strace >/dev/null || skip "there is no strace"
strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "strace cannot trace here"
unshare --uts --mount --pid --fork --mount-proc true 2>/dev/null || skip "no namespaces for another host's name here"
unset "${!SLURM_@}" RANK WORLD_SIZE

if [[ $TARGET == s3 ]]; then
  # shellcheck source=spec/servers/s3.sh
  . spec/servers/s3.sh
  s3_begin || exit 0
  s3_proxy 0
  calls=(request)
  ZOMBIE_STRIDE=${ZOMBIE_STRIDE:-7}
fi
ROOT=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-zombie.XXXXXX") || exit 1
# shellcheck disable=SC2317 # the trap below calls it
clean_up() {
  local pid
  for pid in "$ROOT"/*/*.pid; do
    [[ -e $pid ]] && kill -KILL "$(<"$pid")" 2>/dev/null
  done
  if [[ -n ${KEEP-} ]]; then
    echo "# kept: $ROOT"
  else
    rm -rf "$ROOT"
  fi
  [[ $TARGET != s3 ]] || s3_end
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# shellcheck source=spec/tap.sh
. spec/tap.sh

# What the job does: each word is a number, whose checkpoint it makes, or a file, which it waits for.
cat >"$ROOT/job" <<'JOB'
for word in "${@:2}"; do
  if [[ $word == */* ]]; then
    until [[ -e $word ]]; do read -r -t 0.05 <> <(:); done
    continue
  fi
  mkdir -p "$CKPT_DIR/checkpoint-$word"
  for part in a b; do printf '%s %s %s\n' "$1" "$word" "$part" >"$CKPT_DIR/checkpoint-$word/$part"; done
  : >"$CKPT_DIR/checkpoint-$word/DONE"
  "$CKPT_LUA" notify "checkpoint=checkpoint-$word" --wait -q
done
exit 0
JOB
export CKPT_LUA=$CKPT
fresh_place() {
  places=$((${places:-0} + 1))
  W=$ROOT/$places
  STORE=$W/store TO=file://$W/store
  [[ $TARGET != s3 ]] || STORE=$S3_DATA/$places TO=s3://ckpt-test/$places
  mkdir -p "$W/out" "$W/other"
}

# A run as another host has it. It ends with the runner's code.
run_on() { # HOST DIR OPTIONS... -- WORDS...
  local host=$1 dir=$2 options=()
  shift 2
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  # shellcheck disable=SC2016 # for the shell within
  unshare --uts sh -c 'hostname "$0" && echo $$ >"$1" && shift && exec "$@"' "$host" "$W/$host.pid" \
    "$CKPT" run --run one --dir "$dir" --to "$TO" --settle 0.1 --marker DONE --grace 5 "${options[@]}" -- \
    bash "$ROOT/job" "$host" "${@:2}" >"$W/$host.log" 2>&1
  local rc=$?
  rm -f "$W/$host.pid" # another process may get this number, and the end kills what is in these files
  return $rc
}

is_alive() { kill -0 "$1" 2>/dev/null; }

await_file() { # FILE
  for _ in {1..1000}; do
    [[ -s $1 ]] && return 0
    sleep 0.02
  done
  return 1
}

await_commit() { # HOST
  for _ in {1..1000}; do
    grep -qs '^ckpt-lua: committed' "$W/$1.log" && return 0
    sleep 0.02
  done
  complain "$1 commits nothing: $(tail -n 1 "$W/$1.log")"
}

# The stops of threads that come to their n-th call later are passed over.
go_on() { # PID
  for _ in {1..1500}; do
    is_alive "$1" || return 0
    kill -CONT "$1" 2>/dev/null
    sleep 0.02
  done
  kill -KILL "$1"
  return 1
}

# --- what must hold -------------------------------------------------------------------------

complain() { printf '%s\n' "$*" >>"$W/findings"; }
wrong() { # 1, and what, if there was a complaint
  [[ ! -s $W/findings ]] || sed 's/^/# /' "$W/findings" >&2
  [[ -s $W/findings ]]
  echo "$((!$?))"
}

# Each commit whole, and nothing of the loser's after the winner's term.
check_store() { # UNIT=PATH...
  local sources=() source
  for source in "$@"; do sources+=(--source "$source"); done
  "$CHECK" store "${sources[@]}" "$STORE" >>"$W/findings" 2>&1
}

has_commit() { # UNIT
  "$CHECK" commits "$STORE" | grep -q " $1 "
}

# The files that neither the log nor a commit accounts for, and that are no hint of a run (docs/format.md).
litter() {
  local dirs
  dirs=$("$CHECK" commits "$STORE" | awk '{ print $3 }')
  (cd "$STORE" && find . -type f ! -path './.ckpt/log/*' ! -path './.ckpt/cleared/*' \
    ! -name memory ! -name head ! -name lease ! -name verified ! -name race |
    grep -vE "^\./($(tr '\n' '|' <<<"$dirs" | sed 's/|$//;s/\./\\./g'))/")
}

check_gc() {
  local left key
  find "$STORE/.ckpt" -exec touch -h -d '2 days ago' {} + # the clock of either store
  "$CKPT" gc "$TO" --grace-delete 0 >"$W/gc.log" 2>&1 || complain "gc ended with $?: $(tail -n 1 "$W/gc.log")"
  # What came after its save was cleared is nobody's to remove but the user's.
  while read -r key; do
    "$CKPT" gc "$TO" --remove "$key" >>"$W/gc.log" 2>&1 || complain "gc --remove $key: $(tail -n 1 "$W/gc.log")"
  done < <(sed -n 's/^left \([^ ]*\) .*/\1/p' "$W/gc.log")
  left=$(litter)
  [[ -z $left ]] || complain "gc leaves $left"
}

# --- a run is stopped at a point ------------------------------------------------------------

check_fenced() { # CODE
  (($1 == 14)) || complain "the old run ended with $1: $(tail -n 1 "$W/old.log")"
  grep -q "fenced: term [0-9]* was opened by host new" "$W/old.log" ||
    complain "it does not say who took over"
  ! has_commit checkpoint-9 || complain "it has committed after the other one's term"
}

check_winner() {
  local n sources=()
  for n in 1 2 9; do sources+=("checkpoint-$n=$W/out/checkpoint-$n"); done
  for n in 4 5; do
    sources+=("checkpoint-$n=$W/other/checkpoint-$n")
    has_commit "checkpoint-$n" || complain "checkpoint-$n of the new run is gone"
  done
  check_store "${sources[@]}"
}

# Begins the run that will be stopped; sets `tracer`.
begin_old() { # CALL NUMBER
  local job=("$CKPT" run --run one --dir "$W/out" --to "$TO" --settle 0.1 --marker DONE --grace 5 --
    bash "$ROOT/job" old 1 2 "$W/all" "$W/go" 9)
  local host=(unshare --uts sh -c "hostname old; echo \$\$ >'$W/old.pid'; exec \"\$@\"" sh)
  if [[ $1 == request ]]; then
    rm -f "$RULES.log"
    printf '%d * *\n1 * * late 3\n' "$(($2 - 1))" >"$RULES.new" && mv "$RULES.new" "$RULES"
    AWS_ENDPOINT_URL=$PROXY "${host[@]}" "${job[@]}" >"$W/old.log" 2>&1 &
  else
    strace -f -o /dev/null -e trace="$1" -e inject="$1:signal=SIGSTOP:when=$2" \
      "${host[@]}" "${job[@]}" >"$W/old.log" 2>&1 &
  fi
  tracer=$!
}

# 0: the point was reached.
stopped_at() { # CALL NUMBER
  local tracer pid reached=0 terms rc
  fresh_place
  begin_old "$1" "$2"
  await_file "$W/old.pid" || { complain "it did not begin" && return 0; }
  pid=$(<"$W/old.pid")
  await_point "$pid" "$1" "$2" && reached=1
  terms=$(grep -l '"type":"term"' "$STORE"/.ckpt/log/* 2>/dev/null | wc -l)
  if ((reached)); then
    run_on new "$W/other" --state "$W/new.state" --take-over -- 4 5 || {
      complain "the new run ended with $?: $(tail -n 1 "$W/new.log")"
    }
  fi
  : >"$W/all" && : >"$W/go"
  go_on "$pid" || { complain "the old run did not end" && kill -KILL "$tracer"; }
  wait "$tracer" 2>/dev/null
  rc=$?
  rm -f "$W/old.pid"
  # The walk ends where a run ends well before the point, and not where one breaks down.
  ((reached || rc == 0)) || complain "it was not stopped, and ended with $rc: $(tail -n 1 "$W/old.log")"
  ((reached)) || return 1
  if ((terms)); then
    check_fenced "$rc"
  else # it had not begun, and begins after the other one's end
    ((rc == 0)) || complain "it came later, and ended with $rc: $(tail -n 1 "$W/old.log")"
    has_commit checkpoint-9 || complain "it came later, and did not save"
  fi
  check_winner
  check_gc
  check_winner
  return 0
}

# 0 when it has stopped there; 1 when it has nothing to do any more, so the point is not there.
await_point() { # PID CALL NUMBER
  local same=0 idle=0 state
  for _ in {1..3000}; do
    state=$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
    [[ -n $state && $state != [ZX] ]] || return 1
    [[ $state == [tT] ]] && same=$((same + 1)) || same=0
    ((same < 8)) || return 0
    [[ $2 != request || $(grep -sc . "$RULES.log") -lt $3 ]] || kill -STOP "$1"
    grep -q 'committed.*checkpoint-2' "$W/old.log" && idle=$((idle + 1))
    ((idle < 40)) || return 1
    sleep 0.03
  done
  return 1
}

walk() { # CALL
  local n points=0 bad=0 late=0
  for ((n = 1; n < 400; n += ${ZOMBIE_STRIDE:-1})); do
    stopped_at "$1" "$n" || {
      [[ ! -s $W/findings ]] || { bad=$((bad + 1)) && sed "s/^/# $1 $n: /" "$W/findings"; }
      break
    }
    points=$((points + 1))
    grep -q ' \(litter\|temporary\|upload\|attempt\)' "$W/gc.log" && late=$((late + 1))
    if [[ -s $W/findings ]]; then
      bad=$((bad + 1))
      sed "s/^/# $1 $n: /" "$W/findings"
    fi
    [[ -n ${KEEP-} ]] || rm -rf "$W"
  done
  all=$((${all:-0} + points))
  tell "$((points == 0 || bad > 0))" "stopped at its n-th $1: $points points, $late with something left for gc, $bad wrong"
}

# --- without a word it is refused -----------------------------------------------------------

refused() {
  fresh_place
  run_on old "$W/out" -- 1 "$W/go" &
  local old=$!
  await_commit old
  run_on new "$W/other" --state "$W/new.state" -- 4
  local rc=$?
  : >"$W/go"
  wait "$old" || complain "the first one ended with $?"
  ((rc == 11)) && grep -q 'host old, pid .*--take-over' "$W/new.log"
  tell "$(($? || $(wrong)))" "a second writer without --take-over ends with 11, and names the first"
}

# --- the clone of a machine -----------------------------------------------------------------

# Equal host, path, boot. The copy of the state directory is another one, so without a word it is
# refused; after that the term alone tells who goes on.
clone() {
  fresh_place
  run_on twin "$W/out" --state "$W/state" -- 1 "$W/go" 9 &
  local first=$! rc second
  await_commit twin
  mkdir "$W/copy" && cp -a "$W/out" "$W/state" "$W/copy/"
  run_clone
  rc=$?
  ((rc == 11)) || complain "the clone was not refused, and ended with $rc: $(tail -n 1 "$W/clone.log")"
  run_clone --take-over
  second=$?
  : >"$W/go"
  wait "$first"
  rc=$?
  ((second == 0)) || complain "the clone ended with $second: $(tail -n 1 "$W/clone.log")"
  ((rc == 14)) || complain "the first one ended with $rc: $(tail -n 1 "$W/twin.log")"
  has_commit checkpoint-9 && complain "both have committed"
  check_store "checkpoint-1=$W/out/checkpoint-1" "checkpoint-2=$W/copy/out/checkpoint-2"
  check_gc
  tell "$(wrong)" "of a machine and its clone the one that began later goes on, the other one stops"
}

# It sees none of the other machine's processes. A clone is no mount, as its directory is here.
run_clone() { # [OPTION]
  # shellcheck disable=SC2016 # for the shell within
  unshare --uts --mount --pid --fork --mount-proc sh -c 'hostname twin && mount --bind "$0/copy/out" "$0/out" &&
    mount --bind "$0/copy/state" "$0/state" && exec "$@"' "$W" \
    "$CKPT" run --run one --dir "$W/out" --state "$W/state" --to "$TO" --settle 0.1 --marker DONE --grace 5 \
    --owns-dir "$@" -- bash "$ROOT/job" clone 2 >"$W/clone.log" 2>&1
}

# --- two launches of one job ----------------------------------------------------------------

launches() {
  fresh_place
  local codes=() sources=() i n
  for i in 0 1; do
    (
      export SLURM_JOB_ID=77 SLURM_RESTART_COUNT=0
      run_on "node$i" "$W/$i" --state "$W/state$i" -- "$((i + 1))" "$((i + 3))" "$((i + 5))"
    ) &
    codes+=($!)
  done
  for i in 0 1; do
    wait "${codes[i]}"
    codes[i]=$?
  done
  # The later term wins. If the first was through before the second came, each was alone.
  case "${codes[*]}" in
  '0 14' | '14 0' | '0 11' | '11 0') ;;
  '0 0') ;;
  *) complain "they ended with ${codes[*]}" ;;
  esac
  for i in 0 1; do
    ((codes[i] == 0)) || grep -qE 'fenced: term|another writer is alive' "$W/node$i.log" ||
      complain "node$i does not say why: $(tail -n 1 "$W/node$i.log")"
  done
  for n in 1 2 3 4 5 6; do sources+=("checkpoint-$n=$W/$(((n + 1) % 2))/checkpoint-$n"); done
  check_store "${sources[@]}"
  ended="${codes[*]}"
}

two_launches() {
  local n bad=0 seen=""
  for ((n = 0; n < 6; n++)); do
    launches
    seen+="${seen:+, }$ended"
    [[ ! -s $W/findings ]] || { bad=$((bad + 1)) && sed 's/^/# launches: /' "$W/findings"; }
  done
  tell "$bad" "two launches with the same job id at once: one goes on ($seen)"
}

# The job of the one that is pushed aside may go on by itself.
detached() {
  fresh_place
  run_on old "$W/out" --on-fenced=detach -- 1 "$W/go" 9 "$W/end" &
  local old=$!
  await_commit old
  run_on new "$W/other" --state "$W/new.state" --take-over -- 4 || complain "the new run ended with $?"
  : >"$W/go"
  for _ in {1..500}; do
    grep -q 'fenced: term' "$W/old.log" && break
    sleep 0.02
  done
  sleep 0.5
  is_alive "$old" || complain "it ended with its run"
  : >"$W/end"
  wait "$old"
  local rc=$?
  ((rc == 14)) || complain "it ended with $rc"
  [[ -e $W/out/checkpoint-9/DONE ]] || complain "the job was stopped"
  tell "$(wrong)" "with --on-fenced=detach the job goes on, and nothing of it is saved"
}

if [[ $TARGET == file ]]; then
  echo "1..$((${#calls[@]} + 4))"
else
  echo "1..$((${#calls[@]} + 1))"
fi
begin=$SECONDS
refused
for call in "${calls[@]}"; do walk "$call"; done
if [[ $TARGET == file ]]; then
  clone
  two_launches
  detached
fi
echo "# $all points in $((SECONDS - begin)) s"
exit $((failures > 0))
