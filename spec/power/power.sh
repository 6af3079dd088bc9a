#!/bin/bash
# Power losses: spec/power/power.sh, or make test-power.
#
# User-Mode Linux runs a whole kernel as a process. In it the runner commits checkpoints to a disk
# image (and deletes old ones), and says so on its console. The process is killed at a random moment:
# what the guest's kernel had not written yet is gone, as with the power. The image is mounted here
# and read by spec/crash/check.py: every commit that was acknowledged is there, every commit that is
# there is whole. Then the guest starts again on the same disk, and goes on.
# At last the same without a single fsync: if that lost nothing, all this would prove nothing.
#
# Speaks TAP. Environment: CKPT_LUA, CKPT_BUILD, ROUNDS (12, for each file system), POWER_FS ("ext4 xfs"), V=1
# (each round is told), KEEP=1 (leaves the files). Needs root, for mounting.
set -u
cd "$(dirname "$0")/../.." || exit 1

skip() {
  echo "1..0 # SKIP $*"
  exit 0
}

# shellcheck source=spec/tap.sh
. spec/tap.sh
# shellcheck source=spec/uml.sh
. spec/uml.sh

# The programs that are not here: `command -v` of several is content with one.
missing() {
  local program
  for program in linux.uml mkfs.ext4 mkfs.xfs losetup; do
    command -v "$program" >/dev/null || echo "$program"
  done
}

setup() {
  PATH=$PATH:/usr/sbin:/sbin
  [[ -z $(missing) || ${SETUP-} == no ]] || .ci/setup user-mode-linux e2fsprogs xfsprogs mount >&2
  [[ -z $(missing) ]]
}

# --- one round ------------------------------------------------------------------------------

guest() { # IMAGE FS CONSOLE [PRELOAD]: sets `pid`
  TMPDIR=$root exec setsid linux.uml mem=256M rootfstype=hostfs rootflags=/ ro \
    "init=$PWD/spec/power/guest.sh" "POWER_FS=$2" "POWER_LUA=$lua" "POWER_BUILD=$build" \
    "POWER_PRELOAD=${4-}" "ubd0=$1" con=null con0=null,fd:1 ssl=null quiet \
    "uml_dir=$root/" "umid=g$RANDOM" </dev/null >"$3" 2>&1
}

# Runs the guest until it has acknowledged something and a random time has passed. The power goes.
lose_power() { # IMAGE FS CONSOLE [PRELOAD]
  local pid i
  : >"$3" # what the last guest said counts no more
  guest "$@" &
  pid=$!
  guest_pid=$pid # for clean_up
  for ((i = 0; i < 300; i++)); do
    grep -aq 'committed checkpoint-' "$3" && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  sleep "$((RANDOM % 3)).$((RANDOM % 1000 + 1000))"
  end_guest "$pid"
}

end_guest() { # PID
  lose_guest "$1"
  guest_pid=
}

# What the console acknowledged, a line each; the last one may be cut off.
acked() { # CONSOLE
  tr -d '\r' <"$1" | sed -nE 's/^.*ckpt-lua: (committed checkpoint-[0-9]+) \(.*\)$/\1/p'
}

look() { # IMAGE ACKED: findings on stdout
  local loop
  # What was not looked at has not passed.
  loop=$(losetup --show -f "$1") || {
    echo "torn the image cannot be looked at"
    return
  }
  if mount -o noatime "$loop" "$root/disk"; then
    spec/crash/check.py store --trained --acked "$2" "$root/disk/store"
    umount "$root/disk"
  else
    echo "torn the file system cannot be mounted"
  fi
  losetup -d "$loop"
}

# ROUNDS losses on one disk. Sets played, commits, lost, torn (rounds with such findings).
lose_again() { # FS ROUNDS [PRELOAD]
  local image=$root/image.$1 round findings before
  played=0 commits=0 lost=0 torn=0
  rm -f "$image"
  truncate -s 320M "$image"
  "mkfs.$1" -q "$image" || return 1
  : >"$root/acked"
  for ((round = 1; round <= $2; round++)); do
    before=$commits
    lose_power "$image" "$1" "$root/console" "${3-}"
    ((on)) || ! grep -aq '^POWER: on' "$root/console" || on=1
    ((on)) || {
      tail -n 20 "$root/console" | sed 's/^/#   /'
      skip "User-Mode Linux does not start here (see above)"
    }
    acked "$root/console" >>"$root/acked"
    commits=$(grep -c . "$root/acked")
    findings=$(look "$image" "$root/acked")
    grep -q '^lost ' <<<"$findings" && lost=$((lost + 1))
    grep -qE '^(torn|gap) ' <<<"$findings" && torn=$((torn + 1))
    if [[ -n ${V-} || (-z ${3-} && -n $findings) ]]; then
      echo "# $1, round $round: $((commits - before)) acknowledged; ${findings:-nothing torn or lost}"
    fi
    if ((commits == before)); then
      echo "# $1, round $round: nothing was acknowledged:"
      tail -n 20 "$root/console" | sed 's/^/#   /'
    else
      played=$((played + 1))
    fi
    # A disk that lost something is no proof any more of what comes after.
    [[ -z $findings ]] || break
  done
}

# --- all of them ----------------------------------------------------------------------------

(($(id -u) == 0)) || skip "it mounts disk images, and needs root for that"
setup || skip "it needs User-Mode Linux and file systems; missing: $(missing | paste -sd ' ')"
losetup -f >/dev/null 2>&1 || skip "there is no loop device"
lua=$(realpath "${CKPT_LUA:-./ckpt-lua}") build=$(realpath "${CKPT_BUILD:-build}")
# The guest gets them on its kernel's command line.
[[ $PWD$lua$build${TMPDIR-} != *[[:space:]]* ]] || skip "the kernel of the guest takes no path with a space: $lua"
[[ -n ${TMPDIR-} || ! -w /dev/shm ]] || TMPDIR=/dev/shm
root=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-power.XXXXXX") || exit 1
guest_pid=
# The guest has a session of its own, so no ^C reaches it.
# shellcheck disable=SC2317 # the trap below calls it
clean_up() {
  local loop
  [[ -z $guest_pid ]] || end_guest "$guest_pid"
  umount "$root/disk" 2>/dev/null
  for loop in $(losetup -n -O NAME,BACK-FILE | awk -v root="$root/" 'index($2, root) == 1 { print $1 }'); do
    losetup -d "$loop"
  done
  if [[ -n ${KEEP-} ]]; then
    echo "# kept: $root"
  else
    rm -rf "$root"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM
mkdir "$root/disk"
# Not in $root: the guest has a /dev of its own.
mkdir -p "$build/spec/power"
nosync=$build/spec/power/nosync.so
"${CC:-gcc}" -shared -fPIC -O1 -Wall -Wextra -o "$nosync" spec/power/nosync.c || exit 1

on=0 rounds=${ROUNDS:-12}
read -ra systems <<<"${POWER_FS:-ext4 xfs}"
for fs in "${systems[@]}"; do
  lose_again "$fs" "$rounds"
  # A round in which nothing was acknowledged could lose nothing: it does not count.
  tell $((played < rounds || played == 0 || lost + torn > 0)) \
    "$fs: $played of $rounds power losses, $commits acknowledged commits, $lost lost, $torn torn"
done
for fs in "${systems[@]}"; do
  caught=0
  for _ in 1 2 3; do
    lose_again "$fs" 1 "$nosync"
    ((lost + torn == 0)) || caught=$((caught + 1))
  done
  tell $((caught == 0)) "$fs without fsync: caught in $caught of 3 power losses"
done
echo "1..$tests"
exit $((failures > 0))
