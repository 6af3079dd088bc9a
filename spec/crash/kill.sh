#!/bin/bash
# SIGKILL at every system call of save, commit, recovery, take-over, removal, collection and restore:
# spec/crash/kill.sh
#
# A small program (driver.c) plays a scenario with the engine; strace notes the calls that its two
# threads make. Then the scenario is played once for each (thread, call, number), and the process is
# killed as it enters that call. After each kill a reader of its own (check.py) looks at the store
# and at the directory; then the scenario is played again, must succeed, and leave nothing unfinished.
# At last the engine is built with a wrong order of calls, which this walk must find.
#
# Speaks TAP. Environment: CKPT_BUILD (build), KILL_STRIDE (1; 7: every seventh point), KILL_SCENARIOS
# (all; "first" has to be the first of some; one without a point at that stride is skipped), KILL_CALLS (for
# strace; those that change something), JOBS (4), TMPDIR (/dev/shm: no disk is needed, a kill loses no
# cached write), KEEP=1 (leaves the files of points that failed).
set -u
cd "$(dirname "$0")/../.." || exit 1

read -ra scenarios <<<"${KILL_SCENARIOS:-first again beside partial staged sealed take remove among given collect resume fetch}"
declare -A about=(
  [first]="the first save into an empty store"
  [again]="a second save, of a directory and of a file that is replaced"
  [beside]="a save with files beside it"
  [partial]="recovery from a save that was killed while it sent its files"
  [staged]="recovery from a save that was killed just before it was announced"
  [sealed]="recovery from a save that was killed just before its commit"
  [take]="a take-over from a writer that was killed while it sent its files"
  [remove]="a checkpoint that is no longer kept, and deleted"
  [among]="a checkpoint that is deleted, with somebody else's files among its own"
  [given]="a collection of a save that was given up after it was shown, with somebody else's files among its own"
  [collect]="a collection of what a killed save left"
  [resume]="a restore before a start, with a torn checkpoint in the way"
  [fetch]="a restore into an empty directory"
)
# The calls that change something which outlives the process. To be killed on entering one of them is
# the same as at any call since the one before it: files that were created, or closed, are covered.
changing=write,writev,pwrite64,pwritev,sendfile,copy_file_range,ioctl,ftruncate,fallocate
changing+=,fsync,fdatasync,sync_file_range,syncfs,link,linkat,symlink,symlinkat,rename,renameat,renameat2
changing+=,mkdir,mkdirat,unlink,unlinkat,rmdir,fchmod,fchmodat,utimensat,exit_group

# --- one scenario, in the directory W -------------------------------------------------------

# Each has its place, what was there before, and the command that is to be killed.
set_up() { # SCENARIO
  mkdir -p "$W/out" && cp -a "$SOURCES/." "$W/in" || return 1
  : >"$W/acked"
  case $1 in
  again)
    run "$DRIVER" save "$W/out" "$W/store" "$W/in/1/checkpoint-1" "$W/in/1/last.ckpt" &&
      grep -qx "committed checkpoint-1" "$W/acked"
    ;;
  partial | staged | sealed) killed "$(<"$ROOT/point.$1")" "$DRIVER" save "$W/out" "$W/store" "$W/in/1/checkpoint-1" ;;
  beside) cp -a "$SOURCES/with/." "$W/in/1" ;;
  take)
    killed "$(<"$ROOT/point.partial")" "$DRIVER" save "$W/other" "$W/store" "$W/in/1/checkpoint-1"
    cp -a "$SOURCES/1/checkpoint-1" "$W/in/1/"
    ;;
  remove | among)
    run "$DRIVER" save "$W/out" "$W/store" "$W/in/1/checkpoint-1" &&
      run "$DRIVER" save "$W/out" "$W/store" "$W/in/2/checkpoint-2" || return 1
    [[ $1 == remove ]] || cp -a "$ROOT/foreign/." "$W/store/checkpoint-1"
    ;;
  given)
    killed "$(<"$ROOT/point.sealed")" "$DRIVER" save "$W/out" "$W/store" "$W/in/1/checkpoint-1"
    sweep_last && cp -a "$ROOT/foreign/." "$W/store/checkpoint-1"
    ;;
  collect)
    # What the newest term has in its staging is for its own writer: only after another one it is litter.
    killed "$(<"$ROOT/point.partial")" "$DRIVER" save "$W/out" "$W/store" "$W/in/1/checkpoint-1"
    run "$DRIVER" take "$W/other" "$W/store" "$W/in/2/checkpoint-2" || return 1
    grow_old
    ;;
  resume | fetch)
    cp -a "$ROOT/saved/store" "$W/store"
    # What a trainer that was killed leaves: newer, and without its marker.
    [[ $1 == fetch ]] || { cp -a "$W/in/2/checkpoint-2" "$W/out/" && rm "$W/out/checkpoint-2/DONE"; }
    ;;
  esac
}

