#!/usr/bin/env bats
# A sweep as a job array of a real Slurm: one node, started here in a folder of its own, on ports of
# its own. Skipped where the daemons are not installed or cannot start.
# $status and $stderr are of bats.
# shellcheck disable=SC2030,SC2031,SC2034
load helpers

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  daemons=()
}

# They write into the folder until they are gone.
teardown() {
  [ "${#daemons[@]}" -gt 0 ] || return 0
  kill "${daemons[@]}" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "${daemons[@]}" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "${daemons[@]}" 2>/dev/null || true
  wait "${daemons[@]}" 2>/dev/null || true
}

# daemon NAME COMMAND…: in the background, with nothing of the test's open.
daemon() {
  "${@:2}" >"slurm/$1.out" 2>&1 3>&- </dev/null &
  daemons+=("$!")
}

slurm_conf() {
  local here=$PWD/slurm host me port
  host=$(hostname -s) me=$(id -un) port=$((20000 + RANDOM % 20000))
  cat <<CONF
ClusterName=fleetsim
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$here/munge/socket
CredType=cred/munge
SlurmUser=$me
SlurmdUser=$me
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd.pid
SlurmctldLogFile=$here/slurmctld.log
SlurmdLogFile=$here/slurmd.log
SlurmctldPort=$port
SlurmdPort=$((port + 1))
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

slurm_start() {
  local tool
  for tool in munged slurmctld slurmd sbatch; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
  mkdir -p slurm/state slurm/spool slurm/munge
  chmod 755 . slurm && chmod 700 slurm/munge
  head -c 1024 /dev/urandom >slurm/munge/key && chmod 600 slurm/munge/key
  slurm_conf >slurm/slurm.conf
  export SLURM_CONF=$PWD/slurm/slurm.conf PATH=$PATH:/usr/sbin
  daemon munged munged --force --foreground --num-threads=1 --key-file="$PWD/slurm/munge/key" \
    --socket="$PWD/slurm/munge/socket" --pid-file="$PWD/slurm/munge/pid" \
    --log-file="$PWD/slurm/munge/log" --seed-file="$PWD/slurm/munge/seed"
  for _ in $(seq 50); do [ ! -S slurm/munge/socket ] || break; sleep 0.1; done
  daemon slurmctld slurmctld -D -f "$SLURM_CONF"
  daemon slurmd slurmd -D -f "$SLURM_CONF" -N "$(hostname -s)"
  for _ in $(seq 300); do
    if sinfo -h -o %t 2>/dev/null | grep -q idle; then return; fi
    sleep 0.1
  done
  tail -n 3 slurm/*.log slurm/munge/log >&2 || true
  skip "Slurm does not start here: $(sinfo -h -o '%t %E' 2>&1 | head -n 1)"
}

@test "sbatch --array=0-3 of the script that --slurm prints, then merge: the bytes of a local sweep" {
  slurm_start
  sed '/initial_replicas/d; s/^horizon: .*/horizon: 2 min/' \
    "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" >scenario.yaml
  cat >sweep.yaml <<'YAML'
name: array
outputs: [usd, ttft_p99, arrived]
axes:
  - {name: rate, key: 'workload[0].arrivals.rate', range: {from: 0.5 /s, to: 2.75 /s, count: 10}}
  - {name: seed, key: seed, list: [1, 2]}
YAML
  fs_run sweep sweep.yaml --quiet -o local
  assert_status 0
  fs_run sweep sweep.yaml --slurm 2 -o cluster
  assert_status 0
  printf '%s\n' "$output" >job.sh
  timeout 120 sbatch --wait --array=0-3 job.sh
  cat slurm-*.log >&2
  for shard in 0 1 2 3; do
    [ "$(grep -c '"event":"done"' "cluster/journal-${shard}of4.jsonl")" -eq 5 ]
  done
  fs_run sweep merge cluster
  assert_status 0
  assert_same_bytes local/sweep.h5 cluster/sweep.h5
  cp cluster/sweep.h5 first.h5
  fs_run sweep merge cluster
  assert_same_bytes first.h5 cluster/sweep.h5
  # The array again: nothing is left to do.
  timeout 120 sbatch --wait --array=0-3 job.sh
  [ "$(cat cluster/journal-*.jsonl | grep -c '"event":"done"')" -eq 20 ]
}
