#!/usr/bin/env bats
# Help, usage and the generated pages.
load helpers

@test "help lists every command" {
  fs_run --help
  assert_status 0
  for command in run compare check explain help; do
    assert_output_has "  $command "
  done
  assert_output_has "Exit codes"
}

@test "each command has its help, with options and an example, three ways" {
  for command in $("$FLEETSIM_BIN" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' | grep -vx help); do
    fs_run help "$command"
    assert_status 0
    assert_output_has "usage: fleetsim $command"
    assert_output_has "--help"
    assert_output_has "example
  fleetsim $command"
    text=$output
    fs_run "$command" --help
    assert_status 0
    [ "$output" = "$text" ]
    fs_run "$command" -h
    [ "$output" = "$text" ]
  done
}

@test "every option of run is in its help and in the guide" {
  fs_run help run
  for option in --output --force --no-output --set --seed --json --quiet --requests --hourly \
    --export-trace --step-by-step; do
    assert_output_has "$option"
    grep -q -- "$option" "$FLEETSIM_SOURCE_DIR/docs/guide.md" || { echo "guide lacks $option"; false; }
  done
}

@test "--version" {
  fs_run --version
  assert_status 0
  [[ $output == "fleetsim "* ]]
}

@test "no command, an unknown one, a misspelt one" {
  fs_run
  assert_status 64
  assert_stderr_has "usage: fleetsim COMMAND"
  fs_run dance
  assert_status 64
  assert_stderr_has "unknown command 'dance'"
  fs_run comprae
  assert_status 64
  assert_stderr_has "did you mean 'compare'?"
  fs_run help rnu
  assert_status 64
  assert_stderr_has "did you mean 'run'?"
}

@test "misspelt options, missing values, missing and surplus operands" {
  fs_run run x.yaml --focre --hourli=a
  assert_status 64
  assert_stderr_has "unknown option '--focre', did you mean '--force'?"
  assert_stderr_has "unknown option '--hourli', did you mean '--hourly'?"
  fs_run run x.yaml --set
  assert_status 64
  assert_stderr_has "option '--set' needs a value: KEY=VALUE"
  fs_run run x.yaml --force=yes
  assert_status 64
  assert_stderr_has "takes no value"
  fs_run run x.yaml -o a.h5 -o b.h5
  assert_status 64
  assert_stderr_has "given twice"
  fs_run run x.yaml -x
  assert_status 64
  assert_stderr_has "unknown option '-x'"
  fs_run run
  assert_status 64
  assert_stderr_has "SCENARIO is missing"
  fs_run run a b
  assert_status 64
  assert_stderr_has "one argument too many: 'b'"
  fs_run run a --output=x.h5 --no-output
  assert_status 64
  assert_stderr_has "contradict"
}

@test "a value beside its letter, and -- before an operand" {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" ./-s.yaml
  fs_run run -oout.h5 --quiet -- -s.yaml
  assert_status 0
  [ -s out.h5 ]
}

@test "a scenario that does not exist" {
  mkdir empty
  cd empty
  fs_run run nowhere.yaml
  assert_status 2
  assert_stderr_has "nowhere.yaml"
  [ -z "$(ls -A)" ]
}

@test "explain finds keys, ends of keys, choices, and the nearest of a slip" {
  fs_run explain block_size
  assert_status 0
  assert_output_has "fleet.pools"
  fs_run explain least_loaded
  assert_status 0
  fs_run explain Headroom
  assert_status 0
  assert_output_has "the price of being there before the requests are"
  fs_run explain blok_size
  assert_status 2
  assert_output_has "did you mean 'block_size'?"
  fs_run explain
  assert_status 64
}

@test "explain knows the columns of the results, with unit and population" {
  fs_run explain ttft_p99
  assert_status 0
  assert_output_has "hourly, fleet, summary, classes"
  assert_output_has "unit     s"
  assert_output_has "over     Times to first token"
  fs_run explain summary.usd
  assert_status 0
  assert_output_has "the sum of the intervals'"
  [ "$("$FLEETSIM_BIN" explain summary/usd)" = "$output" ]
  fs_run explain ttft_p9
  assert_status 2
  assert_output_has "'ttft_p90'"
  fs_run explain capacity    # a key of a scenario stays one
  assert_status 0
  assert_output_has "fleet.pools.capacity"
}

# FLEETSIM_UPDATE=1 writes the pages anew.
page_is_current() {
  local page=$FLEETSIM_SOURCE_DIR/docs/$1
  "$FLEETSIM_BIN" explain "$2" >new.md
  if [ "${FLEETSIM_UPDATE:-}" = 1 ]; then
    cp new.md "$page"
  fi
  diff "$page" new.md >&2 || { echo "docs/$1 is old: fleetsim explain $2 >docs/$1" >&2; return 1; }
}

@test "docs/scenario.md is what explain --reference prints" {
  page_is_current scenario.md --reference
}

@test "docs/output.md is what explain --outputs prints" {
  page_is_current output.md --outputs
}

@test "docs/glossary.md is what explain --glossary prints" {
  page_is_current glossary.md --glossary
}

@test "docs/output.md knows every group, column and JSON key of a real run" {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  "$FLEETSIM_BIN" run small.yaml --quiet --json --set output.requests=true >out.json
  "$FLEETSIM_PYTHON" - "$FLEETSIM_SOURCE_DIR/docs/output.md" <<'PY'
import json, sys
import h5py
page = open(sys.argv[1]).read()
missing = []
with h5py.File("small.h5") as file:
    for group in file:
        if f"`{group}`" not in page and f"`{group}/" not in page:
            missing.append(group)
        for name in file[group] if group not in ("scenario", "meta") else []:
            coordinate = file[group][name].attrs.get("CLASS") == b"DIMENSION_SCALE"
            if f"`{name}`" not in page and not coordinate:
                missing.append(f"{group}/{name}")
def keys(o):
    for key, value in o.items():
        yield key
        if isinstance(value, dict):
            yield from keys(value)
missing += [key for key in keys(json.load(open("out.json"))) if f"`{key}`" not in page]
print(missing)
assert not missing
PY
}
