#!/usr/bin/env bats
# The scripts of analysis/ as a user types them; what they draw is judged by tests/analysis.
load helpers

ANALYSIS=$FLEETSIM_SOURCE_DIR/analysis
export PYTHONDONTWRITEBYTECODE=1

plot() {
  run --separate-stderr "$FLEETSIM_PYTHON" "$ANALYSIS/$1.py" "${@:2}"
}

small_run() {
  "$FLEETSIM_BIN" run "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" --quiet -o small.h5 >/dev/null
}

@test "every script says what it does" {
  for script in "$ANALYSIS"/plot_*.py "$ANALYSIS"/draw_*.py "$ANALYSIS"/report.py; do
    plot "$(basename "$script" .py)" --help
    assert_status 0
    assert_output_has "usage: $(basename "$script")"
    [ -x "$script" ] || { echo "$script is not executable" >&2; false; }
  done
}

@test "a figure as PNG and as SVG" {
  small_run
  plot plot_cost small.h5 -o cost.png -o cost.svg
  assert_status 0
  assert_output_has "wrote cost.svg"
  [ "$(head -c 4 cost.png | tail -c 3)" = PNG ]
  [ "$(stat -c %s cost.png)" -lt 150000 ]
  grep -q "</svg>" cost.svg
}

@test "the default name stands beside the run" {
  small_run
  mkdir elsewhere
  cd elsewhere
  plot plot_cost ../small.h5
  assert_status 0
  [ -s ../small-cost.png ]
  assert_absent small-cost.png
}

@test "a wrong suffix, a file that is none, a pool that is not there, a folder that is not" {
  small_run
  plot plot_day small.h5 -o day.gif
  assert_status 2
  assert_stderr_has "must be one of .png, .svg, .pdf"
  echo nothing >other.h5
  plot plot_day other.h5
  assert_status 1
  assert_stderr_has "other.h5: cannot be read"
  plot plot_day small.h5 --pool mian
  assert_status 1
  assert_stderr_has "no pool 'mian'; there is main"
  plot plot_day small.h5 -o nowhere/day.png
  assert_status 1
  assert_stderr_has "nowhere/day.png"
}

@test "a package that is missing is named, with Debian's name for it" {
  small_run
  run --separate-stderr "$FLEETSIM_PYTHON" -S "$ANALYSIS/plot_day.py" small.h5
  assert_status 77
  assert_stderr_has "apt install python3-"
}
