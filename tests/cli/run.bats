#!/usr/bin/env bats
# `fleetsim run` as a user meets it, on a scenario of a thousand requests.
load helpers

small() {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" small.yaml
}

# Runs small.yaml with --json and more options; the object is in out.json.
small_json() {
  "$FLEETSIM_BIN" run small.yaml --json --quiet "$@" >out.json
}

@test "prints table, summary, references, audit, and writes NAME.h5" {
  small
  fs_run run small.yaml
  assert_status 0
  assert_output_has "12:00"
  assert_output_has "12:09"
  assert_output_has "drain"
  assert_output_has "time to first token (TTFT)"
  assert_output_has "SLO           chat: TTFT ≤ 1 s, TPOT ≤ 50 ms held for"
  assert_output_has "the work itself at full utilisation"
  assert_output_has "need = ceil("
  assert_output_has "audit: ok ("
  assert_output_has "written: small.h5"
  [ -s small.h5 ]
  assert_absent small.h5.part
}

@test "the table fits 120 columns" {
  small
  fs_run run small.yaml --no-output
  assert_status 0
  longest=$(printf '%s\n' "$output" | sed -n '/UTC/,/^all/p' |
    "$FLEETSIM_PYTHON" -c 'import sys; print(max(len(l.decode().rstrip()) for l in sys.stdin.buffer))')
  [ "$longest" -le 120 ]
}

@test "p99 from fewer than 100 values is marked, and only that" {
  small
  fs_run run small.yaml --no-output
  assert_status 0
  assert_output_has "fewer than 100 values"
  fs_run run small.yaml --no-output --set output.trace_interval=10min --set drain=false
  assert_status 0
  [[ $output != *"fewer than 100 values"* ]]
}

@test "no colour and no progress where there is no terminal" {
  small
  fs_run run small.yaml --no-output
  [[ $output != *$'\033'* ]]
  [ -z "$stderr" ]
}

@test "--json prints exactly the keys of the contract, and nothing else" {
  small
  small_json --no-output
  [ "$(json out.json '" ".join(o)')" = \
    "scenario seed digest requests sessions tokens latency slo kv prefix routing gpu_hours cost cost_split classes pools scaling transient audit run" ]
  [ "$(json out.json '" ".join(o["requests"])')" = \
    "arrived completed refused unservable cancelled in_flight" ]
  [ "$(json out.json '" ".join(o["tokens"])')" = "prompt cached computed recomputed output" ]
  [ "$(json out.json '" ".join(o["latency"])')" = "ttft_s tpot_s itl_s e2e_s queue_s" ]
  for kind in ttft_s tpot_s itl_s e2e_s queue_s; do
    [ "$(json out.json "' '.join(o['latency']['$kind'])")" = "count mean p50 p90 p95 p99 max" ]
  done
  [ "$(json out.json '" ".join(o["slo"])')" = \
    "attained missed undecided attainment attainment_upper goodput_per_s" ]
  [ "$(json out.json '" ".join(o["kv"])')" = "peak_blocks preemptions" ]
  [ "$(json out.json '" ".join(o["gpu_hours"])')" = \
    "billed held starting ready draining idle floor ideal peak" ]
  [ "$(json out.json '" ".join(o["cost"])')" = \
    "usd usd_low usd_high usd_ideal usd_peak usd_per_mtok_total usd_per_mtok_input usd_per_mtok_output" ]
  [ "$(json out.json '" ".join(o["cost_split"])')" = \
    "work headroom cold_start drain rounding refused" ]
  [ "$(json out.json 'abs(o["cost"]["usd"] - sum(v for k, v in o["cost_split"].items() if k != "refused")) < 1e-9')" = True ]
  [ "$(json out.json '" ".join(o["scaling"])')" = "events forecast_error" ]
  [ "$(json out.json '" ".join(o["audit"])')" = "ok checks" ]
  [ "$(json out.json '" ".join(o["run"])')" = \
    "wall_s events spans iterations requests_per_s peak_rss_bytes measuring_s" ]
  [ "$(json out.json 'o["audit"]["ok"] and o["audit"]["checks"] >= 10')" = True ]
}

