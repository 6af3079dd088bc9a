#!/bin/bash
# NFS: spec/nfs/nfs.sh, or make test-nfs.
#
# Three machines in User-Mode Linux, each with a kernel of its own: a server of NFS 4.2 with a disk image,
# and two that have mounted it, with what a mount has by default: what one writes the other sees when
# its caches say so. A store on it that both write to, one that dies and is taken over, a server that loses
# its power, and one directory on it that the tasks of one launch share.
#
# Speaks TAP. Environment: CKPT_LUA, CKPT_BUILD, KEEP=1 (leaves the files). Needs root, for the network
# that they have among them, which is a namespace of its own.
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
  for program in linux.uml mkfs.ext4 modprobe mount.nfs4 exportfs rpc.nfsd nfsdcld ip unshare; do
    command -v "$program" >/dev/null || echo "$program"
  done
}

setup() {
  PATH=$PATH:/usr/sbin:/sbin
  [[ -z $(missing) || ${SETUP-} == no ]] ||
    .ci/setup user-mode-linux e2fsprogs kmod nfs-common nfs-kernel-server iproute2 util-linux >&2
  [[ -z $(missing) ]]
}

(($(id -u) == 0)) || skip "it makes a network, and needs root for that"
setup || skip "it needs User-Mode Linux and NFS; missing: $(missing | paste -sd ' ')"
[[ -n ${NFS_NETWORK-} ]] || NFS_NETWORK=yes exec unshare --net -- "$0" "$@"

lua=$(realpath "${CKPT_LUA:-./ckpt-lua}") build=$(realpath "${CKPT_BUILD:-build}")
# The guests get their paths on their kernels' command lines.
[[ $PWD$lua$build${TMPDIR-} != *[[:space:]]* ]] || skip "the kernel of a guest takes no path with a space: $lua"
[[ -n ${TMPDIR-} || ! -w /dev/shm ]] || TMPDIR=/dev/shm
root=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-nfs.XXXXXX") || exit 1
declare -A guests=()

# --- machines -------------------------------------------------------------------------------

# The power of a machine goes.
kill_guest() { # NAME
  [[ -n ${guests[$1]-} ]] || return
  lose_guest "${guests[$1]}"
  unset "guests[$1]"
}

declare -A addresses=([server]=10.99.0.1 [one]=10.99.0.2 [two]=10.99.0.3)

begin_guest() { # NAME
  rm -rf "${root:?}/share/$1"
  mkdir -p "$root/share/$1"
  TMPDIR=$root setsid linux.uml mem=256M rootfstype=hostfs rootflags=/ ro \
    "init=$PWD/spec/nfs/guest.sh" "NFS_NAME=$1" "NFS_ADDRESS=${addresses[$1]}" "NFS_SHARE=$root/share" \
    "ubd0=$root/image" "vec0:transport=tap,ifname=tap-$1,depth=64" con=null con0=null,fd:1 ssl=null quiet \
    "uml_dir=$root/" "umid=$1-$RANDOM" </dev/null >"$root/console.$1" 2>&1 &
  guests[$1]=$!
}

await_guest() { wait_for 60 "the machine $1" grep -aq '^NFS: on' "$root/console.$1"; } # NAME

# Has a machine begin a script; its path is in `script`. A count would be one of each subshell.
begin() { # NAME SCRIPT
  script=$root/share/$1/${EPOCHREALTIME/[.,]/}
  {
    printf 'export CKPT_BUILD=%q\nckpt() { %q "$@"; }\n' "$build" "$lua"
    echo "$2"
  } >"$script.new"
  mv "$script.new" "$script.todo"
}

# Its output, and its code, once it has ended.
ended() { # SCRIPT
  wait_for 600 "the end of $1" test -e "$1.code"
  cat "$1.out"
  return "$(<"$1.code")"
}

on() { # NAME SCRIPT
  begin "$1" "$2"
  ended "$script"
}

# True where a script has said something so far.
# shellcheck disable=SC2317 # wait_for calls it
said() { grep -q "$2" "$1.out"; } # SCRIPT TEXT

