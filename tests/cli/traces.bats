#!/usr/bin/env bats
# Recorded arrivals: the public traces where they are at hand, export and replay everywhere.
load helpers

azure() {
  need_shared "data/azure_llm_2023/$1"
  "$FLEETSIM_BIN" run "$FLEETSIM_SOURCE_DIR/scenarios/azure-conv/scenario.yaml" --json --quiet \
    --no-output --set "workload[0].arrivals.file=$FLEETSIM_SHARED/data/azure_llm_2023/$1" >out.json
}

@test "the conversation trace: every row, every token" {
  azure AzureLLMInferenceTrace_conv.csv.gz
  [ "$(json out.json 'o["requests"]["arrived"], o["requests"]["completed"]')" = "(19366, 19366)" ]
  [ "$(json out.json 'o["tokens"]["prompt"], o["tokens"]["output"]')" = "(22361870, 4088665)" ]
  [ "$(json out.json 'o["audit"]["ok"]')" = True ]
}

@test "the code trace: every row, every token" {
  azure AzureLLMInferenceTrace_code.csv.gz
  [ "$(json out.json 'o["requests"]["arrived"], o["requests"]["completed"]')" = "(8819, 8819)" ]
  [ "$(json out.json 'o["tokens"]["prompt"], o["tokens"]["output"]')" = "(18059974, 245896)" ]
  [ "$(json out.json 'o["audit"]["ok"]')" = True ]
}

# replayed TRACE: a scenario that replays it on the fleet of small.yaml.
replay_of() {
  "$FLEETSIM_PYTHON" - "$1" <<'PY'
import re, sys
text = open("small.yaml").read()
text = re.sub(r"arrivals: \{.*\}", "arrivals: {process: trace, file: %s}" % sys.argv[1], text)
text = re.sub(r"    (prompt|output)_tokens:.*\n", "", text)
open("replay.yaml", "w").write(text)
PY
}

@test "export, then replay: the identical requests" {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  for trace in arrivals.csv arrivals.csv.gz; do
    "$FLEETSIM_BIN" run small.yaml --quiet --json --no-output --requests a.csv --force \
      --export-trace "$trace" >a.json
    replay_of "$trace"
    "$FLEETSIM_BIN" run replay.yaml --quiet --json --no-output --requests b.csv --force >b.json
    assert_same_bytes a.csv b.csv
    [ "$(json a.json 'o["digest"]')" = "$(json b.json 'o["digest"]')" ]
  done
  [ "$(zcat arrivals.csv.gz | cksum)" = "$(cksum <arrivals.csv)" ]
}

@test "check exports the same trace without simulating" {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  "$FLEETSIM_BIN" run small.yaml --quiet --json --no-output --export-trace a.csv >/dev/null
  fs_run check small.yaml --export-trace b.csv
  assert_status 0
  assert_same_bytes a.csv b.csv
  fs_run check small.yaml --export-trace b.csv
  assert_status 1
  assert_stderr_has "b.csv exists already"
}

@test "horizon and start come from the trace" {
  printf 'arrival_s,prompt_tokens,output_tokens\n1700000000.000,10,2\n1700000000.500,10,2\n1700000001.000,10,2\n' >t.csv
  cp "$FLEETSIM_SOURCE_DIR/tests/bad/traces/replay.yaml" .
  fs_run check replay.yaml --set workload[0].arrivals.file=t.csv
  assert_status 0
  assert_output_has "from 2023-11-14T22:13:20Z for"
  assert_output_has "3 requests expected"
  "$FLEETSIM_BIN" run replay.yaml --set workload[0].arrivals.file=t.csv --quiet --json --no-output \
    --requests r.csv >/dev/null
  [ "$(cut -d, -f5 r.csv | paste -sd ' ')" = "arrival_s 0 0.5 1" ]
}

@test "one trace under two spellings is one trace: each class takes its own rows" {
  printf 'arrival_s,prompt_tokens,output_tokens,class\n0,100,10,a\n1,101,10,b\n2,102,10,a\n' >a.csv
  cat >two.yaml <<'YAML'
name: two
workload:
  - {name: a, arrivals: {process: trace, file: a.csv, format: fleetsim}}
  - {name: b, arrivals: {process: trace, file: ./a.csv, format: fleetsim}}
fleet:
  pools:
    - name: main
      step_time: {model: constant, step: 20 ms}
      capacity: 5 /s
      autoscaler: {policy: static, replicas: 1}
YAML
  fs_run compare two.yaml --quiet --variant x: --variant y:workload[1].arrivals.file=a.csv
  assert_status 0
  assert_output_has "arrivals: identical in all 2: 3 requests"
}

@test "what is not played of a trace, and where it was moved to, is said" {
  cat >moved.yaml <<'YAML'
name: moved
start: 2026-03-02T00:00:00Z
horizon: 1 h
workload:
  - name: batch
    arrivals: {process: trace, file: batch.csv}
fleet:
  pools:
    - name: main
      step_time: {model: constant, step: 20 ms}
      autoscaler: {policy: static, replicas: 2}
YAML
  # From 01:00 on, one a minute.
  { echo arrival_s,prompt_tokens,output_tokens
    for i in $(seq 0 99); do echo "$((1772413200 + 60 * i)),100,10"; done; } >batch.csv
  fs_run check moved.yaml
  assert_status 0
  assert_output_has "class batch: trace arrivals, 60 requests expected"
  assert_output_has "its first row, stamped 2026-03-02T01:00:00Z, is played at the start, 2026-03-02T00:00:00Z"
  assert_output_has "40 requests of traces come at or after the horizon: not played"
  fs_run run moved.yaml --quiet
  assert_output_has "40 requests come at or after the horizon: not played"
  fs_run show moved.h5
  assert_output_has "40 requests come at or after the horizon: not played"
  # Nothing is said where nothing is moved or left out.
  fs_run check moved.yaml --set start=2026-03-02T01:00:00Z --set horizon='100 min'
  assert_status 0
  assert_output_has "100 requests expected"
  [[ "$output" != *"first row"* && "$output" != *"not played"* ]]
}
