#!/usr/bin/env bats
# The result file, as tools that know nothing of fleetsim see it.
load helpers

result_file() {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  "$FLEETSIM_BIN" run small.yaml --quiet "$@" >/dev/null
}

# The checker says 77 when one of its packages is missing.
trace_file_is_good() {
  run "$FLEETSIM_PYTHON" "$FLEETSIM_SOURCE_DIR/tests/cli/check_trace_file.py" "$@"
  [ "$status" -ne 77 ] || skip "$output"
  assert_status 0
}

# Numbers of the JSON, the hourly CSV and the result file, from the rows per request alone.
recomputed() {
  "$FLEETSIM_BIN" run small.yaml --quiet --force --json -o out.h5 --requests requests.csv \
    --hourly hourly.csv "$@" >out.json
  run "$FLEETSIM_PYTHON" "$FLEETSIM_SOURCE_DIR/tests/cli/recompute.py" out.json requests.csv \
    hourly.csv out.h5
  [ "$status" -ne 77 ] || skip "$output"
  assert_status 0
}

@test "ncdump, netCDF4, xarray and h5py read all of it" {
  result_file
  trace_file_is_good small.h5
}

@test "with rows per request too, and those equal the CSV" {
  result_file --set output.requests=true --requests requests.csv
  trace_file_is_good small.h5
  "$FLEETSIM_PYTHON" - <<'PY'
import csv
import h5py
rows = list(csv.DictReader(open("requests.csv")))
with h5py.File("small.h5") as file:
    group = file["requests"]
    assert [int(r["prompt_tokens"]) for r in rows] == list(group["prompt_tokens"][()])
    ends = group["end_s"][()]
    assert all(abs(float(r["end_s"]) - end) < 1e-9 for r, end in zip(rows, ends))
PY
}

@test "ncdump -h names dimensions, units and the calendar of the time axis" {
  command -v ncdump >/dev/null || skip "no ncdump"
  result_file
  run ncdump -h small.h5
  assert_status 0
  assert_output_has "group: hourly"
  assert_output_has "pool = 1 ;"
  assert_output_has "time:units = \"seconds since 2026-03-02"
  assert_output_has "ttft_p99:units = \"s\""
}

@test "xarray decodes the time axis" {
  result_file
  "$FLEETSIM_PYTHON" -c 'import xarray' 2>/dev/null || skip "no xarray"
  "$FLEETSIM_PYTHON" - <<'PY'
import numpy
import xarray
hourly = xarray.open_dataset("small.h5", group="hourly")
assert hourly.time.values[0] == numpy.datetime64("2026-03-02T12:00:00"), hourly.time.values[0]
assert hourly.time.values[1] - hourly.time.values[0] == numpy.timedelta64(60, "s")
assert hourly.sizes["time"] == 11 and list(hourly.pool.values) == ["main"]
assert hourly.ttft_p99.attrs["units"] == "s"
PY
}

@test "the scenario is in the file, as given and as resolved" {
  result_file --set fleet.pools[0].max_queue=12
  "$FLEETSIM_BIN" check small.yaml --resolved --set fleet.pools[0].max_queue=12 >resolved.yaml
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py
def text(file, name):
    value = file[name][()]
    return (value if isinstance(value, bytes) else value.item()).decode()
with h5py.File("small.h5") as file:
    assert text(file, "scenario/given").startswith(open("small.yaml").read())
    assert text(file, "scenario/resolved") == open("resolved.yaml").read()
PY
}

@test "the result file, the JSON and the hourly CSV tell the same" {
  result_file --hourly hourly.csv
  "$FLEETSIM_BIN" run small.yaml --quiet --no-output --json >out.json
  "$FLEETSIM_PYTHON" - <<'PY'
import csv, json
import h5py
o = json.load(open("out.json"))
rows = [r for r in csv.DictReader(open("hourly.csv")) if r["pool"] == "main"]
with h5py.File("small.h5") as file:
    summary, hourly = file["summary"], file["hourly"]
    assert summary["arrived"][0] == o["requests"]["arrived"]
    assert abs(summary["ttft_p99"][0] - o["latency"]["ttft_s"]["p99"]) < 1e-12
    assert summary["usd"][0] == o["cost"]["usd"]
    assert [int(r["completed"]) for r in rows] == list(hourly["completed"][:, 0])
    assert [float(r["gpu_hours_billed"]) for r in rows] == list(hourly["gpu_hours_billed"][:, 0])
PY
}

@test "progress on a terminal: one line, rewritten, gone at the end; not with --quiet" {
  script -qec true /dev/null </dev/null >/dev/null 2>&1 || skip "no pseudo-terminal can be had"
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  run script -qec "$FLEETSIM_BIN run small.yaml --no-output --json --set workload[0].arrivals.rate=400/s --set fleet.pools[0].autoscaler.max_replicas=400 --set horizon=1h" /dev/null </dev/null
  assert_output_has $'\r'
  assert_output_has "requests/s"
  run script -qec "$FLEETSIM_BIN run small.yaml --no-output --json --quiet" /dev/null </dev/null
  [[ $output != *"requests/s,"* ]]
}

@test "bold on a terminal, unless NO_COLOR is set" {
  script -qec true /dev/null </dev/null >/dev/null 2>&1 || skip "no pseudo-terminal can be had"
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  run env TERM=xterm script -qec "$FLEETSIM_BIN run small.yaml --no-output --quiet" /dev/null </dev/null
  assert_output_has $'\033[1m'
  run env TERM=xterm NO_COLOR=1 script -qec "$FLEETSIM_BIN run small.yaml --no-output --quiet" /dev/null </dev/null
  [[ $output != *$'\033'* ]]
}

@test "the rows per request give every count, latency, attainment, hour and dollar again" {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  pool='fleet.pools[0]'
  recomputed
  recomputed --set warmup=250s --set drain=false --set output.trace_interval=77s
  recomputed --set workload[0].slo.ttft=60ms --set workload[0].slo.tpot=21ms
  recomputed --set "$pool.max_queue=1" --set workload[0].arrivals.rate=30/s \
    --set "$pool.engine.max_num_seqs=4"
  recomputed --set "$pool.engine.num_gpu_blocks_override=150" \
    --set 'workload[0].output_tokens={dist: constant, value: 500}' \
    --set 'workload[0].prompt_tokens={dist: constant, value: 800}'
  recomputed --set 'workload[0].output_tokens={dist: constant, value: 0}'
  recomputed --set "$pool.price.billing_increment=60s" --set "$pool.price.billing_minimum=90s" \
    --set warmup=123s --set "$pool.autoscaler.scale_down_window=10s"
  # stamps on every edge
  recomputed --set 'workload[0].arrivals={process: constant, rate: 1/s}' \
    --set "$pool.step_time={model: constant, step: 1 s}" --set output.trace_interval=7s
}