# The writer of the newest attempt gives it up, as the log has it.
sweep_last() {
  local log=$W/store/.ckpt/log attempt term n
  attempt=$(grep -l '"type":"attempt"' "$log"/* | tail -n 1) || return 1
  term=$(grep -l '"type":"term"' "$log"/* | tail -n 1) || return 1
  n=$(find "$log" -name '*.json' | wc -l)
  attempt=${attempt##*/} term=${term##*/}
  printf '{"type":"sweep","term":%d,"attempt":%d,"format":1,"reader":1,"n":%d,"nonce":"%032x","time_ns":1}' \
    "$((10#${term%.json}))" "$((10#${attempt%.json}))" "$n" "$n" >"$log/$(printf '%020d' "$n").json"
}

# To whoever collects, the last writer has not been heard of for longer than any lease.
grow_old() { find "$W/store" -exec touch -h -d '2 hours ago' {} +; }

command_of() { # SCENARIO: sets `cmd`
  if [[ $1 == beside ]]; then
    export DRIVER_POLICY=$ROOT/with.lua
  else
    unset DRIVER_POLICY
  fi
  case $1 in
  take) cmd=(take "$W/out" "$W/store" "$W/in/1/checkpoint-1") ;;
  # The pointer after what it names, as trainers do it: a start takes away one that names nothing.
  beside) cmd=(save "$W/out" "$W/store" "$W/in/1/checkpoint-1" "$W/in/1/notes.json" "$W/in/1/latest") ;;
  first | partial | staged | sealed) cmd=(save "$W/out" "$W/store" "$W/in/1/checkpoint-1") ;;
  again) cmd=(save "$W/out" "$W/store" "$W/in/2/checkpoint-2" "$W/in/2/last.ckpt") ;;
  among) cmd=(remove "$W/out" "$W/store") ;;
  given) cmd=(collect "$W/out" "$W/store") ;;
  *) cmd=("$1" "$W/out" "$W/store") ;;
  esac
}

run() { timeout 60 "$@" >>"$W/acked" 2>>"$W/messages"; }

# Plays a command and kills it at a point; 0 if it was killed.
killed() { # "THREAD CALL NUMBER" COMMAND...
  local thread call number
  read -r thread call number <<<"$1"
  shift
  # The shell would report the kill on its stderr.
  {
    DRIVER_THREAD=$thread \
      DRIVER_STRACE="-o /dev/null -e trace=$call -e inject=$call:signal=SIGKILL:when=$number" \
      run "$@"
  } 2>/dev/null
  (($? == 137))
}

check_saved() { # SCENARIO [--final]
  local at=(--source "checkpoint-1=$SOURCES/1/checkpoint-1")
  [[ $1 != remove && $1 != collect ]] || at+=(--source "checkpoint-2=$SOURCES/2/checkpoint-2")
  # What is gone at the end is no source any more.
  [[ $1${2-} != remove--final && $1${2-} != collect--final ]] || at=(--source "checkpoint-2=$SOURCES/2/checkpoint-2")
  [[ $1 != beside ]] || at+=(--with "$SOURCES/with")
  [[ $1 != again ]] || at+=(--source "checkpoint-2=$SOURCES/2/checkpoint-2"
    --source "last.ckpt=$SOURCES/1/last.ckpt" --source "last.ckpt=$SOURCES/2/last.ckpt")
  mkdir -p "$W/store"
  "$HERE/check.py" store "${at[@]}" --acked "$W/acked" "${@:2}" "$W/store"
}

