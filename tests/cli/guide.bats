#!/usr/bin/env bats
# The scenarios that docs/guide.md asks to type.

load helpers

# yaml_block NUMBER: the guide's yaml block of that number, from 1.
yaml_block() {
  awk -v wanted="$1" '/^```yaml$/ { inside = ++block == wanted; next }
    /^```$/ { inside = 0 }
    inside' "$FLEETSIM_SOURCE_DIR/docs/guide.md"
}

@test "the guide's own scenario is right, runs, and its numbers add up" {
  yaml_block 1 >mine.yaml
  fs_run check mine.yaml
  assert_status 0
  assert_output_has "750,000 requests expected"
  fs_run run mine.yaml --quiet --no-output --set horizon=1h
  assert_status 0
  assert_output_has "audit: ok"
}

@test "the guide's replay of an own trace" {
  yaml_block 1 >mine.yaml
  yaml_block 2 >replay.yaml
  printf 'arrival_s,prompt_tokens,output_tokens\n0,1200,300\n0.5,800,150\n60,100,1\n' >own.csv
  fs_run run replay.yaml --quiet --no-output
  assert_status 0
  assert_output_has "3 arrived = 3 completed"
}

@test "the table's headings are those the guide explains" {
  yaml_block 1 >mine.yaml
  fs_run run mine.yaml --quiet --no-output --set horizon=10min
  for heading in requests TTFT TPOT flight waiting KV held ready util hours cost Mtok; do
    assert_output_has "$heading"
    grep -q "^| .*$heading.* | \`" "$FLEETSIM_SOURCE_DIR/docs/guide.md"
  done
}

@test "the catalogue's commands that the guide names" {
  for what in models gpus prices; do
    fs_run list "$what"
    assert_status 0
  done
  yaml_block 1 >mine.yaml
  fs_run plan mine.yaml
  assert_status 0
  assert_output_has "prefill tokens/s per GPU"
}
