#!/bin/sh
# A study as an array of jobs of a real Slurm: a cluster of one node, set up in a directory of its
# own and taken down again. One task of the array is killed and submitted again; the merged shares
# are the same, byte by byte, as one run without Slurm.
# Then the same study by workers of Dask that are jobs of this Slurm, where the interpreter PYTHON has
# the package `warmset`, of the same version, and dask-jobqueue.
# Usage, as root: sh tests/slurm.sh WARMSET [PYTHON]; `make test-python` makes the default,
# target/python/venv/bin/python. On Debian it takes
# `apt install slurmctld slurmd slurm-client munge`; ports 26817 and 26818 of this machine are used.
set -eu

warmset=$(realpath "${1:?which warmset}")
here=$(cd "$(dirname "$0")/.." && pwd)
python=${2:-$here/target/python/venv/bin/python}
export WARMSET_PROFILE=none
for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || {
        echo "no $program: apt install slurmctld slurmd slurm-client munge" >&2
        exit 2
    }
done
[ "$(id -u)" -eq 0 ] || { echo "a node of Slurm is started by root" >&2; exit 2; }

root=$(mktemp -d "${TMPDIR:-/tmp}/warmset-slurm.XXXXXX")
started=
# Ends what was started here, by its number, and removes the directory.
down() {
    for pid in $started; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$root"
}
trap down EXIT
trap 'exit 130' INT TERM

# munged hands nobody a key that others could have replaced.
chmod 711 "$root"
mkdir -m 711 "$root/munge"
dd if=/dev/urandom of="$root/munge/key" bs=1024 count=1 2>/dev/null
chmod 400 "$root/munge/key"
munged --foreground --force --key-file="$root/munge/key" --socket="$root/munge/socket" \
    --pid-file="$root/munge/pid" --log-file="$root/munge/log" --seed-file="$root/munge/seed" \
    2>"$root/munge/said" &
started="$! $started"

node=$(hostname -s)
cpus=$(nproc)
cat >"$root/slurm.conf" <<CONF
ClusterName=warmset
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$root/munge/socket
CredType=cred/munge
StateSaveLocation=$root/state
SlurmdSpoolDir=$root/spool
SlurmctldPidFile=$root/slurmctld.pid
SlurmdPidFile=$root/slurmd.pid
SlurmctldLogFile=$root/slurmctld.log
SlurmdLogFile=$root/slurmd.log
# What a node of one's own needs no more of: no groups of processes by the kernel, no mail.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MpiDefault=none
NodeName=$node NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
mkdir "$root/state" "$root/spool"
export SLURM_CONF="$root/slurm.conf"
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
started="$! $started"
slurmd -D -f "$SLURM_CONF" -N "$node" >/dev/null 2>&1 &
started="$! $started"

# until COMMAND…: until it succeeds, a minute at most.
until_it() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 120 ]; then
            echo "after a minute still not: $*" >&2
            cat "$root"/slurmctld.log "$root"/slurmd.log >&2
            exit 1
        fi
        sleep 0.5
    done
}
idle() { [ "$(sinfo -h -o %T 2>/dev/null)" = idle ]; }
done_with() { [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]; }
until_it idle

cd "$root"
cat >array.sh <<ARRAY
#!/bin/sh
#SBATCH --array=1-4
#SBATCH --cpus-per-task=1
echo \$\$ >"pid\$SLURM_ARRAY_TASK_ID"
exec "$warmset" study run ospert10-fig5 --sets 1500 --threads 1 \\
    --shard "\$SLURM_ARRAY_TASK_ID/4" -o "share\$SLURM_ARRAY_TASK_ID"
ARRAY

# A part of its share is counted when the second task is killed.
begun() { [ -s share2/counts.jsonl ]; }
job=$(sbatch --parsable array.sh)
until_it begun
kill -9 "$(cat pid2)"
until_it done_with "$job"
"$warmset" study merge share1 share2 share3 share4 -o merged >missing.txt 2>&1
if ! grep -q "not all shares are there" missing.txt; then
    echo "the second share is whole though its task was killed" >&2
    exit 1
fi
job=$(sbatch --parsable --array=2 array.sh)
until_it done_with "$job"

"$warmset" study merge share1 share2 share3 share4 -o merged >/dev/null
"$warmset" study run ospert10-fig5 --sets 1500 -o alone >/dev/null 2>&1
diff -r merged alone
echo "four tasks of an array, one killed and submitted again: the same bytes as without Slurm"

if ! "$python" -c 'import warmset, dask_jobqueue' 2>said.txt; then
    echo "SLURMCluster: not run: $python: $(tail -n 1 said.txt)"
    exit 0
fi
"$python" "$here/crates/python/tests/slurm.py" 1500 by-dask 2>dask.txt || {
    tail -n 30 dask.txt slurm-*.out ./*.err >&2 2>/dev/null || true
    exit 1
}
for file in counts.jsonl results.json results.csv weighted.csv points.parquet study.toml; do
    cmp "by-dask/$file" "alone/$file"
done
echo "the recipe of docs/cluster.md, by jobs of a SLURMCluster: the same bytes as without Slurm"
