#!/usr/bin/env bats
# Input that must be refused: every tests/bad/scenarios/NAME.yaml and tests/bad/traces/NAME.csv, with
# the messages in NAME.err beside it. FLEETSIM_UPDATE=1 writes those anew; read the difference.
load helpers

BAD=$FLEETSIM_SOURCE_DIR/tests/bad

# refused NAME.err COMMAND…: exit code 2, these messages, each with line, text and caret, no output.
refused() {
  local golden=$1
  shift
  fs_run "$@"
  assert_status 2
  [ -z "$output" ] || { show_run; return 1; }
  # shellcheck disable=SC2154
  printf '%s\n' "$stderr" >../messages
  if [ "${FLEETSIM_UPDATE:-}" = 1 ]; then
    cp ../messages "$golden"
  fi
  diff "$golden" ../messages >&2 || return 1
  [ "$(grep -c ' error: ' ../messages)" = "$(grep -cE '^ *\| *\^$' ../messages)" ]
  grep -qE '^[^ ].*:[0-9]+:[0-9]+: error: ' ../messages
}

@test "ten wrong scenarios and more" {
  mkdir here
  cd here
  cp "$BAD"/scenarios/*.yaml .
  before=$(ls)
  count=0
  for scenario in *.yaml; do
    echo "$scenario" >&2
    refused "$BAD/scenarios/${scenario%.yaml}.err" run "$scenario"
    [ "$(ls)" = "$before" ]
    count=$((count + 1))
  done
  [ "$count" -ge 10 ]
}

@test "check says the same as run" {
  mkdir here
  cd here
  cp "$BAD"/scenarios/*.yaml .
  for scenario in *.yaml; do
    FLEETSIM_UPDATE=0 refused "$BAD/scenarios/${scenario%.yaml}.err" check "$scenario"
  done
}

@test "five wrong traces and more" {
  mkdir here
  cd here
  cp "$BAD"/traces/*.csv "$BAD"/traces/*.jsonl "$BAD"/traces/replay.yaml .
  before=$(ls)
  count=0
  for trace in *.csv *.jsonl; do
    echo "$trace" >&2
    refused "$BAD/traces/${trace%.*}.err" run replay.yaml --set "workload[0].arrivals.file=$trace"
    [ "$(ls)" = "$before" ]
    count=$((count + 1))
  done
  [ "$count" -ge 5 ]
}

@test "a wrong trace reads the same when it is gzip" {
  cp "$BAD"/traces/word.csv "$BAD"/traces/replay.yaml .
  gzip -n word.csv
  fs_run run replay.yaml --set workload[0].arrivals.file=word.csv.gz
  assert_status 2
  assert_stderr_has "word.csv.gz:3:5: error:"
}

@test "on_bad_row: skip leaves bad rows out and says how many" {
  cp "$BAD"/traces/all_five.csv "$BAD"/traces/replay.yaml .
  set -- --set workload[0].arrivals.file=all_five.csv --set workload[0].arrivals.on_bad_row=skip
  fs_run run replay.yaml --no-output "$@"
  assert_status 0
  assert_output_has "5 bad rows were left out"
  assert_output_has "3 arrived = 3 completed"
}

@test "on_bad_row: skip, for JSON lines with hash_ids too" {
  cp "$BAD"/traces/mooncake.jsonl "$BAD"/traces/mixed_clocks.csv "$BAD"/traces/replay.yaml .
  fs_run run replay.yaml --no-output --set workload[0].arrivals.on_bad_row=skip \
    --set workload[0].arrivals.file=mooncake.jsonl
  assert_status 0
  assert_output_has "10 bad rows were left out"
  assert_output_has "1 arrived = 1 completed"
  fs_run run replay.yaml --no-output --set workload[0].arrivals.on_bad_row=skip \
    --set workload[0].arrivals.file=mixed_clocks.csv
  assert_status 0
  assert_output_has "1 bad rows were left out"
}

@test "a key of the nearest name is offered" {
  grep -q "did you mean 'router'" "$BAD/scenarios/unknown_key.err"
  grep -q "did you mean 'least_loaded'" "$BAD/scenarios/unknown_policy.err"
}

@test "a trace file that is required is asked for" {
  fs_run run "$FLEETSIM_SOURCE_DIR/scenarios/azure-conv/scenario.yaml"
  assert_status 2
  assert_stderr_has "missing key 'file'"
}

@test "a trace that does not exist" {
  cp "$BAD"/traces/replay.yaml .
  fs_run run replay.yaml --set workload[0].arrivals.file=nowhere.csv
  assert_status 2
  assert_stderr_has "nowhere.csv"
  assert_absent bad.h5
}