@test "the sums of the JSON hold" {
  small
  small_json --no-output
  [ "$(json out.json 'o["requests"]["arrived"] == sum(v for k, v in o["requests"].items() if k != "arrived")')" = True ]
  [ "$(json out.json 'o["requests"]["arrived"] > 1000')" = True ]
  [ "$(json out.json 'o["tokens"]["prompt"] == o["tokens"]["cached"] + o["tokens"]["computed"]')" = True ]
  [ "$(json out.json 'abs(o["gpu_hours"]["held"] - o["gpu_hours"]["starting"] - o["gpu_hours"]["ready"] - o["gpu_hours"]["draining"]) < 1e-9')" = True ]
  [ "$(json out.json 'abs(o["cost"]["usd"] - 3 * o["gpu_hours"]["billed"]) < 1e-9')" = True ]
  [ "$(json out.json 'o["cost"]["usd_low"] < o["cost"]["usd"] < o["cost"]["usd_high"]')" = True ]
}

@test "without a price every dollar is null, not 0" {
  small
  sed -i '/price:/d' small.yaml
  small_json --no-output
  [ "$(json out.json 'set(o["cost"].values())')" = "{None}" ]
  fs_run run small.yaml --no-output
  assert_output_has "undefined: no price is stated"
}

@test "two runs give the same bytes and the same object but for 'run'" {
  small
  small_json -o a.h5
  mv out.json first.json
  small_json -o b.h5
  assert_same_bytes a.h5 b.h5
  "$FLEETSIM_PYTHON" - <<'PY'
import json
a, b = (json.load(open(name)) for name in ("first.json", "out.json"))
a.pop("run"), b.pop("run")
assert a == b
PY
}

@test "one iteration per event gives the same digest and the same bytes" {
  small
  small_json -o fast.h5 --requests fast.csv
  fast=$(json out.json 'o["digest"]')
  small_json -o steps.h5 --requests steps.csv --step-by-step
  [ "$(json out.json 'o["digest"]')" = "$fast" ]
  [ "$(json out.json 'o["run"]["spans"] >= o["run"]["iterations"]')" = True ]
  assert_same_bytes fast.csv steps.csv
  assert_same_bytes fast.h5 steps.h5
}

@test "another seed gives other arrivals, --seed is --set seed" {
  small
  small_json --no-output
  digest=$(json out.json 'o["digest"]')
  small_json --no-output --seed 8
  [ "$(json out.json 'o["seed"]')" = 8 ]
  [ "$(json out.json 'o["digest"]')" != "$digest" ]
  other=$(json out.json 'o["digest"]')
  small_json --no-output --set seed=8
  [ "$(json out.json 'o["digest"]')" = "$other" ]
}

@test "the router changes no request's arrival and lengths" {
  small
  for policy in least_loaded round_robin random central_queue; do
    small_json --no-output --requests "$policy.csv" --set "fleet.router.policy=$policy"
    # id, class, session, turn, arrival_s, prompt_tokens, output_tokens
    cut -d, -f1-5,9,10 "$policy.csv" >"$policy.arrivals"
    assert_same_bytes least_loaded.arrivals "$policy.arrivals"
  done
  run ! cmp -s least_loaded.csv round_robin.csv
}

@test "--requests has one row per request, in order, with the stated columns" {
  small
  small_json --no-output --requests requests.csv
  [ "$(head -n 1 requests.csv)" = "id,class,session,turn,arrival_s,admitted_s,first_token_s,end_s,prompt_tokens,output_tokens,cached_tokens,recomputed_tokens,preemptions,pool,replica,outcome" ]
  [ "$(($(wc -l <requests.csv) - 1))" = "$(json out.json 'o["requests"]["arrived"]')" ]
  "$FLEETSIM_PYTHON" - <<'PY'
import csv, json
from decimal import Decimal
rows = list(csv.DictReader(open("requests.csv")))
assert [int(r["id"]) for r in rows] == list(range(len(rows)))
for r in rows:
    times = [Decimal(r[k]) for k in ("arrival_s", "admitted_s", "first_token_s", "end_s")]
    assert times == sorted(times), r
o = json.load(open("out.json"))
assert sum(int(r["prompt_tokens"]) for r in rows) == o["tokens"]["prompt"]
assert sum(int(r["output_tokens"]) for r in rows) == o["tokens"]["output"]
longest = max(Decimal(r["end_s"]) - Decimal(r["arrival_s"]) for r in rows)
assert abs(float(longest) - o["latency"]["e2e_s"]["max"]) < 1e-11
PY
}

