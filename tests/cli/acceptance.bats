#!/usr/bin/env bats
# Small cases with right answers, end to end: listed arrivals in, exact stamps out.
load helpers

# tiny REPLICAS STEP MAX_NUM_SEQS [HORIZON]: tiny.yaml replays t.csv on a static fleet.
tiny() {
  cat >tiny.yaml <<YAML
name: tiny
start: 2026-03-02T00:00:00Z
${4:+horizon: $4}
workload:
  - name: listed
    arrivals: {process: trace, file: t.csv}
fleet:
  router: {policy: least_loaded}
  pools:
    - name: main
      engine: {max_num_seqs: $3, max_num_batched_tokens: 100000}
      step_time: {model: constant, step: $2}
      autoscaler: {policy: static, replicas: $1}
YAML
}

tiny_run() {
  "$FLEETSIM_BIN" run tiny.yaml --quiet --json --no-output --requests r.csv --hourly h.csv >out.json
  [ "$(json out.json 'o["audit"]["ok"]')" = True ]
}

# column NAME FILE: its values on one line.
column() {
  "$FLEETSIM_PYTHON" -c 'import csv, sys
print(*(r[sys.argv[1]] for r in csv.DictReader(open(sys.argv[2]))))' "$1" "$2"
}

HEAD=arrival_s,prompt_tokens,output_tokens

@test "T01: a replica never idles with work queued" {
  printf '%s\n' $HEAD 0,1,5 0.010,1,5 10.000,1,5 >t.csv
  tiny 1 '10 ms' 1
  tiny_run
  [ "$(column first_token_s r.csv)" = "0.01 0.06 10.01" ]
  [ "$(column end_s r.csv)" = "0.05 0.1 10.05" ]
  [ "$(json out.json 'o["latency"]["ttft_s"]["max"]')" = 0.05 ]
}

@test "T07: eight requests at one instant on four idle replicas: two each" {
  { echo $HEAD; for _ in 1 2 3 4 5 6 7 8; do echo 0,100,3; done; } >t.csv
  tiny 4 '10 ms' 16
  tiny_run
  [ "$(column replica r.csv | tr ' ' '\n' | sort | uniq -c | awk '{print $1}' | paste -sd ' ')" = "2 2 2 2" ]
}

@test "T07: a hundred prompts of one second, 1 ms apart: 25 per replica" {
  { echo $HEAD; for i in $(seq 0 99); do printf '0.%03d,100,1\n' "$i"; done; } >t.csv
  tiny 4 '1 s' 1
  tiny_run
  [ "$(column replica r.csv | tr ' ' '\n' | sort | uniq -c | awk '{print $1}' | paste -sd ' ')" = "25 25 25 25" ]
}

@test "T08: a thousand arrivals at 0, one server: request k ends at (k+1)/1000" {
  { echo $HEAD; for _ in $(seq 1000); do echo 0,1,1; done; } >t.csv
  tiny 1 '1 ms' 1
  tiny_run
  "$FLEETSIM_PYTHON" - <<'PY'
import csv
from decimal import Decimal
for k, row in enumerate(csv.DictReader(open("r.csv"))):
    assert Decimal(row["end_s"]) == Decimal(k + 1) / 1000, row
PY
}

@test "T08: runs 0 to 4 of seeds 1 and 2 are ten different arrival lists" {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  for seed in 1 2; do
    for replication in 0 1 2 3 4; do
      "$FLEETSIM_BIN" check small.yaml --seed $seed --set replication=$replication \
        --export-trace "a-$seed-$replication.csv" >/dev/null
    done
  done
  [ "$(cksum a-*.csv | awk '{print $1}' | sort -u | wc -l)" = 10 ]
}

@test "T09: an hour is decided by the stamp: 3600 is hour 1, and busy time is split at the edge" {
  printf '%s\n' $HEAD 3599.9,1,2 3600.000000,1,1 >t.csv
  tiny 2 '0.1 s' 1 '2 h'
  tiny_run
  grep ',all,' h.csv >all.csv
  { head -n 1 h.csv; cat all.csv; } >whole.csv
  [ "$(column arrived whole.csv)" = "1 1 0" ]
  [ "$(column completed whole.csv)" = "0 2 0" ]
  # The first runs from 3599.9 to 3600.1, the second from 3600 to 3600.1.
  [ "$(column gpu_hours_serving whole.csv | "$FLEETSIM_PYTHON" -c '
print(*(round(float(x) * 3600, 9) for x in input().split()))')" = "0.1 0.2 0.0" ]
}

@test "T11: first token, per-token time, and what a request does not have" {
  printf '%s\n' $HEAD 0,1,4 10,1,1 20,1,0 >t.csv
  tiny 1 '0.5 s' 1
  tiny_run
  [ "$(column first_token_s r.csv)" = "0.5 10.5 " ]
  [ "$(json out.json 'o["latency"]["ttft_s"]["count"], o["latency"]["tpot_s"]["count"], o["latency"]["itl_s"]["count"]')" = "(2, 1, 3)" ]
  [ "$(json out.json 'o["latency"]["tpot_s"]["max"], o["latency"]["itl_s"]["mean"], o["latency"]["e2e_s"]["max"]')" = "(0.5, 0.5, 2)" ]
  [ "$(json out.json 'o["requests"]["completed"]')" = 3 ]
  fs_run run tiny.yaml --no-output
  assert_output_has "1 of them without any output"
}

@test "T12: percentiles are nearest-rank" {
  # Ten requests of 1 to 10 outputs, one at a time: they last 1 to 10 s.
  { echo $HEAD; for i in $(seq 1 10); do echo "$((i * 100)),1,$i"; done; } >t.csv
  tiny 1 '1 s' 1
  tiny_run
  # Linear interpolation would give 5.5, 9.1 and 9.91; the histogram may be off by 1/256.
  [ "$(json out.json '[abs(o["latency"]["e2e_s"][k] / v - 1) <= 1 / 256 for k, v in (("p50", 5), ("p90", 9), ("p99", 10))]')" = \
    "[True, True, True]" ]
  [ "$(json out.json 'o["latency"]["e2e_s"]["max"]')" = 10 ]
  fs_run run tiny.yaml --no-output
  assert_output_has "fewer than 100 values"
}

@test "T20: what a killed run leaves opens, and the next run is whole" {
  day=$FLEETSIM_SOURCE_DIR/scenarios/chat-1m
  users=3e5
  ! grep -q __asan_init "$FLEETSIM_BIN" || users=3e4
  "$FLEETSIM_BIN" run "$day" -o day.h5 --quiet --step-by-step \
    --set workload[0].arrivals.users.daily=$users >/dev/null 3>&- &
  pid=$!
  for _ in $(seq 600); do
    [ ! -e day.h5.part ] || break
    kill -0 $pid 2>/dev/null || break
    sleep 0.05
  done
  kill -9 $pid 2>/dev/null || skip "the run was over before it saved anything"
  wait $pid || true
  [ -e day.h5.part ] || skip "the run was over before it saved anything"
  assert_absent day.h5
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py
with h5py.File("day.h5.part") as file:
    hours = file["hourly/arrived"].shape[0]
    assert 1 <= hours <= 24 and int(file["meta/complete"][()]) == 0, hours
PY
  "$FLEETSIM_BIN" run "$day" -o day.h5 --quiet --set workload[0].arrivals.users.daily=1e3 >/dev/null
  assert_absent day.h5.part
  [ "$("$FLEETSIM_PYTHON" -c 'import h5py; print(int(h5py.File("day.h5")["meta/complete"][()]))')" = 1 ]
}
