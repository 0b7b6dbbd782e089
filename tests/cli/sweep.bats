#!/usr/bin/env bats
# `fleetsim sweep`: points, the folder, what survives, and what is said of the rest.
# The texts of other shells are theirs to expand; $status and $stderr are of bats.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034
load helpers

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  sed '/initial_replicas/d; s/^horizon: .*/horizon: 2 min/' \
    "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" >scenario.yaml
  unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_STEP
  unset SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE
}

# Ten rates and SEEDS seeds.
small_sweep() {
  cat >sweep.yaml <<YAML
name: small
outputs: [usd, ttft_p99, arrived]
axes:
  - {name: rate, key: 'workload[0].arrivals.rate', range: {from: 0.5 /s, to: 2.75 /s, count: 10}}
  - {name: seed, key: seed, range: {from: 1, to: ${1:-2}, step: 1}}
YAML
}

sweep() {
  fs_run sweep sweep.yaml --quiet "$@"
}

# Lines of that event in the journals of a folder.
events() {
  cat "$1"/journal*.jsonl | grep -c "\"event\":\"$2\"" || true
}

@test "every kind of axis, labelled in xarray, with the numbers of run" {
  cat >sweep.yaml <<'YAML'
name: kinds
base: scenario.yaml
outputs: [usd, gpu_hours_billed, ttft_p99]
axes:
  - {name: cold, key: 'fleet.pools[0].cold_start.provision', list: [0 s, 20 s, 2 min], unit: min}
  - name: policy
    key: fleet.pools[0].autoscaler
    labels: [static, target]
    list:
      - {policy: static, replicas: 2}
      - {policy: target, metric: concurrency, target: 4, min_replicas: 1, max_replicas: 8}
  - name: load
    key: ['workload[0].arrivals.rate', 'workload[0].output_tokens.mean']
    zip: [[1 /s, 120], [2 /s, 60]]
  - {name: seats, key: 'fleet.pools[0].engine.max_num_seqs', range: {from: 8, to: 32, count: 3, scale: log}}
  - name: draw
    key: ['fleet.pools[0].price.usd_per_gpu_hour', 'fleet.pools[0].engine.max_num_batched_tokens']
    samples: {count: 3, from: [2, 512], to: [4, 2048], scale: [linear, log], round: true}
YAML
  sweep
  assert_status 0
  assert_output_has "kinds: 108 runs: 108 done, 0 failed, 0 missing"
  "$FLEETSIM_PYTHON" - <<'PY'
import subprocess, json, os
import xarray as xr
d = xr.open_dataset("kinds.sweep/sweep.h5")
assert dict(d.sizes) == dict(cold=3, policy=2, load=2, seats=3, draw=3), d.sizes
assert list(d.cold.values) == [0, 1 / 3, 2] and d.cold.attrs["units"] == "min"
assert list(d.policy.values) == ["static", "target"]
assert list(d.seats.values) == [8, 16, 32]
assert list(d.load_rate.values) == [1, 2] and d.load_rate.attrs["units"] == "1/s"
assert list(d.draw_usd_per_gpu_hour.values) == [3, 4, 2], d.draw_usd_per_gpu_hour
assert (d.status == 0).all() and d.usd.attrs["units"] == "$"
point = dict(cold=1 / 3, policy="target", load=1, seats=16, draw=2)
one = d.sel(point, method=None)
sets = ["fleet.pools[0].cold_start.provision=20 s",
        "fleet.pools[0].autoscaler={policy: target, metric: concurrency, target: 4, min_replicas: 1, max_replicas: 8}",
        "workload[0].arrivals.rate=2 /s", "workload[0].output_tokens.mean=60",
        "fleet.pools[0].engine.max_num_seqs=16",
        f"fleet.pools[0].price.usd_per_gpu_hour={float(one.draw_usd_per_gpu_hour)}",
        f"fleet.pools[0].engine.max_num_batched_tokens={int(one.draw_max_num_batched_tokens)}"]
out = subprocess.run([os.environ["FLEETSIM_BIN"], "run", "scenario.yaml", "--no-output", "--json", "--quiet"]
                     + [x for s in sets for x in ("--set", s)], stdout=subprocess.PIPE, check=True)
run = json.loads(out.stdout)
assert str(one.digest.values) == run["digest"], (one.digest, run["digest"])
assert float(one.usd) == run["cost"]["usd"]
assert float(one.ttft_p99) == run["latency"]["ttft_s"]["p99"]
PY
  command -v ncdump >/dev/null || skip "no ncdump"
  fs_run show kinds.sweep/sweep.h5
  assert_status 2
  assert_stderr_has "holds a sweep, not a run"
  ncdump -h kinds.sweep/sweep.h5 | grep -q "double usd(cold, policy, load, seats, draw)"
}

