#!/bin/bash
# Real file systems that are full, read-only, limited, or know less: spec/fs/local_spec.sh
#
# Each scene has a mount of its own, in a mount namespace of this test. A run saves a checkpoint;
# then the disk is made to refuse; the next run has to say what, where, why and what to do, with the
# right exit code, and to lose nothing; then the cause is taken away, and a run has to succeed.
# Every store is read by spec/crash/check.py. Speaks TAP. Needs root, for mounting.
set -u
cd "$(dirname "$0")/../.." || exit 1

skip_all() {
  echo "1..0 # SKIP $*"
  exit 0
}

if [[ -z ${LOCAL_FS-} ]]; then
  (($(id -u) == 0)) || skip_all "it mounts file systems, and needs root for that"
  # Some containers allow the namespace and forbid the mount: then what is to fill a small disk
  # would fill that of the machine.
  unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null || skip_all "no file system can be mounted here"
  LOCAL_FS=1 exec unshare -m bash "$0"
fi

lua=$(realpath "${CKPT_LUA:-./ckpt-lua}") here=$PWD/spec
root=$(mktemp -d) || exit 1
trap 'exit 130' INT TERM
fuse_pid=
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
  cd / || exit 1
  end_fuse
  umount -R "$root"/*/m 2>/dev/null
  rm -rf "$root"
}
trap cleanup EXIT

# shellcheck source=spec/tap.sh
. spec/tap.sh

skip() { # TEXT REASON
  tests=$((tests + 1))
  echo "ok $tests - $1 # SKIP $2"
}

# --- a scene --------------------------------------------------------------------------------

# A directory of its own, with a mount in m/. The watched directory and the state are beside it.
scene() { # MOUNT-OPTION...
  W=$(mktemp -d "$root/XXXXXX")
  cd "$W" || exit 1
  mkdir dir m
  : >findings
  : >said
  TELL_LOG=("$W/findings" "$W/said")
  [[ $# == 0 ]] || mount -t tmpfs "$@" tmpfs m || exit 1 # nothing below may write to another disk
}

# Saves the checkpoint of a step. Its exit code; what it said is in `said`.
run() { # STEP [OPTION...]
  local rc
  timeout 60 "$lua" run -p builtin --dir "${dir:-dir}" --state "${state:-state}" \
    --to "file://$W/m/store" --run local --unit 'checkpoint-{step}/' --marker DONE --settle 0s \
    "${@:2}" -- "$here/crash/check.py" train "${dir:-dir}" "$1" >>said 2>&1
  rc=$?
  echo "(exit $rc)" >>said
  return $rc
}

must() { # STEP [OPTION...]: it is saved
  run "$@" || echo "step $1 was not saved" >>findings
}

must_refuse() { # CODE TEXT STEP [OPTION...]: it fails with that code, and says so and $where
  local rc
  : >said
  run "${@:3}"
  rc=$?
  ((rc == $1)) || echo "step $3: exit $rc instead of $1" >>findings
  grep -q -- "$2" said || echo "step $3: it does not say: $2" >>findings
  grep -q "${where:-$W}" said || echo "step $3: it does not say where" >>findings
}

# All that was saved is whole, nothing is left of what was not, and the test is told.
end_scene() { # TEXT
  "$here/crash/check.py" store --trained --final m/store >>findings 2>&1 ||
    echo "(the store)" >>findings
  [[ ! -s findings ]]
  tell $? "$1"
  cd "$root" || exit 1
}

# --- full, read-only, limited ---------------------------------------------------------------

fill() { # keeps what there is, and leaves no block
  dd if=/dev/zero of=m/filler bs=1k 2>/dev/null
}

fill_inodes() {
  mkdir m/fillers
  local i
  for ((i = 0; i < 1000; i++)); do touch "m/fillers/$i" 2>/dev/null || return; done
}

scene -o size=512k
must 1
fill
must_refuse 7 "No space left on device; free space" 2
rm m/filler
must 3
end_scene "a full disk is told at the start, nothing is lost, and later runs go on"

scene -o size=160k
must 1
head -c 90000 /dev/zero >m/filler
must_refuse 7 "No space left on device; free space" 2
rm m/filler
must 3
end_scene "a disk that is full in the middle of a save loses nothing, and later runs go on"

scene -o nr_inodes=100
must 1
fill_inodes
must_refuse 7 "No space left on device; free space or inodes" 2
rm -r m/fillers
must 3
end_scene "a disk without inodes is told, and later runs go on"

scene -o size=1m
must 1
mount -o remount,ro m
must_refuse 7 "Read-only file system; mount it writable" 2
mount -o remount,rw m
must 3
end_scene "a target that became read-only is told, and later runs go on"

scene -o size=1m
must 1
mkdir states
mount -t tmpfs -o size=4k,nr_inodes=3 tmpfs states
state=states/s must_refuse 7 "No space left on device" 2
umount states
must 3
end_scene "a state directory without room is told before the job starts"

# The limit holds for the job, too, so this one is made of what it may write.
scene -o size=1m
must 1
"$here/crash/check.py" train dir 2
: >said
(
  ulimit -f 8
  timeout 60 "$lua" run -p builtin --dir dir --state state --to "file://$W/m/store" --run local \
    --unit 'checkpoint-{step}/' --marker DONE --settle 0s -- true >>said 2>&1
)
rc=$?
((rc == 7)) || echo "with a limit of file sizes: exit $rc instead of 7" >>findings
grep -q "File too large; raise the limit" said || echo "it does not tell of the limit" >>findings
must 3
end_scene "a limit of file sizes is told, and its signal kills nobody"

scene -o size=1m
must 1
(
  ulimit -n 12
  where=" /[a-z]" # which file is the first too many depends on what is open already
  must_refuse 6 "Too many open files; raise the limit" 2
)
must 3
end_scene "a process without descriptors says so, and later runs go on"

scene
truncate -s 4M image
mounted=
if mkfs.ext4 -q -F -m 0 -N 64 image 2>/dev/null && loop=$(losetup --show -f image 2>/dev/null); then
  mount "$loop" m 2>/dev/null && mounted=1
  losetup -d "$loop" # it goes with the mount
fi
if [[ -n $mounted ]]; then
  must 1
  fill
  must_refuse 7 "No space left on device; free space" 2
  rm m/filler
  must 3
  end_scene "a full ext4 is told, and later runs go on"
  umount "$W/m"
else
  skip "a full ext4 is told, and later runs go on" "there is no loop device or no ext4"
fi

# --- FUSE -----------------------------------------------------------------------------------

end_fuse() {
  [[ -z $fuse_pid ]] || umount "$fuse_at" 2>/dev/null
  [[ -z $fuse_pid ]] || wait "$fuse_pid" 2>/dev/null
  fuse_pid=
}

# Mounts `m` from `m.source`; false if that cannot be done here.
begin_fuse() { # COMMAND...
  local i
  [[ -c /dev/fuse ]] && command -v "$1" >/dev/null || return 1
  mkdir m.source
  "$@" m.source m >/dev/null 2>fuse.log &
  fuse_pid=$! fuse_at=$W/m
  for ((i = 0; i < 100; i++)); do
    mountpoint -q m && return 0
    kill -0 "$fuse_pid" 2>/dev/null || break
    sleep 0.05
  done
  fuse_pid=
  return 1
}

what="a target and a state on FUSE"
scene
if begin_fuse bindfs -f; then
  state=m/state must 1
  state=m/state must 2
  end_scene "$what"
  end_fuse
else
  skip "$what" "there is no bindfs, or no FUSE"
fi

what="a watched directory on FUSE is polled, and saved"
scene
if begin_fuse bindfs -f; then
  mkdir m/dir
  dir=m/dir must 1
  end_scene "$what"
  end_fuse
else
  skip "$what" "there is no bindfs, or no FUSE"
fi

what="FUSE without links and without rename's flags: refused with advice, or for a single writer"
scene
if begin_fuse /usr/bin/python3 "$here/fs/plain_fuse.py"; then
  must_refuse 2 "--single-writer" 1
  must 2 --single-writer
  must 3 --single-writer
  rm -rf dir/* && must 4 --single-writer --restore required
  "$here/crash/check.py" tree dir/checkpoint-3 "$(
    mkdir made && "$here/crash/check.py" train made 3 && echo made/checkpoint-3
  )" >>findings
  end_scene "$what"
  end_fuse
else
  skip "$what" "there is no python3-fusepy, or no FUSE"
fi

# --- what a list names ----------------------------------------------------------------------

# Ray Train's list names three, and its framework starts with none of them missing.
listed() { # COMMAND...: its exit code; what it said is in `said`
  timeout 60 "$lua" run -p builtin --dir m/dir --state state --to "file://$W/store" --run local --settle 1s \
    -- "$@" >said 2>&1
}
# shellcheck disable=SC2317 # a shell of its own calls it
save_listed() {
  local n sep='' names=''
  for n in 1 2 3; do
    mkdir -p "m/dir/checkpoint_00000$n" && head -c 1900000 /dev/zero >"m/dir/checkpoint_00000$n/w"
    names+=$sep'{"checkpoint_dir_name": "checkpoint_00000'$n'"}' sep=,
    echo '{"checkpoint_results": ['"$names"']}' >m/dir/checkpoint_manager_snapshot.json
    sleep 2.5
  done
}
export -f save_listed

scene -o size=8m
listed bash -c save_listed || echo "it was not saved" >>findings
rm -rf m/dir/* m/.[!.]*
listed touch began && echo "it began" >>findings
grep -q "checkpoint_000002 is not restored, .* more than half of the free disk" said ||
  echo "it does not say that there is no room" >>findings
grep -q "Ray Train would not start" said || echo "it does not say what for" >>findings
[[ ! -e began ]] || echo "the job began" >>findings
mount -o remount,size=32m m
listed touch began || echo "with room: exit $?" >>findings
[[ $(ls m/dir) == *_000001*_000002*_000003*snapshot* ]] || echo "with room: $(ls m/dir)" >>findings
[[ ! -s findings ]]
tell $? "a start takes no more than half of the free disk for what a list names, and ends without it"
cd "$root" || exit 1

# --- modes ----------------------------------------------------------------------------------

scene -o size=1m
(
  umask 022
  must 1
)
modes=$(find state -printf '%M %p\n' | grep -vE '^(drwx------|-rw-------|srw-------)')
[[ -z $modes ]] || echo "not private: $modes" >>findings
find m/store -type f ! -perm 0644 ! -path '*/.ckpt/tmp/*' -printf 'not by the umask: %M %p\n' >>findings
find m/store -type d ! -perm 0755 ! -path '*/.ckpt/tmp*' -printf 'not by the umask: %M %p\n' >>findings
end_scene "our own files are private, those in the store follow the umask"

echo "1..$tests"
exit $((failures > 0))
