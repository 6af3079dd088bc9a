#!/bin/bash
# The first process of a guest (see nfs.sh): the NFS server, or a machine that has mounted it on /mnt/nfs.
# What it is told to do are scripts that the host puts into a directory which both see.
# From the kernel's command line: NFS_NAME, NFS_ADDRESS, NFS_SHARE (that directory).
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt TMPDIR=/mnt/tmp XDG_RUNTIME_DIR=/mnt/run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o size=96m tmpfs /mnt
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /mnt/tmp /mnt/host /mnt/nfs /mnt/disk /mnt/kernel/lib
mkdir -m 0700 /mnt/run
mount -t hostfs -o "$NFS_SHARE" none /mnt/host
hostname "$NFS_NAME"
# All see the host's files, and are no copies of one machine all the same.
md5sum <<<"$NFS_NAME" | cut -d ' ' -f 1 >/mnt/machine-id
mount --bind /mnt/machine-id /etc/machine-id

# The kernel's own way to load a module looks where this file system has none.
ln -s /usr/lib/uml/modules /mnt/kernel/lib/modules
load() { modprobe -d /mnt/kernel "$1" || echo "NFS: no module $1"; }

ip link set lo up
ip address add "$NFS_ADDRESS/24" dev vec0
ip link set vec0 up

serve() {
  load nfsd
  mkdir -p /var/lib/nfs/nfsdcld /var/lib/nfs/v4recovery
  touch /var/lib/nfs/etab /var/lib/nfs/rmtab
  mount -t ext4 /dev/ubda /mnt/disk
  # Which clients had something open outlives the server's death: so they get it again.
  mkdir -p /mnt/disk/.clients
  mount --bind /mnt/disk/.clients /var/lib/nfs/nfsdcld
  mount -t nfsd nfsd /proc/fs/nfsd
  exportfs -o rw,fsid=0,no_root_squash,insecure,sync,no_subtree_check "${NFS_ADDRESS%.*}.0/24:/mnt/disk"
  rpc.mountd -N 2 -N 3 -V 4
  nfsdcld
  rpc.nfsd -N 3 -V 4 -V 4.2 --grace-time 10 --lease-time 10 8
}

use() {
  load nfs
  load nfsv4
  local i
  for ((i = 0; i < 50; i++)); do
    mount -t nfs4 -o vers=4.2,hard "${NFS_ADDRESS%.*}.1:/" /mnt/nfs && return
    sleep 0.2
  done
  echo "NFS: it cannot be mounted"
}

if [[ $NFS_NAME == server ]]; then serve; else use; fi
echo "NFS: on"

# Each script runs beside the others; its name with .code is there when it has ended.
todo=/mnt/host/$NFS_NAME
carry_out() {
  bash "$1.begun" >"$1.out" 2>&1
  echo $? >"$1.ended"
  sync "$1.out" "$1.ended"
  mv "$1.ended" "$1.code"
}
while :; do
  for script in "$todo"/*.todo; do
    [[ -e $script ]] || continue
    mv "$script" "${script%.todo}.begun"
    carry_out "${script%.todo}" &
  done
  # What is said is in this kernel's memory, and the host has to see it.
  sync "$todo"/*.out 2>/dev/null
  sleep 0.1
done