@test "1, 4 and 16 processes, shards and merges: the same bytes" {
  small_sweep
  for jobs in 1 4 16; do
    sweep -o "j$jobs" --jobs "$jobs"
    assert_status 0
    assert_same_bytes j1/sweep.h5 "j$jobs/sweep.h5"
    assert_same_bytes j1/runs/p00013.h5 "j$jobs/runs/p00013.h5"
  done
  for shard in 2 0 1; do
    sweep -o shards --shard "$shard/3"
    assert_status 0
    assert_output_has "fleetsim sweep merge shards"
    assert_absent shards/sweep.h5
  done
  for _ in 1 2; do
    fs_run sweep merge shards
    assert_status 0
    assert_same_bytes j1/sweep.h5 shards/sweep.h5
  done
  # The variables of a Slurm job array say the same, whatever their first number.
  for task in 5 7 9; do
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=3 \
      SLURM_CPUS_PER_TASK=1 sweep -o array
    assert_status 0
  done
  fs_run sweep merge array
  assert_same_bytes j1/sweep.h5 array/sweep.h5
}

@test "killed 50 times, of a worker, the parent and both: the bytes of an undisturbed sweep" {
  small_sweep 4
  run "$FLEETSIM_PYTHON" "$FLEETSIM_SOURCE_DIR/tests/cli/sweep_kill.py" "$FLEETSIM_BIN" sweep.yaml 50
  echo "$output" >&2
  [ "$status" -eq 0 ]
  [[ $output == *"50 kills"*"none of them twice, all bytes equal"* ]]
  echo "# $output" >&3
}

@test "100 points, one fails, killed on the way: only that one and the unfinished run again" {
  cat >sweep.yaml <<'YAML'
name: hundred
outputs: [usd]
axes:
  - {name: queue, key: 'fleet.pools[0].max_queue', range: {from: -37, to: 62, count: 100}}
YAML
  # -37 … -1 are not sound: make all of them sound but one.
  sed -i 's/range: .*/list: [LIST]}/' sweep.yaml
  list=$("$FLEETSIM_PYTHON" -c 'print(", ".join("-1" if k == 37 else str(k) for k in range(100)))')
  sed -i "s/LIST/$list/" sweep.yaml
  "$FLEETSIM_BIN" sweep sweep.yaml --quiet --jobs 2 -o h >/dev/null 2>err &
  pid=$!
  for _ in $(seq 2000); do
    [ "$(events h "done" 2>/dev/null)" -lt 60 ] || break
    sleep 0.01
  done
  kill -9 "$pid"
  wait "$pid" || true
  grep -q "p00037 (queue=-1): failed: sweep.yaml:4:.*'max_queue'" err
  done_before=$(events h "done")
  [ "$done_before" -ge 60 ]
  fs_run sweep status h
  assert_status 1
  assert_output_has "hundred: 100 runs: $done_before done, 1 failed, $((99 - done_before)) missing"
  sweep -o h
  assert_status 1
  assert_stderr_has "p00037"
  [ "$(events h "done")" -eq 99 ]
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py, numpy as np
f = h5py.File("h/sweep.h5")
assert [k for k, s in enumerate(f["status"][:]) if s != 0] == [37]
assert list(np.flatnonzero(np.isnan(f["usd"][:]))) == [37] and f["meta/complete"][()] == 0
PY
  # Repaired: that one alone is run.
  sed -i 's/36, -1, 38/36, 37, 38/' sweep.yaml
  sweep -o h --json
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["up_to_date_before"], o["run_now"], o["done"]')" = "(99, 1, 100)" ]
}

