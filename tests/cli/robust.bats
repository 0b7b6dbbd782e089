#!/usr/bin/env bats
# What a run must never do to the files around it, and what it says when it cannot go on.
load helpers

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
}

# refused_output REASON OPTION…: exit code 1 before anything is simulated, with the reason.
refused_output() {
  local reason=$1
  shift
  fs_run run small.yaml --quiet --force "$@"
  assert_status 1
  assert_stderr_has "$reason"
  [ -z "$output" ] || { show_run; return 1; }
}

@test "a pipe or device is written into, never replaced by a file" {
  for option in --requests --hourly --export-trace; do
    mkfifo pipe
    cat pipe >got &
    fs_run run small.yaml --quiet --no-output "$option" pipe
    wait
    assert_status 0
    [ -p pipe ]
    fs_run run small.yaml --quiet --no-output "$option" file
    assert_status 0
    assert_same_bytes got file
    rm pipe file
  done
  mkfifo pipe
  refused_output "a device or a pipe, not a file" -o pipe
  [ -p pipe ]
}

@test "check writes a trace into a pipe too" {
  mkfifo pipe
  cat pipe >got &
  fs_run check small.yaml --export-trace pipe
  wait
  assert_status 0
  [ -p pipe ]
  [ "$(head -c 9 got)" = arrival_s ]
}

@test "a full device is an error, whatever is written there" {
  [ -c /dev/full ] || skip "no /dev/full"
  # The machine's own device is only risked when a pipe is known to survive.
  mkfifo pipe
  for option in --requests --hourly --export-trace; do
    cat pipe >got &
    "$FLEETSIM_BIN" run small.yaml --quiet --force --no-output "$option" pipe >out
    [ -p pipe ]
    wait
  done
  refused_output "cannot be written: No space left on device" --no-output --export-trace /dev/full ||
    refused_output "could not be written in full" --no-output --export-trace /dev/full
  [ -c /dev/full ]
  fs_run run small.yaml --quiet --no-output --requests /dev/full
  assert_status 1
  assert_stderr_has "cannot write /dev/full: No space left on device"
  [ -c /dev/full ]
  fs_run run small.yaml --quiet --no-output --hourly /dev/full
  assert_status 1
  assert_stderr_has "No space left on device"
  [ -c /dev/full ]
}

@test "a link is followed: what it points to is replaced, the link stays" {
  mkdir elsewhere
  for option in -o --requests --hourly --export-trace; do
    echo old >elsewhere/file
    ln -sf elsewhere/file link
    refused_without_force=$("$FLEETSIM_BIN" run small.yaml --quiet --no-output --requests link 2>&1) && return 1
    [[ $refused_without_force == *"exists already"* ]]
    fs_run run small.yaml --quiet --force "$option" link
    assert_status 0
    [ -L link ]
    [ "$(wc -c <elsewhere/file)" -gt 100 ]
  done
  rm -r elsewhere/file
  refused_output "No such file or directory" -o link
  [ -L link ]
}

@test "what the run reads is not overwritten, whatever name it goes by" {
  echo 'extends: small.yaml' >more.yaml
  "$FLEETSIM_BIN" check small.yaml --export-trace trace.csv >/dev/null
  mkdir folder
  cp small.yaml folder/scenario.yaml
  ln small.yaml hard.yaml
  ln -s small.yaml soft.yaml
  cp small.yaml keep.yaml
  cp trace.csv keep.csv
  for option in -o --requests --hourly --export-trace; do
    for name in small.yaml ./small.yaml "$PWD/small.yaml" hard.yaml soft.yaml; do
      refused_output "the run reads it" "$option" "$name"
    done
    refused_output "the run reads it" "$option" trace.csv \
      --set 'workload[0].arrivals={process: trace, file: ./trace.csv}'
    fs_run run more.yaml --quiet --force "$option" small.yaml
    assert_status 1
    assert_stderr_has "the run reads it"
    fs_run run folder --quiet --force "$option" folder/scenario.yaml
    assert_status 1
    assert_stderr_has "the run reads it"
  done
  assert_same_bytes small.yaml keep.yaml
  assert_same_bytes trace.csv keep.csv
}

@test "two outputs are never one file, under any names" {
  for other in out ./out "$PWD/out"; do
    refused_output "two outputs would go to" -o out --requests "$other"
    refused_output "two outputs would go to" --no-output --hourly out --requests "$other"
  done
  assert_absent out
}

