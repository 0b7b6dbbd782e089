#!/usr/bin/env bats
# fleetsim report: the page, and what a browser without a network makes of it.
load helpers

export PYTHONDONTWRITEBYTECODE=1

need_browser() {
  BROWSER=
  for name in chromium-headless-shell chromium; do
    [ -n "$BROWSER" ] || BROWSER=$(command -v "$name" || true)
  done
  [ -n "$BROWSER" ] || skip "no chromium-headless-shell"
}

# browse PAGE OPTION…: with no way out: every name fails to resolve, and so does every request to one.
# What the page logs goes to log.txt.
browse() {
  "$BROWSER" --no-sandbox --disable-gpu --user-data-dir="$BATS_TEST_TMPDIR/profile" \
    --virtual-time-budget=60000 --host-resolver-rules="MAP * ~NOTFOUND" --enable-logging=stderr \
    --log-level=0 --hide-scrollbars "${@:2}" "file://$PWD/$1" 2>log.txt
}

small_run() {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" .
  "$FLEETSIM_BIN" run small.yaml --quiet "$@" >/dev/null
}

# lacks FILE PATTERN: no line of it matches.
lacks() {
  if grep -nE "$2" "$1" >&2; then
    echo "$1 has what it must not have: $2" >&2
    return 1
  fi
}

@test "the page: one file, the same bytes again, nothing in it that is fetched" {
  small_run
  fs_run report small.h5 -o one.html
  assert_status 0
  assert_output_has "written: one.html"
  fs_run report small.h5
  assert_same_bytes one.html small.html
  [ "$(echo *.*)" = "one.html small.h5 small.html small.yaml" ]
  sed '/id="library"/,/<\/script>/d' one.html >rest.txt
  lacks rest.txt '(src|href) *= *"?(https?:)?//|@import|url\('
  for part in "Content-Security-Policy" "The day" "What users notice" "The bill" Summary Audit \
    Assumptions "The same numbers again" "usd_per_mtok_total" "process: poisson"; do
    grep -q "$part" one.html || { echo "the page lacks: $part" >&2; false; }
  done
}

@test "in a browser: every chart is drawn, no error, no request" {
  need_browser
  small_run
  "$FLEETSIM_BIN" report small.h5
  browse small.html --dump-dom >dom.html
  charts=$(grep -o '<div class="chart[^>]*id="chart-[0-9]*"' dom.html | wc -l)
  [ "$charts" -ge 10 ]
  grep -q "data-charts=\"$charts\"" dom.html
  [ "$(grep -o 'class="main-svg"' dom.html | wc -l)" -ge "$charts" ]
  lacks log.txt 'CONSOLE.*(rror|arning|efused|iolat)|Uncaught'
  lacks log.txt 'https?://'
}

@test "an error of the page would be seen, and so would a request" {
  need_browser
  printf '<script>fetch("http://fleet.invalid/x"); throw new Error("seen")</script>' >bad.html
  browse bad.html --dump-dom >dom.html
  grep -qE 'CONSOLE.*(rror|efused)' log.txt
  grep -q 'Uncaught Error: seen' log.txt
}

@test "it prints: A4, with what was folded" {
  need_browser
  small_run
  "$FLEETSIM_BIN" report small.h5
  browse small.html --no-pdf-header-footer --print-to-pdf=small.pdf
  [ "$(head -c 4 small.pdf)" = %PDF ]
  [ "$(stat -c %s small.pdf)" -gt 50000 ]
  browse small.html --window-size=1240,2400 --screenshot=small.png
  [ "$(stat -c %s small.png)" -gt 50000 ]
}