@test "a changed scenario, trace or program: what it touches is run again, and nothing is mixed" {
  small_sweep
  sweep -o c
  assert_status 0
  cp c/sweep.h5 before.h5
  # A comment changes nothing.
  echo "# a comment" >>scenario.yaml
  sweep -o c --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["run_now"]')" = 0 ]
  # One value of one axis: its points.
  sed -i 's|range: {from: 0.5 /s, to: 2.75 /s, count: 10}|list: [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 9]|' sweep.yaml
  sweep -o c --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["up_to_date_before"], o["run_now"]')" = "(18, 2)" ]
  # The scenario: all, and what is there of the old one is not in sweep.h5.
  sed -i 's/mean: 800/mean: 700/' scenario.yaml
  sweep -o c --only 0-4 --json
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["up_to_date_before"], o["run_now"], o["missing"]')" = "(0, 5, 15)" ]
  [ "$("$FLEETSIM_PYTHON" - <<<'import h5py; print(sum(h5py.File("c/sweep.h5")["status"][:].ravel() == 2))')" = 15 ]
  fs_run sweep status c
  assert_status 1
  assert_output_has "15 of the missing have a result of another scenario, trace or program"
  # Another program: other bytes, though they do the same.
  cp "$FLEETSIM_BIN" other && echo >>other
  FLEETSIM_CATALOG=$FLEETSIM_SOURCE_DIR/models/catalog run ./other sweep sweep.yaml -o c --quiet --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["up_to_date_before"], o["run_now"]')" = "(0, 20)" ]
}

@test "a trace is part of the fingerprint, its path beside sweep.yaml" {
  mkdir deep
  printf 'arrival_s,prompt_tokens,output_tokens\n0,100,10\n1,100,10\n60,50,5\n' >deep/t.csv
  sed '/^horizon/d; s|arrivals: .*|arrivals: {process: trace, file: t.csv}|; /prompt_tokens: {dist/d; /output_tokens: {dist/d' \
    scenario.yaml >deep/scenario.yaml
  cp deep/t.csv deep/u.csv
  cat >deep/sweep.yaml <<'YAML'
name: traced
outputs: [arrived, tokens_prompt]
axes:
  - {key: 'workload[0].arrivals.file', name: trace, list: [./t.csv, ./u.csv], labels: [t, u]}
YAML
  fs_run sweep deep --quiet -o t
  assert_status 0
  fs_run sweep deep --quiet -o t --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["run_now"]')" = 0 ]
  printf '61,50,5\n' >>deep/u.csv
  fs_run sweep deep --quiet -o t --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["up_to_date_before"], o["run_now"]')" = "(1, 1)" ]
  [ "$("$FLEETSIM_PYTHON" - <<<'import h5py; print(list(h5py.File("t/sweep.h5")["arrived"][:]))')" = "[3.0, 4.0]" ]
}

@test "half a file, a foreign file and a torn line are not trusted" {
  small_sweep
  sweep -o d
  assert_status 0
  cp d/sweep.h5 whole.h5
  truncate -s 1000 d/runs/p00003.h5
  cp d/runs/p00005.h5 d/runs/p00004.h5
  rm d/runs/p00006.h5
  touch d/runs/p00007.h5.tmp-1 d/runs/p00006.h5.tmp-1
  fs_run sweep status d
  assert_status 1
  assert_output_has "17 done, 0 failed, 3 missing"
  printf '{"event":"done","run":"p00003","finger' >>d/journal.jsonl
  sweep -o d --json
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["up_to_date_before"], o["run_now"]')" = "(17, 3)" ]
  assert_same_bytes whole.h5 d/sweep.h5
  assert_absent d/runs/p00006.h5.tmp-1
  [ "$(tail -n 1 d/journal.jsonl | cut -c1-14)" = '{"event":"end"' ]
}