# shellcheck disable=SC2317 # the trap below calls it
clean_up() {
  local name
  for name in "${!guests[@]}"; do kill_guest "$name"; done
  if [[ -n ${KEEP-} ]]; then
    echo "# kept: $root"
  else
    rm -rf "$root"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

make_network() {
  local name
  ip link set lo up && ip link add ckpt-nfs type bridge && ip link set ckpt-nfs up || return
  for name in server one two; do
    ip tuntap add "tap-$name" mode tap && ip link set "tap-$name" master ckpt-nfs up || return
  done
}

make_network >"$root/log" 2>&1 || skip "no network can be made here: $(tail -n 1 "$root/log")"
truncate -s 512M "$root/image"
mkfs.ext4 -q -F "$root/image" || exit 1
TELL_LOG=$root/log
for name in server one two; do begin_guest "$name"; done
for ((i = 0; i < 300; i++)); do
  grep -aq '^NFS: on' "$root/console.server" && break
  sleep 0.1
done
grep -aq '^NFS: on' "$root/console.server" || {
  tail -n 20 "$root/console.server" | sed 's/^/#   /'
  skip "User-Mode Linux does not start here (see above)"
}
await_guest one
await_guest two

# --- what is shown --------------------------------------------------------------------------

# How many an independent reader finds.
commits() { on "$1" "$PWD/spec/crash/check.py commits /mnt/nfs/$2 | wc -l"; } # NAME STORE

run_of() { # STORE OPTIONS
  echo "ckpt run --dir /mnt/dir-$1 --state /mnt/state-$1 --to file:///mnt/nfs/$1 --run nfs" \
    "--unit 'checkpoint-{step}/' --marker DONE --settle 0s $2"
}

# Makes a checkpoint every so often, from number FROM on, until there is a file /mnt/enough.
train_from() { # FROM
  echo "sh -c 'for n in \$(seq $1 $(($1 + 200))); do [ ! -e /mnt/enough ] || break
    $PWD/spec/crash/check.py train \$CKPT_DIR \$n; sleep 1; done'"
}

mounted=$(on one "grep ' /mnt/nfs ' /proc/mounts")
[[ $mounted == *" nfs4 "*vers=4.2* ]]
tell $? "two machines have mounted NFS 4.2 of a third one"

on one "ckpt doctor /mnt/nfs/doctored" >"$root/log" 2>&1
tell $? "doctor finds that saving to it works"

begin one "$(run_of store '') -- $(train_from 1)"
first=$script
TELL_LOG=$first.out
wait_for 300 "the first commit" said "$first" 'committed checkpoint-'
TELL_LOG=$root/log
on two "$(run_of store '') -- true" >"$root/log" 2>&1
code=$?
((code == 11))
tell $? "a second run, on the other machine, is refused while the first lives: code $code"

# shellcheck disable=SC2317 # wait_for calls it
more_than() { (($(commits two store) > $1)); }

before=$(commits two store)
kill_guest server
sleep 5
begin_guest server
await_guest server
wait_for 240 "a commit behind the loss" more_than $((before + 1))
tell $? "the server loses its power, and is there again: the run goes on ($before commits, then $(commits two store))"

kill_guest one
acked=$root/share/acked
sed -nE 's/^.*ckpt-lua: (committed checkpoint-[0-9]+) \(.*\)$/\1/p' "$first.out" >"$acked"
begin two "$(run_of store '--take-over') -- $(train_from 100)"
second=$script
TELL_LOG=$second.out
wait_for 400 "a commit of the other machine" said "$second" 'committed checkpoint-1[0-9][0-9]'
tell $? "its machine dies, and the other one takes the store over"
on two "touch /mnt/enough" >/dev/null
ended "$second" >"$root/log"
code=$?
begin_guest one
await_guest one
on one "$PWD/spec/crash/check.py store --trained --acked /mnt/host/acked /mnt/nfs/store" >"$root/log" 2>&1
result=$?
((code == 0 && result == 0))
tell $? "all that was acknowledged is there, and whole: code $code, $(commits one store) commits, $(wc -l <"$acked") acknowledged before"

# Four tasks on two machines, which begin and write at different times, and a file of the last one late.
task() { # RANK
  cat <<END
export TORCHELASTIC_RUN_ID=nfs RANK=$1 WORLD_SIZE=4 LOCAL_RANK=$(($1 % 2)) LOCAL_WORLD_SIZE=2 GROUP_RANK=$(($1 / 2))
ckpt run --dir /mnt/nfs/shared --to file:///mnt/nfs/of-shared --run shared --marker DONE -- sh -c '
  for n in 1 2 3; do
    mkdir -p \$CKPT_DIR/checkpoint-\$n
    [ $1 != 3 ] || sleep 4
    echo $1 >\$CKPT_DIR/checkpoint-\$n/shard-$1
    [ $1 != 0 ] || echo ok >\$CKPT_DIR/checkpoint-\$n/DONE
    sleep 2
  done'
END
}
tasks=()
for rank in 0 1 2 3; do
  begin "$( ((rank < 2)) && echo one || echo two)" "$(task "$rank")"
  tasks+=("$script")
done
codes=
for script in "${tasks[@]}"; do
  ended "$script" >>"$root/log"
  codes+=" $?"
done
# A listing of the others may be of a while ago.
shards=$(on server "cd /mnt/disk/of-shared && for d in checkpoint-*/; do ls \$d | grep -c shard; done | sort -u | xargs")
[[ $codes == " 0 0 0 0" && $shards == 4 ]]
tell $? "four tasks on two machines share a directory on it: each commit has the shards of all ($shards;$codes)"

echo "1..$tests"
exit $((failures > 0))