# The torn checkpoint of the trainer is somebody's data too: in its place or in quarantine, whole.
check_moved() {
  local at
  rm -rf "$W/in/2/checkpoint-2/DONE"
  at=$(find "$W/out" "$W/out.ckpt" -type d -name 'checkpoint-2*' ! -path '*/staging/*' 2>/dev/null)
  if [[ -z $at || $at == *$'\n'* ]]; then
    echo "lost the torn checkpoint-2 is in ${at:-no place}"
  else
    "$HERE/check.py" tree "$at" "$W/in/2/checkpoint-2"
  fi
}

# Somebody else's are there, all of them, as they were; at the end nothing of ours is with them, and
# where they are was said.
check_foreign() { # [--final]
  local name at places=()
  for at in "$W/store/checkpoint-1" "$W"/store/.ckpt/staging/gone.*; do
    [[ -d $at ]] && places+=("$at")
  done
  while read -r name; do
    for at in "${places[@]}" ""; do
      [[ ! -e $at/$name && ! -L $at/$name ]] || break
    done
    if [[ -z $at ]]; then
      echo "lost $name of somebody else"
    elif [[ -f $at/$name ]] && ! cmp -s "$at/$name" "$ROOT/foreign/$name"; then
      echo "lost the bytes of $name of somebody else"
    fi
  done < <(cd "$ROOT/foreign" && find . -mindepth 1)
  [[ -n ${1-} ]] || return 0
  for at in "${places[@]}"; do
    (cd "$at" && find . ! -type d) | while read -r name; do
      [[ -e $ROOT/foreign/$name || -L $ROOT/foreign/$name ]] || echo "litter $at/$name"
    done
    grep -qxF "left ${at#"$W/store/"}" "$W/acked" || echo "litter nobody names $at"
  done
}

check() { # SCENARIO [--final]: findings on stdout
  case $1 in
  among | given)
    # How whole the one is that goes, "remove" looks at: here others' files are with it.
    "$HERE/check.py" store --source "checkpoint-2=$SOURCES/2/checkpoint-2" "$W/store" | grep -v ', checkpoint-1: '
    check_foreign "${@:2}"
    ;;
  resume | fetch)
    "$HERE/check.py" tree "$W/out/checkpoint-1" "$SOURCES/1/checkpoint-1"
    check_saved first
    [[ $1 == fetch ]] || check_moved
    [[ -z ${2-} || -d $W/out/checkpoint-1 ]] || echo "lost nothing was restored"
    ;;
  *) check_saved "$@" ;;
  esac
  [[ -n ${2-} ]] || return 0
  # Only names that belong there: nothing half done in the tree, beside it, or in our own state.
  find "$W/out" -mindepth 1 -maxdepth 1 ! -name 'checkpoint-[12]' ! -name last.ckpt \
    ! -name latest ! -name notes.json \
    -printf 'litter in the directory: %f\n'
  find "$W" -mindepth 1 -maxdepth 1 ! -name out ! -name out.ckpt ! -name in ! -name store \
    ! -name other ! -name other.ckpt \
    ! -name acked ! -name messages -printf 'litter beside the directory: %f\n'
  find "$W/out.ckpt/staging" -mindepth 1 -maxdepth 1 -printf 'litter in staging: %f\n' 2>/dev/null
}

# --- one point ------------------------------------------------------------------------------