@test "Ctrl-C lets runs end and the folder goes on; a second one kills" {
  small_sweep 40
  "$FLEETSIM_PYTHON" - <<'PY'
import os, signal, subprocess, time
def go(folder):
    p = subprocess.Popen([os.environ["FLEETSIM_BIN"], "sweep", "sweep.yaml", "--jobs", "2", "-o", folder],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    for _ in range(2000):
        if os.path.exists(f"{folder}/runs/p00010.h5"):
            break
        time.sleep(0.01)
    return p
p = go("i")
os.killpg(p.pid, signal.SIGINT)
out, err = p.communicate()
assert p.returncode == 1, (p.returncode, err)
assert b"stopped: what is done is kept" in err, err
assert b"0 failed" in out and b"missing" in out, out
assert not [n for n in os.listdir("i/runs") if ".tmp" in n]
p = go("k")
os.killpg(p.pid, signal.SIGINT); time.sleep(0.0005); os.killpg(p.pid, signal.SIGINT)
out, err = p.communicate()
# One that comes when the runs have just ended finds a program that may be ended like any other.
told = b"killed: " in err or b"stopped: " in err
assert p.returncode == -2 or (p.returncode == 1 and told), (p.returncode, err)
PY
  before=$(events i "done")
  [ "$before" -lt 400 ]
  sweep -o i --only 0-60 --json
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["failed"]')" = 0 ]
}

@test "a run that takes too long is killed, the others are unharmed, and it alone is tried again" {
  cat >sweep.yaml <<'YAML'
name: long
outputs: [usd]
time_limit: 1 s
axes:
  - {name: days, key: horizon, list: [10 min, 90 d], unit: min}
YAML
  sweep --set 'workload[0].arrivals.rate=40' --set output.trace_interval='10 d' --jobs 1
  assert_status 1
  assert_stderr_has "p00001 (days=90 d): failed: killed for time: 1."
  assert_stderr_has "and 1.0 s are allowed"
  assert_output_has "1 done, 1 failed, 0 missing"
  [ "$(find . -name '*.tmp-*' | wc -l)" -eq 0 ]
  # The limit is no part of what a run is: the other stays done. The option goes before the file.
  fs_run sweep sweep.yaml --quiet --set 'workload[0].arrivals.rate=40' --set output.trace_interval='10 d' \
    --time-limit '2 s' --retry-failed --json
  assert_status 1
  assert_stderr_has "and 2.0 s are allowed"
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["up_to_date_before"], o["done"], o["failed"]')" = "(1, 1, 1)" ]
}

@test "a run that takes too much memory is killed, the others are unharmed, and it alone is tried again" {
  ! grep -q __asan_init "$FLEETSIM_BIN" || skip "a sanitizer takes more memory than the limit"
  cat >sweep.yaml <<'YAML'
name: fat
outputs: [usd]
axes:
  - {name: grain, key: output.trace_interval, list: [1 h, 1 s, 10 min]}
YAML
  sweep --set horizon='20 h' --set 'workload[0].arrivals.rate=0.01' --memory '40 MiB' --jobs 1
  assert_status 1
  assert_stderr_has "p00001 (grain=1 s): failed: killed for memory: "
  assert_stderr_has "and 40.0 MiB are allowed"
  assert_output_has "2 done, 1 failed, 0 missing"
  fs_run sweep sweep.yaml --quiet --set horizon='20 h' --set 'workload[0].arrivals.rate=0.01' \
    --memory '4 GiB' --retry-failed --json
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["up_to_date_before"], o["run_now"], o["done"]')" = "(2, 1, 3)" ]
}

@test "--retry-failed touches what failed and leaves what is missing" {
  small_sweep
  sed -i 's|range: {from: 0.5 /s, to: 2.75 /s, count: 10}|list: [1, -3, 2]|' sweep.yaml
  sweep -o r --only 0-3
  assert_status 1
  assert_stderr_has "p00002 (rate=-3, seed=1): failed: sweep.yaml:4:62: 'rate': must be more than 0"
  sweep -o r --retry-failed --json
  assert_status 1
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["run_now"], o["done"], o["failed"], o["missing"]')" = "(2, 2, 2, 2)" ]
  sed -i 's/-3/3/' sweep.yaml
  # Other points than those that failed: a plain run does them.
  sweep -o r --retry-failed --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["run_now"], o["missing"]')" = "(0, 4)" ]
}

# on_tmpfs SIZE MODE COMMAND…: with ./small, a tmpfs of that size, as a user who may.
on_tmpfs() {
  mkdir -p small
  unshare -rm true 2>/dev/null || skip "no mount namespaces here"
  run --separate-stderr unshare -rm bash -c \
    'mount -t tmpfs -o size="$1" tmpfs small || exit 77; shift; "$@"' _ "$@"
  [ "$status" -ne 77 ] || skip "no tmpfs can be mounted here"
}

@test "a full disk: a clear line for every run it hits, exit code 1, and no half file counts" {
  small_sweep
  on_tmpfs 1M bash -c '"$FLEETSIM_BIN" sweep sweep.yaml --quiet --jobs 2 -o small/s; code=$?
    echo "code $code"; "$FLEETSIM_BIN" sweep status small/s; ls small/s/runs'
  assert_output_has "code 1"
  assert_stderr_has "No space left on device"
  assert_stderr_has "small/s/"
  [[ $output != *.tmp-* ]]
  [[ $output =~ ([0-9]+)\ done,\ ([0-9]+)\ failed ]]
  [ "${BASH_REMATCH[1]}" -ge 1 ]
}

@test "a folder that cannot be written is refused before anything runs" {
  small_sweep
  on_tmpfs 1M bash -c 'mount -o remount,ro,size=1M tmpfs small; "$FLEETSIM_BIN" sweep sweep.yaml --quiet -o small/s'
  assert_status 1
  assert_stderr_has "cannot make the folder small/s: Read-only file system"
  : >file
  sweep -o file
  assert_status 1
  assert_stderr_has "cannot make the folder file: File exists"
}

@test "a second sweep in the same folder waits for nobody" {
  small_sweep 40
  "$FLEETSIM_BIN" sweep sweep.yaml --quiet -o l >/dev/null 2>&1 &
  pid=$!
  for _ in $(seq 2000); do
    [ ! -e l/runs/p00002.h5 ] || break
    sleep 0.01
  done
  kill -STOP "$pid"
  sweep -o l
  assert_status 1
  assert_stderr_has "another sweep is at work in this folder"
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null || true
}

@test "replications: independent runs of every point, means and intervals" {
  small_sweep
  sed -i 's/^name: small/&\nreplications: 3/; /name: seed/d' sweep.yaml
  sweep -o r
  assert_status 0
  assert_output_has "30 runs: 30 done"
  "$FLEETSIM_PYTHON" - <<'PY'
import numpy as np, xarray as xr
d = xr.open_dataset("r/sweep.h5")
a = d.arrived.values
assert d.arrived.dims == ("rate", "replication") and a.shape == (10, 3)
assert len({str(x) for x in d.digest.values.ravel()}) == 30
assert np.allclose(d.arrived_rep_mean.values, a.mean(1))
assert np.allclose(d.arrived_rep_half.values, 4.302652729911275 * a.std(1, ddof=1) / 3 ** 0.5)
PY
}

@test "--sensitivity: one axis at a time, ranked" {
  cat >sweep.yaml <<'YAML'
name: tornado
outputs: [usd, ttft_p99]
axes:
  - {name: rate, key: 'workload[0].arrivals.rate', list: [1 /s, 3 /s]}
  - {name: price, key: 'fleet.pools[0].price.usd_per_gpu_hour', list: [2.9, 3.1]}
  - {name: block, key: 'fleet.pools[0].engine.block_size', list: [32]}
YAML
  sweep --sensitivity usd --set 'fleet.pools[0].cold_start.weights=0 s'
  assert_status 0
  assert_output_has "tornado: 6 runs: 6 done"
  [[ $output =~ rate.*price.*block ]]
  sweep --sensitivity usd --set 'fleet.pools[0].cold_start.weights=0 s' --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json '[e["input"] for e in o["effects"]]')" = "['rate', 'price', 'block']" ]
  [ "$(json out.json 'o["effects"][2]["swing"]')" = 0 ]
  [ "$(json out.json 'abs(o["effects"][1]["swing"] / o["effects"][1]["base"] - 0.2 / 3) < 1e-9')" = True ]
  "$FLEETSIM_PYTHON" - <<'PY'
import xarray as xr
t = xr.open_dataset("tornado-sensitivity.sweep/sweep.h5", group="sensitivity")
assert list(t.input.values) == ["rate", "price", "block"]
assert float(t.usd_swing.sel(input="rate")) == float(t.usd_high[0] - t.usd_low[0])
PY
}