@test "the scenario that the page hands out runs to the same digest" {
  small_run
  "$FLEETSIM_BIN" report small.h5
  "$FLEETSIM_PYTHON" - <<'PY'
import base64, re
page = open("small.html", encoding="utf-8").read()
data = re.search(r'download="small.yaml" href="data:application/yaml;base64,([^"]*)"', page)[1]
open("again.yaml", "wb").write(base64.b64decode(data))
print(re.search(r"<td>digest</td><td>(\w+)</td>", page)[1], file=open("digest.txt", "w"))
PY
  "$FLEETSIM_BIN" run again.yaml --quiet --no-output --json >again.json
  [ "$(json again.json 'o["digest"]')" = "$(cat digest.txt)" ]
}

@test "names that look like markup stay text" {
  small_run --set 'name=<b>&"x"<b>' --set 'description=</script><script>alert(1)</script>' \
    -o odd.h5
  fs_run report odd.h5
  assert_status 0
  lacks odd.html '<b>&|<script>alert'
  grep -q '&lt;b&gt;&amp;&quot;x&quot;&lt;b&gt;' odd.html
}

@test "runs of other kinds: no price, unfinished, nobody came" {
  small_run --set 'fleet.pools[0].price={}' -o free.h5
  fs_run report free.h5
  assert_status 0
  small_run --set workload[0].arrivals.rate=0.0001/s -o empty.h5
  fs_run report empty.h5
  assert_status 0
}

@test "a sweep: every output over every axis, the frontier, and what matters most" {
  need_browser
  sed '/initial_replicas/d; s/^horizon: .*/horizon: 2 min/' \
    "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" >scenario.yaml
  cat >sweep.yaml <<'YAML'
name: night
replications: 2
axes:
  - {name: rate, key: 'workload[0].arrivals.rate', list: [1 /s, 3 /s, 5 /s]}
  - {name: policy, key: 'fleet.pools[0].autoscaler', labels: [static, target], list: [
      {policy: static, replicas: 2}, {policy: target, metric: concurrency, target: 4,
      max_replicas: 8}]}
YAML
  "$FLEETSIM_BIN" sweep sweep.yaml -o night --quiet
  "$FLEETSIM_BIN" sweep sweep.yaml -o alone --quiet --sensitivity usd
  for what in night alone; do
    fs_run report $what
    assert_status 0
    browse $what.html --dump-dom >dom.html
    grep -q 'data-charts="[1-9]' dom.html
    grep -q 'id="explorer"[^>]*>.*class="main-svg"' dom.html
    lacks log.txt 'CONSOLE.*(rror|arning|efused|iolat)|Uncaught|https?://'
  done
  mkdir other && cd other
  fs_run report ../night/
  assert_status 0
  [ -s night.html ]
}

@test "it overwrites nothing, and says what is wrong" {
  small_run
  "$FLEETSIM_BIN" report small.h5
  fs_run report small.h5
  assert_status 1
  assert_stderr_has "small.html exists already; --force overwrites it"
  fs_run report small.h5 --force
  assert_status 0
  fs_run report absent.h5
  assert_status 2
  assert_stderr_has "absent.h5: No such file"
  echo none >none.h5
  fs_run report none.h5
  assert_status 2
  assert_stderr_has "none.h5: cannot be read"
  assert_absent none.html
  fs_run report small.h5 -o nowhere/x.html
  assert_status 1
  assert_stderr_has "nowhere"
}

@test "without Python, without the package, without the script: each is said" {
  small_run
  FLEETSIM_PYTHON=/nowhere/python3 fs_run report small.h5
  assert_status 1
  assert_stderr_has "/nowhere/python3 cannot be run"
  assert_stderr_has "apt install python3"
  FLEETSIM_ANALYSIS=$PWD fs_run report small.h5
  assert_status 1
  assert_stderr_has "FLEETSIM_ANALYSIS may name its folder"
  printf '#!/bin/sh\nexec %s -S "$@"\n' "$FLEETSIM_PYTHON" >bare
  chmod +x bare
  FLEETSIM_PYTHON=$PWD/bare fs_run report small.h5
  assert_status 1
  assert_stderr_has "apt install python3-"
  assert_absent small.html
}