@test "a name that cannot be written is refused before the run, not after it" {
  long=$(printf 'x%.0s' {1..250})
  refused_output "File name too long" -o "$long"
  refused_output "File name too long" -o "$long$long"
  refused_output "File name too long" --no-output --requests "$long"
  refused_output "the name of a file to write is empty" -o ''
  refused_output "the name of a file to write is empty" --no-output --hourly ''
  refused_output "Not a directory" -o small.yaml/x
  refused_output "it is a folder" -o .
  fs_run run small.yaml --quiet --set "name=$long"
  assert_status 1
  assert_stderr_has "File name too long"
}

@test "warmup and intervals are judged by a trace's horizon too" {
  printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n300000.5,10,5\n' >trace.csv
  trace=(--set "workload[0].arrivals={process: trace, file: trace.csv}")
  sed -i '/^horizon/d' small.yaml
  for command in run check; do
    fs_run "$command" small.yaml "${trace[@]}" --set warmup=300001s
    assert_status 2
    assert_stderr_has "warmup must be shorter than the horizon, which is 300000.500000000001 s"
    fs_run "$command" small.yaml "${trace[@]}" --set output.trace_interval=1s
    assert_status 2
    assert_stderr_has "more than 200000 intervals up to the horizon, 300000.500000000001 s"
  done
  fs_run run small.yaml "${trace[@]}" --no-output --set warmup=300000.5s
  assert_status 0
}

@test "a layout of more GPUs than there can be is refused, however it is made up" {
  pool='fleet.pools[0].parallel'
  fs_run check small.yaml --set "$pool.tensor=65536"
  assert_status 0
  for other in tensor pipeline attention_data; do
    fs_run check small.yaml --set "$pool={tensor: 2, pipeline: 2, attention_data: 2}" \
      --set "$pool.$other=65536"
    assert_status 2
    assert_stderr_has "makes 262144 GPUs of one replica, more than 65536"
  done
  fs_run check small.yaml --set "$pool={tensor: 65536, pipeline: 65536, attention_data: 65536}"
  assert_status 2
  assert_stderr_has "GPUs of one replica"
}

# A limit on the size of files stands for a disk that fills up while the run goes on.
limited() {
  local kilobytes=$1
  shift
  status=0
  (trap '' XFSZ && ulimit -f "$kilobytes" && "$FLEETSIM_BIN" run small.yaml --quiet "$@") \
    >out.txt 2>err.txt || status=$?
  # shellcheck disable=SC2034  # the assertions read it
  output=$(<out.txt) stderr=$(<err.txt)
}

@test "request rows that no longer fit cost the rows, never the result" {
  limited 1000 --set horizon='200 min' --requests rows.csv -o a.h5
  assert_status 1
  assert_stderr_has "cannot write rows.csv: File too large"
  assert_output_has "written: a.h5"
  assert_absent rows.csv
  "$FLEETSIM_BIN" run small.yaml --quiet --set horizon='200 min' -o whole.h5 >out.txt
  assert_same_bytes a.h5 whole.h5
  [ "$(find . -name '*.tmp-*' | wc -l)" -eq 0 ]

  limited 400 --set horizon='200 min' --set output.trace_interval='20 min' --set output.requests=true -o b.h5
  assert_status 1
  assert_stderr_has "cannot write b.h5: File too large"
  assert_stderr_has "b.h5 holds all but the rows"
  "$FLEETSIM_PYTHON" -c 'import h5py; f = h5py.File("b.h5"); assert "requests" not in f and f["meta/complete"][()] == 1'
  [ "$(find . -name '*.tmp-*' | wc -l)" -eq 0 ]
}

@test "an existing file of rows survives a run that cannot write its own" {
  echo old >rows.csv
  limited 1000 --set horizon='200 min' --requests rows.csv --force --no-output
  assert_status 1
  [ "$(cat rows.csv)" = old ]
}

@test "what a killed run left beside its name goes an hour later, and only that" {
  sh -c 'exit 0' &
  dead=$!
  wait "$dead"
  mkdir results
  touch -d '2 hours ago' "results/a.h5.tmp-$dead" "results/a.h5.part.tmp-$dead" "results/a.h5.tmp-$$" \
    "results/b.h5.tmp-$dead" "results/a.h5.tmp-x"
  touch "results/a.h5.part.tmp-${dead}1"
  fs_run run small.yaml --quiet -o results/a.h5
  assert_status 0
  assert_stderr_has "removed results/a.h5.tmp-$dead, left by a run that was killed"
  assert_absent "results/a.h5.tmp-$dead"
  assert_absent "results/a.h5.part.tmp-$dead"
  [ -e "results/a.h5.tmp-$$" ] && [ -e "results/b.h5.tmp-$dead" ] && [ -e results/a.h5.tmp-x ]
  [ -e "results/a.h5.part.tmp-${dead}1" ]
}