@test "--dry-run lists points and a time, and writes nothing" {
  small_sweep
  sweep --dry-run
  assert_status 0
  assert_output_has "small: 20 points"
  assert_output_has "   13  rate=2 /s, seed=2"
  assert_output_has "time: about "
  [[ "$output" != *chosen* ]]
  assert_absent small.sweep
  # Of what was asked for, as one object too.
  sweep --dry-run --only 13 --only 2-3
  assert_status 0
  assert_output_has "   13  rate=2 /s, seed=2"
  assert_output_has "chosen: 3 of 20 runs"
  [[ "$output" != *"   12  "* ]]
  sweep --dry-run --json --shard 1/4
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json '[p["point"] for p in o["points"]], o["runs"]')" = "([1, 5, 9, 13, 17], 5)" ]
  [ "$(json out.json 'o["seconds"] > 0 and o["points"][0]["cannot_run"] is None')" = True ]
  assert_absent small.sweep
}

@test "--only: by number, by range, by value" {
  small_sweep
  sweep --only 3 --only p00007-9 --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["run_now"]')" = 4 ]
  sweep --only 'rate=2 /s' --only 'rate=1 /s' --only seed=2 --json
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["run_now"]')" = 2 ]
  sweep --only 99
  assert_status 64
  assert_stderr_has "neither a point from 0 to 19"
  sweep --only 'rat=1 /s'
  assert_status 64
  assert_stderr_has "did you mean 'rate'"
  sweep --only rate=77
  assert_status 64
  assert_stderr_has "the axis 'rate' has the values 0.5 /s, 0.75 /s"
}