@test "--hourly has a row of all and one per pool for every interval and the drain" {
  small
  small_json --no-output --hourly hourly.csv
  "$FLEETSIM_PYTHON" - <<'PY'
import csv, json
rows = list(csv.DictReader(open("hourly.csv")))
o = json.load(open("out.json"))
whole = [r for r in rows if r["pool"] == "all"]
assert len(whole) == 11 and len(rows) == 22, len(rows)
assert [r["is_drain"] for r in whole] == ["0"] * 10 + ["1"]
assert sum(int(r["arrived"]) for r in whole) == o["requests"]["arrived"]
assert sum(int(r["tokens_output"]) for r in whole) == o["tokens"]["output"]
assert abs(sum(float(r["gpu_hours_billed"]) for r in whole) - o["gpu_hours"]["billed"]) < 1e-9
PY
}

@test "when every request is refused the whole result is still printed" {
  small
  # A prompt of 500 tokens needs 32 blocks of 16.
  set -- --set fleet.pools[0].engine.num_gpu_blocks_override=8 \
    --set 'workload[0].prompt_tokens={dist: constant, value: 500}'
  fs_run run small.yaml --no-output "$@"
  assert_status 0
  assert_output_has "audit: ok"
  assert_output_has "0 completed + 0 refused"
  [[ $output != *nan* ]]
  small_json --no-output "$@"
  [ "$(json out.json 'o["requests"]["unservable"] == o["requests"]["arrived"] > 1000')" = True ]
  [ "$(json out.json 'o["latency"]["ttft_s"]')" = \
    "{'count': 0, 'mean': None, 'p50': None, 'p90': None, 'p95': None, 'p99': None, 'max': None}" ]
  [ "$(json out.json 'o["slo"]["attainment"]')" = 0 ]
  [ "$(json out.json 'o["cost"]["usd_per_mtok_total"]')" = None ]
}

@test "a full queue refuses, and the refused are on the first line" {
  small
  fs_run run small.yaml --no-output --set fleet.pools[0].max_queue=0 \
    --set fleet.pools[0].engine.max_num_seqs=1 --set workload[0].arrivals.rate=20/s
  assert_status 0
  [[ $output =~ requests\ +[0-9,]+\ arrived\ =\ [0-9,]+\ completed\ \+\ [1-9][0-9,]*\ refused ]]
}

@test "a run that is cut shows what was in flight" {
  small
  small_json --no-output --set drain=false
  [ "$(json out.json 'o["requests"]["in_flight"] > 0')" = True ]
  [ "$(json out.json 'o["slo"]["undecided"] == o["requests"]["in_flight"]')" = True ]
  [ "$(json out.json 'o["audit"]["ok"]')" = True ]
}

@test "an existing result is kept without --force" {
  small
  echo precious >small.h5
  fs_run run small.yaml
  assert_status 1
  assert_stderr_has "small.h5 exists already"
  [ -z "$output" ]
  [ "$(cat small.h5)" = precious ]
  fs_run run small.yaml --force
  assert_status 0
  [ "$(wc -c <small.h5)" -gt 1000 ]
}