# Prints "SCENARIO THREAD CALL NUMBER killed acknowledged torn lost again", and findings after "#".
point() { # SCENARIO THREAD CALL NUMBER
  local findings again="" acked=0 hit=0 cmd before=0
  W=""
  # On a machine that is busy a process may come by with a call less: then another one is tried.
  for _ in {1..8}; do
    [[ -z $W ]] || rm -rf "$W"
    W=$(mktemp -d "$ROOT/at.XXXXXX")
    command_of "$1"
    # What was not saved before is not lost by a kill.
    if ! set_up "$1" && [[ $1 == again ]]; then
      echo "# $1: not set up: $(cat "$W/acked" "$W/messages")" >>"$ROOT/results"
      continue
    fi
    before=$(grep -c . "$W/acked")
    killed "$2 $3 $4" "$DRIVER" "${cmd[@]}" && hit=1 && break
  done
  (($(grep -c . "$W/acked") == before)) || acked=1
  findings=$(check "$1")
  if [[ $DRIVER != *broken ]]; then
    if [[ $1 == fetch && -e $W/out/checkpoint-1 ]]; then
      : # it was done when the kill came, and its name is taken now
    elif { [[ $1 != collect ]] || grow_old; } && run "$DRIVER" "${cmd[@]}"; then
      again=$(check "$1" --final)
    else
      again="again the second time failed: $(tail -n 1 "$W/messages")"
    fi
  fi
  {
    flock 9
    printf '%s %s %s %d  %d %d %d %d %d\n' "$@" "$hit" "$acked" \
      "$(grep -cE '^(torn|gap) ' <<<"$findings"$'\n'"$again")" \
      "$(grep -c '^lost ' <<<"$findings"$'\n'"$again")" "$(grep -cE '^(litter|again) ' <<<"$again")"
    ((hit)) || echo "# $1: $2 $3 $4: it ended before that call"
    [[ -z $findings$again ]] || sed "/./s/^/# $1: $2 $3 $4: /" <<<"$findings"$'\n'"$again"
  } 9>>"$ROOT/lock" >>"$ROOT/results"
  [[ -n ${KEEP-} && -n $findings$again ]] || rm -rf "$W"
}

if [[ ${1-} == --point ]]; then
  point "${@:2}"
  exit 0
fi

# --- the walk -------------------------------------------------------------------------------

bail() { # what there is no sense in going on without
  echo "Bail out! kill.sh: $*"
  exit 1
}

skip() {
  echo "1..0 # SKIP $*"
  exit 0
}

# The points of a scenario, one "THREAD CALL NUMBER" a line.
points_of() { # SCENARIO
  local thread cmd
  for thread in owner worker; do
    W=$(mktemp -d "$ROOT/at.XXXXXX")
    set_up "$1"
    command_of "$1"
    DRIVER_THREAD=$thread DRIVER_STRACE="-o $W/messages.trace -e trace=${KILL_CALLS:-$changing}" \
      run "$DRIVER" "${cmd[@]}" || bail "$1 does not work without a kill: $(cat "$W/messages")"
    # A restore needs no worker, so there may be none.
    [[ -e $W/messages.trace ]] || continue
    # strace may write its last lines after the driver has gone.
    for _ in {1..100}; do
      grep -q '^+++ exited' "$W/messages.trace" && break
      sleep 0.02
    done
    awk -F'(' -v thread=$thread -v entries="$ROOT/entries.$1" '/^[a-z]/ {
      print thread, $1, ++count[$1]
      if ($1 == "linkat" && /"[0-9]+\.json", 0\)/) print thread, $1, count[$1] >>entries
    }' "$W/messages.trace"
    rm -rf "$W"
  done
}