@test "everything wrong with a sweep is said at once, with its place, and nothing is written" {
  cat >sweep.yaml <<'YAML'
nmae: x
replications: 0
outputs: [usd, ttft_p98]
axes:
  - {name: a, key: seed, list: []}
  - {key: seed, lst: [1]}
  - {name: a, key: [horizon, seed], zip: [[1 s, 2], [3 s]]}
  - {name: c, key: 'workload[0].arrivals.rate', range: {from: 1, to: 4}}
  - {name: d, key: seed, list: [1], zip: [[2]]}
  - {name: e}
  - 7
YAML
  sweep
  assert_status 2
  for text in "sweep.yaml:1:1: error: unknown key 'nmae' at the top level, did you mean 'name'?" \
    "sweep.yaml:2:15: error: 'replications': must be" "'list': expected a list of values, found an empty one" \
    "sweep.yaml:6:17: error: unknown key 'lst' in an axis, did you mean 'list'?" \
    "'zip': expected a row of 2 values" "two axes are called 'a'" "'range' needs step or count" \
    "'list' and 'zip' both give the values" "missing key 'key'" "an axis is a mapping"; do
    assert_stderr_has "$text"
  done
  assert_absent x.sweep
  assert_absent sweep.sweep
  cat >sweep.yaml <<'YAML'
name: x
axes:
  - {name: b, key: 'fleet.pools[0].max_queu', list: [1, 2]}
  - name: c
    key: fleet.pools[0].autoscaler
    list:
      - {policy: static, replica: 3}
      - {policy: targett}
YAML
  sweep
  assert_status 2
  assert_stderr_has "sweep.yaml:3:20: error: unknown key 'max_queu' in fleet.pools[0], did you mean 'max_queue'?"
  assert_stderr_has "sweep.yaml:7:26: error: unknown key 'replica' in fleet.pools[0].autoscaler, did you mean 'replicas'?"
  assert_stderr_has "sweep.yaml:8:18: error: unknown autoscaler policy 'targett', did you mean 'target'?"
  assert_absent x.sweep
  printf 'name: x\noutputs: [usd, ttft_p98]\naxes:\n  - {name: usd, key: seed, list: [1]}\n  - {name: b, key: seed, range: {from: 1, to: 2 s, count: 3}}\n' >sweep.yaml
  sweep
  assert_status 2
  assert_stderr_has "sweep.yaml:2:16: error: 'outputs': no column 'ttft_p98' in the summary, did you mean 'ttft_p9"
  assert_stderr_has "'1' and '2 s' are not in the same unit"
  sed -i '5d; s/, ttft_p98//' sweep.yaml
  sweep
  assert_status 2
  assert_stderr_has "an axis cannot be called 'usd'"
  fs_run sweep nosuch
  assert_status 2
  assert_stderr_has "no sweep named 'nosuch'"
  fs_run sweep merge .
  assert_status 1
  assert_stderr_has ". is no folder of a sweep"
}

