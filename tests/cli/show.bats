#!/usr/bin/env bats
# `fleetsim show`: what a result file holds, whole, cut short, of several replications; and what is
# no result file.
load helpers

small() {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" small.yaml
}

# run_small FILE OPTION…: a run of small.yaml into that file.
run_small() {
  local file=$1
  shift
  "$FLEETSIM_BIN" run small.yaml --quiet -o "$file" "$@"
}

refused() {
  local words=$1
  shift
  fs_run show "$@"
  assert_status 2
  assert_stderr_has "$words"
  [ -z "$output" ]
}

@test "the tables are those that run printed, but for how long it took" {
  small
  run_small a.h5 --set description='ten minutes' >run.txt
  fs_run show a.h5
  assert_status 0
  grep -v -e '^  speed ' -e '^written: ' run.txt >want.txt
  printf '%s\n' "$output" | sed '/^Intervals/,$d' | grep -v '^  made by ' >got.txt
  diff <(sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' want.txt) <(sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' got.txt)
  assert_output_has "small: ten minutes"
  assert_output_has "  made by       fleetsim 0."
  assert_output_has "audit: ok ("
  assert_output_has "none: there are too few intervals"
  assert_output_has "as if requests were independent"
}

@test "--json: run's own object without run, and intervals and what made it" {
  small
  run_small a.h5 --json >run.json
  fs_run show a.h5 --json
  assert_status 0
  printf '%s\n' "$output" >show.json
  "$FLEETSIM_PYTHON" - <<'PY'
import json
run, show = json.load(open("run.json")), json.load(open("show.json"))
run.pop("run")
made, within = show.pop("made"), show.pop("intervals")
assert run == show, [k for k in run if run[k] != show.get(k)]
assert made["complete"] is True and made["start"] == "2026-03-02T12:00:00Z"
assert made["horizon_s"] == 600 and made["warmup_s"] == 0 and made["replication"] == 0
for key, quantity, name in (("ttft_p99_s", "ttft_s", "p99"), ("ttft_p50_s", "ttft_s", "p50"),
                            ("tpot_p99_s", "tpot_s", "p99"), ("e2e_p99_s", "e2e_s", "p99")):
    i = within[key]
    assert i["method"] == "order" and i["mid"] == run["latency"][quantity][name]
    assert i["low"] < i["mid"] < i["high"]
assert within["in_flight"]["mid"] is None and "too few" in within["no_means_because"]
PY
}

@test "several pools and classes, and a trace's start" {
  printf 'arrival_s,prompt_tokens,output_tokens,class\n0,100,10,a\n1,101,10,b\n2,102,10,a\n' >a.csv
  cat >two.yaml <<'YAML'
name: two
start: 2026-07-01T03:00:00Z
warmup: 500 ms
workload:
  - {name: a, pools: [left], arrivals: {process: trace, file: a.csv, format: fleetsim}, slo: {ttft: 1 s, attainment: 50 %}}
  - {name: b, pools: [right], arrivals: {process: trace, file: a.csv, format: fleetsim}}
fleet:
  pools:
    - {name: left, step_time: {model: constant, step: 20 ms}, capacity: 5 /s, autoscaler: {policy: static, replicas: 1}}
    - {name: right, step_time: {model: constant, step: 20 ms}, capacity: 5 /s, autoscaler: {policy: static, replicas: 2}}
YAML
  "$FLEETSIM_BIN" run two.yaml --quiet >run.txt
  fs_run show two.h5
  assert_status 0
  grep -v -e '^  speed ' -e '^written: ' -e '^$' run.txt >want.txt
  printf '%s\n' "$output" | sed '/^Intervals/,$d' | grep -v -e '^  made by ' -e '^$' >got.txt
  diff want.txt got.txt
  assert_output_has "the first 0.5 s not counted"
}