# The points that later scenarios start from, out of those of the first: one at a third of the calls
# that make its files durable, and those that make the attempt's entry and the commit's.
choose_starts() {
  local entries
  grep '^worker fsync ' "$ROOT/points.first" | awk '{ at[NR] = $0 } END { print at[int((NR + 2) / 3)] }' \
    >"$ROOT/point.partial"
  mapfile -t entries < <(grep '^worker ' "$ROOT/entries.first")
  ((${#entries[@]} == 2)) || bail "a first save puts ${#entries[@]} entries, not an attempt and a commit"
  echo "${entries[0]}" >"$ROOT/point.staged"
  echo "${entries[1]}" >"$ROOT/point.sealed"
}

# Walks the points of a scenario: $ROOT/results, and the sums in points, hit, acked, torn, lost, again.
walk() { # SCENARIO
  : >"$ROOT/results"
  awk -v s="$1" -v stride="${KILL_STRIDE:-1}" 'NR % stride == 0 { print s, $0 }' "$ROOT/points.$1" |
    xargs -r -P "${JOBS:-4}" -L 1 "$HERE/kill.sh" --point
  read -r points hit acked torn lost again < <(awk '
    /^[a-z]/ { n++; hit += $5; acked += $6; torn += $7 > 0; lost += $8 > 0; again += $9 > 0 }
    END { print n + 0, hit + 0, acked + 0, torn + 0, lost + 0, again + 0 }' "$ROOT/results")
}

# shellcheck source=spec/tap.sh
. spec/tap.sh

[[ -z ${SANITIZE-} ]] || skip "a sanitizer and strace do not go together"
command -v strace >/dev/null || skip "there is no strace"
HERE=$PWD/spec/crash
[[ -n ${TMPDIR-} || ! -w /dev/shm ]] || TMPDIR=/dev/shm
ROOT=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-kill.XXXXXX") || exit 1
trap '[[ -n ${KEEP-} ]] && echo "# kept: $ROOT" || rm -rf "$ROOT"' EXIT
trap 'exit 130' INT TERM
export HERE ROOT SOURCES=$ROOT/sources DRIVER=$ROOT/driver KEEP=${KEEP-}
export DRIVER_LIBEXEC=${CKPT_BUILD:-build}/libexec
echo 'return { api = 1, with = { "latest", "notes.json" } }' >"$ROOT/with.lua"

build=("${CC:-gcc}" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -Iengine)
read -ra libs < <(pkg-config --libs jansson libxxhash libcrypto libcurl expat)
lib=("${CKPT_BUILD:-build}/libckpt.a" "${libs[@]}" -lpthread)
"${build[@]}" -o "$DRIVER" spec/crash/driver.c "${lib[@]}" || bail "the driver does not compile"
"${build[@]}" -o "$DRIVER-broken" spec/crash/{driver,broken_order}.c \
  -Wl,--wrap=syscall,--wrap=linkat "${lib[@]}" || bail "the wrong order does not compile"

DRIVER_THREAD=owner DRIVER_STRACE="-o /dev/null -e trace=none" "$DRIVER" none . . 2>"$ROOT/why"
(($? != 77)) || skip "strace cannot trace here: $(cat "$ROOT/why")"
"$HERE/check.py" make "$SOURCES"
mkdir -p "$ROOT/foreign/more/empty"
echo mine | tee "$ROOT/foreign/thesis.bin" >"$ROOT/foreign/more/x"
ln -s /nowhere "$ROOT/foreign/away"
W=$ROOT/saved
set_up first
command_of first
run "$DRIVER" "${cmd[@]}" || bail "a save does not work: $(cat "$W/messages")"

echo "1..$((${#scenarios[@]} + 1))"
begin=$SECONDS all=0
for scenario in "${scenarios[@]}"; do
  points_of "$scenario" >"$ROOT/points.$scenario"
  [[ $scenario != first ]] || choose_starts
  walk "$scenario"
  grep '^#' "$ROOT/results" | head -n 20
  ((all += points))
  # Green would say that it was played.
  if ((points == 0)) && [[ -s $ROOT/points.$scenario ]]; then
    tell 0 "${about[$scenario]} # SKIP it has no point at this stride"
    continue
  fi
  tell "$((points == 0 || torn + lost + again > 0 || hit * 20 < points * 19))" \
    "${about[$scenario]}: $points points, $hit killed, $acked acknowledged, $torn torn, $lost lost, $again not repaired"
done

# Here the calls that give names are enough: one of them is in the wrong place.
DRIVER=$DRIVER-broken
points_of first | grep -E '^worker (link|rename)' >"$ROOT/points.broken"
mv "$ROOT/points.broken" "$ROOT/points.first"
KILL_STRIDE=1
walk first
grep '^#' "$ROOT/results" | sed 's/^# /# wrong on purpose: /' | head -n 3
tell "$((torn == 0))" "a wrong order is caught: $points points, $torn torn"
echo "# $all points in $((SECONDS - begin)) s"
exit $((failures > 0))
