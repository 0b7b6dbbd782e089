#!/usr/bin/env bats
# cmake --install into a prefix that works from anywhere, without the tree it came from.
load helpers

export PYTHONDONTWRITEBYTECODE=1

setup_file() {
  export PREFIX="$BATS_FILE_TMPDIR/a prefix"
  cmake --install "$(dirname "$FLEETSIM_BIN")" --prefix "$PREFIX" >"$BATS_FILE_TMPDIR/log" 2>&1 || {
    cat "$BATS_FILE_TMPDIR/log" >&2
    return 1
  }
  mv "$PREFIX" "$PREFIX moved" # what is found is found from the program, not from the build
  export PREFIX="$PREFIX moved"
  export PATH="$PREFIX/bin:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  unset FLEETSIM_CATALOG FLEETSIM_ANALYSIS
}

@test "the program, the catalogue, the scenarios, the scripts and the pages are there" {
  for file in bin/fleetsim share/fleetsim/catalog/gpu/h200-sxm.yaml \
    share/fleetsim/scenarios/chat-1m/scenario.yaml share/fleetsim/analysis/report.py \
    share/fleetsim/analysis/fleetio.py share/doc/fleetsim/docs/guide.md \
    share/doc/fleetsim/README.md share/doc/fleetsim/LICENSE; do
    [ -s "$PREFIX/$file" ] || { echo "no $file" >&2; false; }
  done
  [ -x "$PREFIX/share/fleetsim/analysis/plot_day.py" ]
  [ -z "$(find "$PREFIX" -name __pycache__)" ]
}

@test "a scenario by name, from any folder" {
  run --separate-stderr fleetsim run chat-1m --quiet -o day.h5 \
    --set workload[0].arrivals.users.daily=1e4
  assert_status 0
  assert_output_has "audit: ok"
  [ -s day.h5 ]
}

@test "the catalogue, and a scenario of one's own that names from it" {
  run --separate-stderr fleetsim list gpus
  assert_status 0
  assert_output_has "h200-sxm"
  awk '/^```yaml$/ { inside = !done } /^```$/ { if (inside) done = 1; inside = 0 }
    inside && !/^```/' "$PREFIX/share/doc/fleetsim/docs/guide.md" >mine.yaml
  run --separate-stderr fleetsim run mine.yaml --quiet --no-output --set horizon=10min
  assert_status 0
  assert_output_has "audit: ok"
}

@test "the report and the figures, with the installed scripts" {
  fleetsim run chat-1m --quiet --set workload[0].arrivals.users.daily=1e3 --set horizon=2h \
    -o day.h5 >/dev/null
  run --separate-stderr fleetsim report day.h5
  assert_status 0
  [ -s day.html ]
  run --separate-stderr "$FLEETSIM_PYTHON" "$PREFIX/share/fleetsim/analysis/plot_day.py" day.h5
  assert_status 0
  [ -s day.png ]
}

@test "through a link in another folder" {
  ln -s "$PREFIX/bin/fleetsim" ./link
  run --separate-stderr ./link list models
  assert_status 0
  assert_output_has "llama-3.3-70b"
}