@test "what a killed merge left beside sweep.h5 goes an hour later" {
  small_sweep
  sh -c 'exit 0' &
  dead=$!
  wait "$dead"
  mkdir folder
  touch -d '2 hours ago' "folder/sweep.h5.tmp-$dead" "folder/sweep.h5.tmp-$$"
  touch "folder/sweep.h5.tmp-${dead}1"
  sweep -o folder
  assert_status 0
  assert_stderr_has "removed folder/sweep.h5.tmp-$dead, left by a run that was killed"
  assert_absent "folder/sweep.h5.tmp-$dead"
  [ -e "folder/sweep.h5.tmp-$$" ] && [ -e "folder/sweep.h5.tmp-${dead}1" ]
  touch -d '2 hours ago' "folder/sweep.h5.tmp-$dead"
  fs_run sweep merge folder
  assert_status 0
  assert_absent "folder/sweep.h5.tmp-$dead"
}

@test "bad options are bad usage" {
  small_sweep
  for option in "--jobs 0" "--jobs x" "--memory 3" "--time-limit 0.5s" "--time-limit x" "--replications 0" "--shard 3/3" "--shard 1" "--slurm 0"; do
    # shellcheck disable=SC2086
    sweep $option
    assert_status 64
    assert_stderr_has "${option%% *}"
  done
  fs_run sweep status
  assert_status 64
  assert_stderr_has "needs the folder"
  fs_run sweep sweep.yaml other
  assert_status 64
  SLURM_ARRAY_TASK_ID=3 sweep
  assert_status 64
  assert_stderr_has "--shard i/n does"
  assert_absent small.sweep
}

@test "--slurm prints a batch script that bash can read and that does the sweep" {
  small_sweep
  fs_run sweep sweep.yaml --slurm 3 -o "a folder" --set 'name=other name' --jobs 1
  assert_status 0
  printf '%s\n' "$output" >job.sh
  bash -n job.sh
  grep -qx '#SBATCH --array=0-2' job.sh
  for task in 0 1 2; do
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=3 SLURM_CPUS_PER_TASK=1 bash job.sh
  done
  fs_run sweep merge "a folder"
  assert_status 0
  assert_output_has "20 done"
}

