#!/bin/bash
# A Slurm cluster of 4 nodes on one machine, for the specs: spec/servers/slurm.sh VERB DIR
#
#   install            brings Slurm, once (Debian's packages; needs root)
#   start DIR          starts one for DIR, which has its logs and its state. Root is needed, and namespaces:
#                      it says so where they are not to be had.
#   run DIR COMMAND... runs a command at its head, where sbatch, srun and scontrol know the cluster
#   stop DIR           ends it and all that runs in it
#   node DIR N         at the head: starts node N (1 to 4) anew, once it is lost
#
# Head and nodes are namespaces: a node has its own host name, network, processes and /tmp, which is lost with
# it. Everything else they share, as a cluster shares its file system. The process in DIR/pid holds them all;
# DIR/node.N.pid holds a node, and is a number of the head's.
#
# KILL_WAIT and GRACE_TIME in the environment set Slurm's own KillWait and the GraceTime of the partition
# "low" (8 and 10 s), which is the default and gives way to "high". A requeued job starts again after 5 s, and
# a node is down 10 s after it was last heard of.
set -u
cd "$(dirname "$0")/../.." || exit 1
NODES=4

die() {
  echo "slurm.sh: $*" >&2
  exit 1
}

there() { command -v slurmctld slurmd sbatch munged ip >/dev/null; }

install() {
  if there && command -v mpirun >/dev/null && [[ -e /usr/include/slurm/spank.h ]]; then return; fi
  .ci/setup slurmctld slurmd slurm-client munge iproute2 libslurm-dev openmpi-bin
}

# ---- what they have ----

configure() { # DIR
  local dir=$1 i memory
  memory=$(($(awk '/MemTotal/ { print $2 }' /proc/meminfo) / 1024 / (NODES + 1)))
  {
    cat <<END
ClusterName=spec
SlurmctldHost=head(10.77.0.9)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5,socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/ctld.log
SlurmdLogFile=$dir/slurmd.%n.log
PlugStackConfig=$dir/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,sched_min_interval=100000
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=${KILL_WAIT:-8}
MinJobAge=300
SlurmdTimeout=10
MessageTimeout=10
PropagateResourceLimits=NONE
END
    for ((i = 1; i <= NODES; i++)); do
      echo "NodeName=n$i NodeAddr=10.77.0.$i CPUs=4 RealMemory=$memory State=UNKNOWN"
    done
    echo "PartitionName=low Nodes=n[1-$NODES] Default=YES PriorityTier=1 GraceTime=${GRACE_TIME:-10} State=UP"
    echo "PartitionName=high Nodes=n[1-$NODES] PriorityTier=10 PreemptMode=OFF State=UP"
  } >"$dir/slurm.conf"
  : >"$dir/plugstack.conf"
  {
    echo "127.0.0.1 localhost"
    for ((i = 1; i <= NODES; i++)); do echo "10.77.0.$i n$i"; done
    echo "10.77.0.9 head"
  } >"$dir/hosts"
  dd if=/dev/urandom of="$dir/munge/key" bs=128 count=1 status=none
  chmod 600 "$dir/munge/key"
}

begin() { # PIDFILE LOG VERB...: a place of its own, whose first process is this script with that verb
  setsid unshare --fork --pid --mount --net --uts --mount-proc --kill-child "$PWD/spec/servers/slurm.sh" "${@:3}" \
    >>"$2" 2>&1 </dev/null &
  echo $! >"$1"
  disown
}

first_of() { # PID of unshare: prints that of the first process in there
  local i pid
  for ((i = 0; i < 200; i++)); do
    pid=$(cat "/proc/$1/task/$1/children") && [[ -n $pid ]] && echo "${pid%% *}" && return
    sleep 0.05
  done 2>/dev/null
  return 1
}

# The first process of a place reaps what others leave.
stay() {
  while :; do
    sleep 1000 &
    wait $!
  done
}

# ---- the head ----

head_of() { # DIR
  local dir=$1 i
  export SLURM_CONF=$dir/slurm.conf
  hostname head
  mount --bind "$dir/hosts" /etc/hosts || exit 1
  ip link set lo up
  ip link add cluster type bridge && ip addr add 10.77.0.9/24 dev cluster && ip link set cluster up || exit 1
  munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
    --seed-file="$dir/munge/seed" --log-file="$dir/munge/log" || exit 1
  slurmctld -i || exit 1
  for ((i = 1; i <= NODES; i++)); do
    node "$dir" "$i" || exit 1
  done
  touch "$dir/ready"
  stay
}

