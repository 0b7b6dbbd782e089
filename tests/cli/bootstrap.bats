#!/usr/bin/env bats
# The script itself, as far as it goes without installing or building anything.
load helpers

bootstrap() {
  run --separate-stderr "$FLEETSIM_SOURCE_DIR/bootstrap" "$@"
}

@test "help names every command, from any folder" {
  bootstrap help
  assert_status 0
  for command in run test build bench lint packages help; do
    assert_output_has "./bootstrap $command"
  done
}

@test "an unknown command is bad usage" {
  bootstrap dance
  assert_status 64
  assert_stderr_has "dance"
}

@test "an unknown preset is bad usage and names those there are" {
  bootstrap build nosuch
  assert_status 64
  assert_stderr_has "nosuch"
  assert_stderr_has "release"
  assert_stderr_has "sanitize"
}

@test "the package list has one name a line, once each" {
  bootstrap packages
  assert_status 0
  [ "${#lines[@]}" -gt 15 ]
  for line in "${lines[@]}"; do
    [[ $line =~ ^[a-z0-9][a-z0-9.+-]*$ ]]
  done
  [ "$(printf '%s\n' "${lines[@]}" | sort | uniq -d)" = "" ]
}

@test "what a run needs is part of what the tests need" {
  bootstrap packages run
  assert_status 0
  few=$output
  bootstrap packages
  while read -r name; do
    assert_output_has "$name"
  done <<<"$few"
}

@test "a run installs every Python package that the analysis scripts ask for" {
  bootstrap packages run
  assert_status 0
  asked=$(grep -o '"python3-[a-z0-9]*"' "$FLEETSIM_SOURCE_DIR/analysis/fleetio.py" | tr -d '"')
  [ "$(wc -w <<<"$asked")" -ge 5 ]
  for name in $asked; do
    grep -qx "$name" <<<"$output"
  done
}

# Tools that only write down how they were called. dpkg-query knows just two packages; cmake fails,
# so that nothing is built.
fake_system() {
  mkdir bin
  : >calls
  printf '#!/bin/sh\necho "ii  gcc"\necho "ii  cmake"\necho "rc  check"\n' >bin/dpkg-query
  printf '#!/bin/sh\necho "apt-get $*" >>"%s/calls"\n' "$PWD" >bin/apt-get
  printf '#!/bin/sh\necho "sudo $*" >>"%s/calls"\n' "$PWD" >bin/sudo
  printf '#!/bin/sh\necho %s\n' "$1" >bin/id
  printf '#!/bin/sh\nexit 3\n' >bin/cmake
  chmod +x bin/*
  PATH=$PWD/bin:$PATH
}

@test "root installs only what is missing, after an update, without questions" {
  fake_system 0
  bootstrap build </dev/null
  assert_status 1
  [ "$(sed -n 1p calls)" = "apt-get -q update" ]
  install=$(sed -n 2p calls)
  [[ $install == "apt-get -q -y --no-install-recommends install "* ]]
  [[ $install == *" ninja-build "* ]]
  [[ $install == *" check"* ]]
  [[ $install != *" gcc"* ]]
  [[ $install != *" cmake"* ]]
  [ "$(wc -l <calls)" -eq 2 ]
  assert_stderr_has "configure release: FAILED"
}

@test "another user installs through sudo, unasked without a terminal" {
  fake_system 1000
  bootstrap build </dev/null
  assert_status 1
  [ "$(sed -n 1p calls)" = "sudo -n apt-get -q update" ]
  [[ $(sed -n 2p calls) == "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get "* ]]
}

need_terminal() {
  script -qec true /dev/null </dev/null >/dev/null 2>&1 || skip "no pseudo-terminal can be had"
}

# The script on a terminal of its own (util-linux's script makes one), with this answer.
on_terminal() {
  need_terminal
  run env -u CI script -qec "$FLEETSIM_SOURCE_DIR/bootstrap build" /dev/null <<<"$1"
}

@test "on a terminal it asks once, and no means that nothing is done" {
  fake_system 1000
  on_terminal n
  assert_output_has "Install them now? [Y/n]"
  assert_output_has "not installed, so stopped"
  [ ! -s calls ]
}

@test "on a terminal a bare return means yes" {
  fake_system 1000
  on_terminal ""
  [ "$(grep -c 'Install them now' <<<"$output")" -eq 1 ]
  [ "$(sed -n 1p calls)" = "sudo apt-get -q update" ]
  [ "$(wc -l <calls)" -eq 2 ]
}

@test "under CI it does not ask on a terminal either" {
  fake_system 1000
  need_terminal
  CI=true run script -qec "$FLEETSIM_SOURCE_DIR/bootstrap build" /dev/null
  [[ $output != *"Install them now"* ]]
  [ "$(sed -n 1p calls)" = "sudo -n apt-get -q update" ]
}

@test "nothing is installed when nothing is missing" {
  fake_system 0
  "$FLEETSIM_SOURCE_DIR/bootstrap" packages | sed 's/^/ii  /' >installed
  printf '#!/bin/sh\ncat "%s/installed"\n' "$PWD" >bin/dpkg-query
  bootstrap build </dev/null
  assert_status 1
  [ ! -s calls ]
}

@test "a system without apt-get is told what to install" {
  mkdir bin
  for tool in env bash dirname readlink paste fold sed grep cat; do
    ln -s "$(command -v "$tool")" bin/
  done
  run --separate-stderr env PATH="$PWD/bin" "$FLEETSIM_SOURCE_DIR/bootstrap" build
  assert_status 1
  assert_stderr_has "libhdf5-dev"
  assert_stderr_has "not found: cmake ninja pkg-config cc"
}

@test "the tally takes a program's own count" {
  cat >junit.xml <<'XML'
<testsuite>
<testcase name="unit/a" status="run"><system-out>SKIP: data absent
100%: Checks: 5, Failures: 0, Errors: 0</system-out></testcase>
<testcase name="cli/b" status="fail"><system-out>1..3
ok 1 one
not ok 2 two
ok 3 three # skip no tool</system-out></testcase>
<testcase name="lint/c" status="run"><system-out>Ran 7 tests in 0.1s</system-out></testcase>
<testcase name="prop/d" status="fail"><system-out>Segmentation fault</system-out></testcase>
<testcase name="prop/e" status="notrun"><system-out></system-out></testcase>
<testcase name="prop/f" status="run"><system-out>fine</system-out></testcase>
</testsuite>
XML
  run "$FLEETSIM_PYTHON" "$FLEETSIM_SOURCE_DIR/tests/tally.py" junit.xml
  assert_status 0
  [ "${lines[-1]}" = "13 2 3" ]
  assert_output_has "FAILED   cli/b"
  assert_output_has "FAILED   prop/d"
  assert_output_has "skipped  unit/a: data absent"
  assert_output_has "skipped  prop/e"
}