@test "a scenario that changes under a sweep: what was made of the new one is not kept" {
  cat >sweep.yaml <<'YAML'
name: moving
outputs: [arrived]
axes:
  - {name: s, key: seed, range: {from: 1, to: 300, count: 300}}
YAML
  cp scenario.yaml old.yaml
  sed 's/rate: 2 /rate: 40 /' old.yaml >new.yaml
  "$FLEETSIM_BIN" sweep sweep.yaml --quiet --jobs 2 -o m >out 2>err &
  pid=$!
  for _ in $(seq 2000); do
    [ "$(events m "done" 2>/dev/null)" -lt 5 ] || break
    sleep 0.01
  done
  mv new.yaml scenario.yaml
  code=0
  wait "$pid" || code=$?
  [ "$code" -eq 1 ]
  grep -q "failed: the scenario, or a file it reads, changed while the sweep was at work" err
  # All that is kept is of the scenario the sweep began with, and goes on when that is back.
  mv old.yaml scenario.yaml
  sweep -o m --only 0-40 --json
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["failed"] > 0, o["up_to_date_before"] >= 5')" = "(True, True)" ]
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py, numpy as np
f = h5py.File("m/sweep.h5")
done = f["status"][:] == 0
assert done[:41].all() and np.isnan(f["arrived"][:][~done]).all()
assert f["arrived"][:][done].max() < 1000, f["arrived"][:]
PY
}

@test "started with SIGCHLD ignored, a sweep still sees the end of its runs" {
  small_sweep
  "$FLEETSIM_PYTHON" - <<'PY'
import os, signal, subprocess
p = subprocess.run([os.environ["FLEETSIM_BIN"], "sweep", "sweep.yaml", "--quiet", "-o", "x"], timeout=60,
                   preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
assert p.returncode == 0, p
PY
}

@test "names that meet in the results, and keys that undo each other, are found before anything runs" {
  try() {
    printf 'name: t\noutputs: [usd]\n%s\n' "$1" >sweep.yaml
    sweep "${@:3}"
    assert_status 2
    assert_stderr_has "$2"
    assert_absent t.sweep
  }
  q="fleet.pools[0].max_queue"
  twice=$'replications: 2\n'
  for name in status digest replication "case" case_input meta scenario sensitivity usd; do
    try "axes: [{name: $name, key: '$q', list: [1, 2]}]" "an axis cannot be called '$name'"
  done
  for name in usd_rep_mean usd_rep_half; do
    try "${twice}axes: [{name: $name, key: '$q', list: [1, 2]}]" "an axis cannot be called '$name'"
  done
  try "axes: [{name: a_seed, key: '$q', list: [1, 2]}, {name: a, key: [seed, horizon], zip: [[1, 60], [2, 30]]}]" \
    "an axis cannot be called 'a_seed'"
  try "axes: [{name: a, key: '$q', list: [1, 2]}, {name: b, key: 'fleet.pools[00].max_queue', list: [3]}]" \
    "'fleet.pools[00].max_queue' sets again what '$q' of the axis 'a' has set"
  try "axes: [{name: a, key: '$q', list: [1, 2]}]" "--set '$q=5': the axis 'a' sets it at every point" \
    --set "$q=5"
  try "${twice}axes: [{name: a, key: replication, list: [0, 1]}]" "'replication' is an axis already"
  try "${twice}axes: []" "--set 'replication=1': the axis 'replication' sets it" --set replication=1
  mkfifo pipe
  try "base: pipe" "is no file that every run can read anew"
  printf 'name: "a\\nb"\naxes: []\n' >sweep.yaml
  sweep
  assert_status 2
  assert_stderr_has "cannot be the name of a folder"
}

@test "a long label is cut between characters, and --only takes every sample with the value" {
  long=a$(printf 'é%.0s' $(seq 40))
  cat >sweep.yaml <<YAML
name: t
outputs: [usd]
axes:
  - {name: s, key: description, list: ['$long', b]}
  - {name: d, key: 'fleet.pools[0].max_queue', samples: {count: 8, from: [1], to: [3], round: true}}
YAML
  sweep --only d=2 --json
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["done"]')" -gt 2 ]
  [ "$(json t.sweep/points.json 'o["points"][0]["point"]')" = "s=a$(printf 'é%.0s' $(seq 29))…, d=2" ]
}
