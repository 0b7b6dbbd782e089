#!/usr/bin/env bats
# The how-to pages: every file they show is made, every command they show is run, in order.
load helpers

export PYTHONDONTWRITEBYTECODE=1

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  mkdir path # the pages' commands are those of somebody at the top of the repository
  ln -s "$FLEETSIM_SOURCE_DIR"/{analysis,models,scenarios} .
  ln -s "$FLEETSIM_BIN" path/fleetsim
  export PATH="$PWD/path:$PATH"
}

# page NAME: files are the blocks after `<!-- file: NAME -->`; commands are the blocks of `sh`; blocks
# of `python` are run unless they read what only the reader has.
page() {
  "$FLEETSIM_PYTHON" - "$FLEETSIM_SOURCE_DIR/docs/$1.md" <<'PY'
import re, subprocess, sys
text = open(sys.argv[1], encoding="utf-8").read()
blocks = re.findall(r"(?:<!-- file: (\S+) -->\n)?```(\w+)\n(.*?)```", text, flags=re.S)
ran = 0
for name, kind, body in blocks:
    if name:
        open(name, "w", encoding="utf-8").write(body)
    elif kind == "sh" or kind == "python" and "requests.jsonl" not in body:
        command = ["bash", "-euc", body] if kind == "sh" else ["/usr/bin/python3", "-c", body]
        done = subprocess.run(command, capture_output=True, text=True)
        ran += 1
        if done.returncode:
            sys.exit(f"{body}\n--- status {done.returncode}\n{done.stdout}{done.stderr}")
print(f"{ran} blocks ran")
sys.exit(ran == 0)
PY
}

@test "your own trace" {
  page howto-trace
}

@test "your own model and GPU" {
  page howto-model-gpu
}

@test "autoscale, or hold the peak" {
  page howto-autoscale
  [ -s cold.png ]
  [ -s day-cost.png ]
}

@test "conversations, prefix caches and routers" {
  page howto-prefix
}

@test "choose hardware" {
  page howto-hardware
}

@test "a sweep overnight, or on Slurm" {
  unset "${!SLURM_@}"
  page howto-slurm
}

@test "read the results elsewhere" {
  page howto-read
}

@test "reading in R, where there is R" {
  command -v Rscript >/dev/null && Rscript -e 'library(hdf5r)' >/dev/null 2>&1 || skip "no R with hdf5r"
  page howto-read
  awk '/^```r$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
    "$FLEETSIM_SOURCE_DIR/docs/howto-read.md" >read.R
  run --separate-stderr Rscript read.R
  assert_status 0
  assert_output_has '"s"'
  assert_output_has "2026-03-02 12:09:00"
}

@test "theory over simulation" {
  page validation-theory
  [ -s validation-theory.png ]
}

@test "the pictures' page" {
  page pictures
  for what in day scaling cost latency experts sweep map pareto tornado; do
    [ -s "$what.png" ]
    [ "$(stat -c %s "$FLEETSIM_SOURCE_DIR/docs/pictures/$what.png")" -le 150000 ]
  done
}