@test "a run that was killed: its finished hours, and that it is not complete" {
  small
  run_small a.h5 >run.txt
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py, shutil
shutil.copy("a.h5", "a.h5.part")
with h5py.File("a.h5.part", "r+") as f:
    f["meta/complete"][()] = 0
    for group in ("summary", "classes", "audit", "latency"):
        del f[group]
    del f["meta/digest"]
PY
  fs_run show a.h5.part
  assert_status 0
  assert_output_has "NOT COMPLETE: the first 60"
  assert_output_has "12:05"
  [[ $output != *"Summary"* && $output != *"audit:"* ]]
  fs_run show a.h5.part --json
  assert_status 0
  printf '%s\n' "$output" >part.json
  [ "$(json part.json 'o["made"]["complete"], o["digest"], o["scenario"]')" = "(False, None, 'small')" ]
  rm a.h5
  refused "a.h5.part holds the finished hours of a run that has not ended" a.h5
}

@test "what kill -9 leaves behind is shown" {
  # Long enough that its hours are saved before it is killed.
  cat >long.yaml <<'YAML'
name: long
horizon: 90 d
workload:
  - name: a
    arrivals: {process: poisson, rate: 50 /s}
    prompt_tokens: {dist: lognormal, mean: 100, cv: 1, max: 8000}
    output_tokens: {dist: geometric, mean: 20}
fleet:
  pools:
    - {name: main, step_time: {model: constant, step: 20 ms}, capacity: 50 /s, autoscaler: {policy: static, replicas: 2}}
YAML
  "$FLEETSIM_BIN" run long.yaml --quiet >/dev/null 2>&1 3>&- &
  local run=$!
  for _ in $(seq 300); do
    [ ! -e long.h5.part ] || break
    sleep 0.1
  done
  kill -9 "$run"
  wait "$run" || true
  fs_run show long.h5.part
  assert_status 0
  assert_output_has "NOT COMPLETE: the first "
  assert_output_has "made by       fleetsim"
}

@test "replications: each headline gets its interval" {
  small
  for k in 0 1 2 3 4 5; do
    run_small "r$k.h5" --json --set replication=$k >"r$k.json"
  done
  fs_run show r0.h5 r1.h5 r2.h5 r3.h5 r4.h5 r5.h5
  assert_status 0
  assert_output_has "small: 6 replications"
  assert_output_has " ± "
  assert_output_has "audit: ok in all of them"
  fs_run show r0.h5 r1.h5 r2.h5 r3.h5 r4.h5 r5.h5 --json
  assert_status 0
  printf '%s\n' "$output" >show.json
  "$FLEETSIM_PYTHON" - <<'PY'
import json, statistics
show = json.load(open("show.json"))
runs = [json.load(open(f"r{k}.json")) for k in range(6)]
assert show["replications"] == 6 and show["audit_ok"] is True
assert show["digests"] == [r["digest"] for r in runs]
usd = [r["cost"]["usd"] for r in runs]
half = 2.5705818 * statistics.stdev(usd) / 6 ** .5  # t(0.975, 5)
i = show["intervals"]["usd"]
assert i["method"] == "student" and abs(i["mid"] - statistics.mean(usd)) < 1e-9
assert abs((i["high"] - i["low"]) / 2 - half) < 1e-6 * half
p99 = [r["latency"]["ttft_s"]["p99"] for r in runs]
i = show["intervals"]["ttft_p99_s"]
assert i["method"] == "order" and abs(i["mid"] - statistics.median(p99)) < 1e-12
assert (i["low"], i["high"]) == (min(p99), max(p99))
PY
  fs_run show r0.h5 r1.h5 --json # too few for order statistics, enough for Student
  printf '%s\n' "$output" >two.json
  [ "$(json two.json 'o["intervals"]["ttft_p99_s"]["low"], o["intervals"]["usd"]["low"] is None')" = "(None, False)" ]
}

@test "files that are no replications of each other are refused" {
  small
  run_small a.h5 >out.txt
  run_small b.h5 --set replication=1 --set horizon='5 min' >out.txt
  cp a.h5 again.h5
  refused "differ in more than seed and replication" a.h5 b.h5
  refused "a.h5 and again.h5 hold the same run" a.h5 again.h5
  refused "cannot open gone.h5" a.h5 gone.h5
}

