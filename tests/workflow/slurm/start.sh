#!/usr/bin/env bash
# Install Slurm, if need be, and start a cluster of one node on the loopback interface, for tests.
# Usage: start.sh FOLDER. Needs root. Nothing outside FOLDER is written but Debian's packages:
# configuration, key, sockets, logs and state lie there; use it with SLURM_CONF=FOLDER/slurm.conf
# and with FOLDER/bin first in PATH.
set -euo pipefail
folder=$1
here=$(hostname -s)
fail() { echo "Slurm cannot start: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "this needs root"
if ! command -v slurmctld slurmd munged squeue >/dev/null; then
    command -v apt-get >/dev/null || fail "neither installed, nor is there apt-get to install it"
    { apt-get update && apt-get install -y --no-install-recommends \
        munge slurmctld slurmd slurm-client; } >"$folder/apt.log" 2>&1 || fail "see $folder/apt.log"
fi

mkdir -p "$folder"/{bin,controller,node,log}
chmod 755 "$folder"
# Messages are signed with a key of this cluster alone.
install -d -m 755 -o munge -g munge "$folder/munge"
head -c 1024 /dev/urandom >"$folder/munge/key"
chown munge:munge "$folder/munge/key"
chmod 400 "$folder/munge/key"
runuser -u munge -- munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed"

cat >"$folder/slurm.conf" <<CONF
ClusterName=one_node
SlurmctldHost=$here(127.0.0.1)
SlurmctldPort=${SLURM_TEST_PORT:-16817}
SlurmdPort=$((${SLURM_TEST_PORT:-16817} + 1))
# Ports are open on the loopback interface alone.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/controller
SlurmdSpoolDir=$folder/node
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
# No systemd, no cgroups, no accounting.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,bf_interval=5
# More than the machine has, so that no job waits for room.
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MinJobAge=3600
NodeName=$here NodeAddr=127.0.0.1 CPUs=16 RealMemory=65536 State=UNKNOWN
PartitionName=debug Nodes=$here Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=500
CONF
export SLURM_CONF="$folder/slurm.conf"
# The job steps of Snakemake's plugin forget that variable.
printf '#!/bin/sh\nSLURM_CONF=%s exec %s "$@"\n' "$SLURM_CONF" "$(command -v srun)" >"$folder/bin/srun"
chmod 755 "$folder/bin/srun"
slurmctld || fail "see $folder/log/slurmctld.log"
slurmd -N "$here" || fail "see $folder/log/slurmd.log"
for _ in $(seq 100); do
    if sinfo --noheader --format=%T 2>/dev/null | grep -qx idle; then exit 0; fi
    sleep 0.2
done
fail "no node is idle; see $folder/log"
