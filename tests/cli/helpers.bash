# Shared by tests/cli/*.bats. Each test runs in a new folder of its own, so that relative paths in
# options and messages are the same everywhere. ctest sets the three variables; by hand, the release
# build is tested: `bats tests/cli/NAME.bats`.
#
#   load helpers
#   @test "an unknown key is refused by name" {
#     fs_run run bad.yaml
#     assert_status 2
#     assert_output_has "did you mean 'router'"
#     assert_absent bad.h5
#   }
# shellcheck shell=bash
# $status, $output and $stderr are bats' own.
# shellcheck disable=SC2154

bats_require_minimum_version 1.5.0

FLEETSIM_SOURCE_DIR=${FLEETSIM_SOURCE_DIR:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
FLEETSIM_BIN=${FLEETSIM_BIN:-$FLEETSIM_SOURCE_DIR/build/release/fleetsim}
FLEETSIM_PYTHON=${FLEETSIM_PYTHON:-/usr/bin/python3}
FLEETSIM_SHARED=${FLEETSIM_SHARED:-$FLEETSIM_SOURCE_DIR/../shared}
export FLEETSIM_SOURCE_DIR FLEETSIM_BIN FLEETSIM_PYTHON FLEETSIM_SHARED
export LC_ALL=C TZ=UTC

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
}

# Runs fleetsim; afterwards $status, $output (stdout) and $stderr hold what came of it.
fs_run() {
  run --separate-stderr "$FLEETSIM_BIN" "$@"
}

show_run() {
  printf -- '--- status %s\n--- stdout\n%s\n--- stderr\n%s\n' "$status" "$output" "${stderr:-}" >&2
}

assert_status() {
  [ "$status" -eq "$1" ] || { echo "expected exit code $1" >&2; show_run; return 1; }
}

assert_output_has() {
  [[ $output == *"$1"* ]] || { echo "stdout lacks: $1" >&2; show_run; return 1; }
}

assert_stderr_has() {
  [[ ${stderr:-} == *"$1"* ]] || { echo "stderr lacks: $1" >&2; show_run; return 1; }
}

assert_same_bytes() {
  cmp "$1" "$2"
}

assert_absent() {
  [ ! -e "$1" ] || { echo "$1 exists" >&2; return 1; }
}

# json FILE EXPRESSION: prints an expression over the parsed object, called o.
json() {
  "$FLEETSIM_PYTHON" -c 'import json, sys
o = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$1" "$2"
}

# Recorded data is not part of the tree: a test that needs some says so when it is not there.
need_shared() {
  [ -e "$FLEETSIM_SHARED/$1" ] || skip "shared/$1 is absent"
}
