#!/bin/bash
# The first process of the guest (see power.sh): a run that commits checkpoints to the disk that will
# lose its power. Its console is a file of the host, where each report is an acknowledgement.
# From the kernel's command line: POWER_FS, POWER_LUA, POWER_BUILD, POWER_PRELOAD (may be empty).
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt TMPDIR=/mnt/tmp XDG_RUNTIME_DIR=/mnt/run
here=$(dirname "$0")
mount -t proc proc /proc
mount -t tmpfs -o size=96m tmpfs /mnt
mkdir -p /mnt/disk /mnt/dir /mnt/tmp
mkdir -m 0700 /mnt/run
mount -t "$POWER_FS" /dev/ubda /mnt/disk || echo "POWER: the disk cannot be mounted"

# Time goes on while the guest is dead: whoever holds the lease is never seen again.
args=(run --dir /mnt/dir --state /mnt/state --to file:///mnt/disk/store --run power --take-over
  --unit 'checkpoint-{step}/' --marker DONE --settle 0s
  -p "$here/keep.lua" --max-delete 100% --grace-delete 0s)
echo "POWER: on"
LD_PRELOAD=$POWER_PRELOAD CKPT_BUILD=$POWER_BUILD "$POWER_LUA" "${args[@]}" -- \
  env -u LD_PRELOAD "$here/../crash/check.py" train /mnt/dir 2>&1
echo "POWER: the run ended with $?"
sleep 60