@test "what is no result file is said in one line" {
  small
  run_small a.h5 >out.txt
  echo text >text.h5
  : >empty.h5
  head -c 20000 a.h5 >cut.h5
  mkdir folder
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py, shutil
with h5py.File("other.h5", "w") as f:
    f["x"] = 1
shutil.copy("a.h5", "later.h5")
with h5py.File("later.h5", "r+") as f:
    f["meta/schema_version"][()] = 99
shutil.copy("a.h5", "older.h5")
with h5py.File("older.h5", "r+") as f:
    del f["meta/horizon_ps"]
shutil.copy("a.h5", "torn.h5")
with h5py.File("torn.h5", "r+") as f:
    del f["fleet/ttft_p99"]
    f["fleet"]["ttft_p99"] = [1.0, 2.0]
shutil.copy("a.h5", "kind.h5")
with h5py.File("kind.h5", "r+") as f:
    del f["summary/arrived"]
    f["summary"]["arrived"] = [b"one", b"two"]
shutil.copy("a.h5", "headless.h5")
with h5py.File("headless.h5", "r+") as f:
    del f["hourly"]
PY
  refused "cannot open gone.h5: No such file" gone.h5
  refused "text.h5: it is no HDF5 file" text.h5
  refused "empty.h5: it is empty" empty.h5
  refused "cut.h5: it is cut short or damaged (truncated file" cut.h5
  refused "folder: it is a folder" folder
  refused "other.h5: fleetsim did not write it" other.h5
  refused "later.h5: its schema version is 99, this program reads 1" later.h5
  refused "older.h5: meta/horizon_ps is missing" older.h5
  refused "torn.h5: its group fleet is damaged" torn.h5
  refused "kind.h5: its group summary is damaged" kind.h5
  refused "headless.h5: its group hourly is missing" headless.h5
}

@test "a file with any byte changed is shown or refused, never worse" {
  small
  run_small a.h5 --set horizon='2 min' >out.txt
  "$FLEETSIM_PYTHON" - <<'PY'
import os, random, subprocess
whole = open("a.h5", "rb").read()
rng = random.Random(2)
for i in range(60):
    data = bytearray(whole)
    for _ in range(rng.choice((1, 4, 64))):
        data[rng.randrange(len(data) if i % 2 else 4096)] = rng.randrange(256)
    open("b.h5", "wb").write(data)
    done = subprocess.run([os.environ["FLEETSIM_BIN"], "show", "b.h5"], capture_output=True, timeout=20)
    assert done.returncode in (0, 1, 2), (i, done.returncode, done.stderr[-400:])
PY
}

@test "the start of a run under constant load is named, and changes nothing" {
  cat >c.yaml <<'YAML'
name: c
horizon: 30 min
workload:
  - name: a
    arrivals: {process: poisson, rate: 9 /s}
    prompt_tokens: {dist: lognormal, mean: 800, cv: 1, max: 8000}
    output_tokens: {dist: geometric, mean: 1200}
fleet:
  pools:
    - name: main
      engine: {max_num_seqs: 256, max_num_batched_tokens: 2048}
      step_time: {model: affine, base: 20 ms, per_token: 0.02 ms}
      capacity: 10 /s
      autoscaler: {policy: static, replicas: 2}
output: {trace_interval: 5 s}
YAML
  "$FLEETSIM_BIN" run c.yaml --quiet --json >out.json
  [ "$(json out.json 'o["transient"]["state"], o["transient"]["series"]')" = "('found', 'in_flight_mean')" ]
  [ "$(json out.json '30 <= o["transient"]["warmup_s"] <= 300')" = True ]
  fs_run show c.h5
  assert_output_has "requests in flight by interval look like a transient (MSER); \`warmup: "
  assert_output_has "none: the start is not left out (warmup)"
  # With it left out, over a run that is long enough, the means have intervals.
  "$FLEETSIM_BIN" run c.yaml --quiet --json -o long.h5 --set horizon='10 h' \
    --set output.trace_interval='1 min' --set warmup='10 min' >out.json
  [ "$(json out.json 'o["transient"]["state"]')" = none ]
  fs_run show long.h5
  assert_output_has "by batch means"
  # What is more than the fleet can take does not settle.
  "$FLEETSIM_BIN" run c.yaml --quiet --json --no-output --set drain=false \
    --set workload[0].arrivals.rate=40/s >out.json
  [ "$(json out.json 'o["transient"]["state"]')" = unsettled ]
}