@test "every output is judged before anything is simulated" {
  mkdir here
  cd here
  small
  echo precious >requests.csv
  fs_run run small.yaml -o no/such/folder.h5 --requests requests.csv --hourly x.csv --export-trace x.csv
  assert_status 1
  assert_stderr_has "cannot write no/such/folder.h5"
  assert_stderr_has "requests.csv exists already"
  assert_stderr_has "two outputs would go to x.csv"
  [ "$(ls)" = "requests.csv
small.yaml" ]
}

@test "the scenario is never overwritten" {
  small
  fs_run run small.yaml -o ./small.yaml --force
  assert_status 1
  assert_stderr_has "the run reads it"
  cmp small.yaml "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml"
}

@test "a scenario by the name of its folder, or by the folder" {
  mkdir -p scenarios/mine
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" scenarios/mine/scenario.yaml
  fs_run check mine
  assert_status 0
  fs_run check scenarios/mine
  assert_status 0
  fs_run check mien
  assert_status 2
  assert_stderr_has "mine"
}

@test "--set and extends change values, and the resolved scenario shows them" {
  small
  printf 'extends: small.yaml\nname: bigger\nfleet: {router: {policy: random}}\n' >bigger.yaml
  fs_run check bigger.yaml --resolved --set fleet.pools[0].max_queue=12
  assert_status 0
  assert_output_has "name: bigger"
  assert_output_has "policy: random"
  assert_output_has "max_queue: 12"
  assert_output_has "max_num_seqs: 32"
}

@test "a resolved scenario runs to the same digest" {
  small
  small_json --no-output
  digest=$(json out.json 'o["digest"]')
  "$FLEETSIM_BIN" check small.yaml --resolved >resolved.yaml
  mv resolved.yaml small.yaml
  small_json --no-output
  [ "$(json out.json 'o["digest"]')" = "$digest" ]
}

@test "a misspelt key in --set names the nearest" {
  small
  fs_run run small.yaml --set fleet.ruoter.policy=random
  assert_status 2
  assert_stderr_has "did you mean 'router'"
  assert_absent small.h5
}

@test "two pools: each has its line, and the hourly file its rows" {
  small
  "$FLEETSIM_PYTHON" - <<'PY'
text = open("small.yaml").read()
start, end = text.index("    - name: main"), text.index("output: {")
pool = text[start:end]
text = text[:end] + pool.replace("name: main", "name: spare") + text[end:]
open("small.yaml", "w").write(text)
PY
  fs_run run small.yaml --no-output --hourly hourly.csv
  assert_status 0
  assert_output_has "main: "
  assert_output_has "spare: "
  assert_output_has "audit: ok"
  [ "$(grep -c ',spare,' hourly.csv)" = 11 ]
}

@test "a write to a full device is a failure" {
  small
  [ -w /dev/full ] || skip "no /dev/full"
  run bash -c '"$FLEETSIM_BIN" run small.yaml --no-output --json >/dev/full'
  assert_status 1
}

@test "what a pool that ran nothing costs is no class's, with one class as with two" {
  cat >one.yaml <<'YAML'
name: one
horizon: 60 s
workload:
  - {name: a, arrivals: {process: constant, rate: 1}, prompt_tokens: 10, output_tokens: 2, pools: [p]}
fleet:
  pools:
    - {name: p, step_time: {model: constant, step: 50 ms}, autoscaler: {policy: static, replicas: 1}, price: {usd_per_gpu_hour: 2}}
    - {name: q, step_time: {model: constant, step: 50 ms}, autoscaler: {policy: static, replicas: 100}, price: {usd_per_gpu_hour: 2}}
YAML
  sed '/name: a,/{p;s/name: a,/name: b,/}' one.yaml >two.yaml
  for classes in one two; do
    "$FLEETSIM_BIN" run $classes.yaml --json --quiet --no-output >$classes.json
    [ "$(json $classes.json 'round(o["cost"]["usd"], 6)')" = 3.366667 ]
    [ "$(json $classes.json 'round(sum(c["usd"] for c in o["classes"]), 6)')" = 0.033333 ]
  done
}

@test "check says for how many requests a replica has KV" {
  small
  fs_run check small.yaml
  assert_status 0
  # 2,000 blocks of 16 tokens; a mean request has 800 + 120.
  assert_output_has "KV for 32,000 tokens per replica, 34.78 times the mean request"
  fs_run check small.yaml --set fleet.pools[0].engine.num_gpu_blocks_override=unlimited
  assert_status 0
  [[ "$output" != *"KV for"* ]]
}