# ---- a node ----

node() { # DIR N
  local dir=$1 n=$2 first
  ip link del "n$n" 2>/dev/null # what is left of a lost one
  rm -rf "$dir/tmp.n$n"
  mkdir -p "$dir/tmp.n$n" "$dir/spool.n$n" && chmod 1777 "$dir/tmp.n$n"
  begin "$dir/node.$n.pid" "$dir/node.$n.log" inside "$dir" "$n"
  first=$(first_of "$(cat "$dir/node.$n.pid")") || die "node $n does not start: $(tail -n 3 "$dir/node.$n.log")"
  ip link add "n$n" type veth peer name "e$n" && ip link set "n$n" master cluster up && ip link set "e$n" netns "$first"
}

# Places that the node's own /tmp would hide are put back.
own_tmp() { # DIR N
  local place
  mount -t tmpfs none /mnt || return 1
  mkdir /mnt/0 /mnt/1 /mnt/tmp
  mount --bind "$1" /mnt/0 && mount --bind "$PWD" /mnt/1 && mount --bind "$1/tmp.n$2" /mnt/tmp || return 1
  mount --bind /mnt/tmp /tmp || return 1
  for place in "0:$1" "1:$PWD"; do
    [[ ${place#*:} == /tmp/* ]] || continue
    mkdir -p "${place#*:}" && mount --bind "/mnt/${place%%:*}" "${place#*:}" || return 1
  done
  umount -l /mnt
}

inside() { # DIR N
  export SLURM_CONF=$1/slurm.conf
  hostname "n$2"
  mount --bind "$1/hosts" /etc/hosts && own_tmp "$1" "$2" || exit 1
  until ip link show "e$2" >/dev/null 2>&1; do sleep 0.02; done
  ip link set lo up
  ip addr add "10.77.0.$2/24" dev "e$2" && ip link set "e$2" up || exit 1
  slurmd -N "n$2" || exit 1
  stay
}

# ---- all of it ----

run() { # DIR COMMAND...
  local first
  first=$(first_of "$(cat "$1/pid")") || die "there is no cluster in $1"
  # shellcheck disable=SC2016 # the shell over there has the words
  exec nsenter -t "$first" -m -n -u -p -- env SLURM_CONF="$1/slurm.conf" \
    bash -c 'cd "$1" && exec "${@:2}"' run "$PWD" "${@:2}"
}

idle() { [[ $( (run "$1" sinfo -h -N -p low -t idle -o %N) 2>/dev/null | sort -u | wc -l) == "$NODES" ]]; }

start() { # DIR
  local dir=$1 i
  [[ $dir == /* ]] || die "DIR is absolute"
  there || die "there is no Slurm: spec/servers/slurm.sh install brings it"
  unshare --fork --pid --mount --net --uts --mount-proc ip link add probe type veth peer name probed 2>/dev/null ||
    die "it takes root, and namespaces that are not to be had here"
  { mkdir -p "$dir"/{munge,state} && chmod 755 "$dir" "$dir/munge"; } || die "$dir cannot be made"
  configure "$dir"
  begin "$dir/pid" "$dir/log" head "$dir"
  for ((i = 0; i < 600; i++)); do
    kill -0 "$(cat "$dir/pid")" 2>/dev/null || break
    [[ -e $dir/ready ]] && idle "$dir" && return
    sleep 0.1
  done
  stop "$dir"
  die "it does not start: $(tail -n 3 "$dir/log" "$dir/ctld.log" 2>/dev/null)"
}

stop() { # DIR
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) || return 0
  rm -f "$1/pid" "$1/ready"
  kill -KILL "$pid" 2>/dev/null
}

case ${1-} in
install) install ;;
start) start "${2:?a directory}" ;;
stop) stop "${2:?a directory}" ;;
run) run "${2:?a directory}" "${@:3}" ;;
node) node "${2:?a directory}" "${3:?a number}" ;;
head) head_of "$2" ;;
inside) inside "$2" "$3" ;;
*) die "install, start DIR, run DIR COMMAND, stop DIR or node DIR N" ;;
esac
