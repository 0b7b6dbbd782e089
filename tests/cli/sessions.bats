#!/usr/bin/env bats
# Conversations: what check says of them, that policies cannot change them, and that the trace of a
# run replays to the identical requests.
load helpers

scenario() {
  cat >talk.yaml <<'YAML'
name: talk
seed: 3
horizon: 30 min
workload:
  - name: chat
    arrivals: {process: poisson, rate: 0.5 /s}
    shared_prompt: {tokens: 200, count: 3}
    prompt_tokens: {dist: lognormal, mean: 150, cv: 1}
    output_tokens: {dist: geometric, mean: 80}
    sessions: {turns: {dist: geometric, mean: 4}, think_time: {dist: lognormal, mean: 60 s, cv: 1},
               max_history_tokens: 3000, stationary_start: true}
    patience: 8 s
    slo: {ttft: 1 s, tpot: 50 ms, attainment: 95 %}
  - name: batch
    arrivals: {process: constant, rate: 1 /s}
    shared_prompt: {tokens: 64}
    prompt_tokens: {dist: constant, value: 100}
    output_tokens: {dist: constant, value: 20}
fleet:
  router: {policy: least_loaded}
  pools:
    - name: main
      engine: {max_num_seqs: 16, max_num_batched_tokens: 2048, num_gpu_blocks_override: 1000}
      step_time: {model: rate, prefill_tokens_per_s: 4000, decode_tokens_per_s: 600, min_step: 20 ms}
      autoscaler: {policy: static, replicas: 2}
output: {trace_interval: 5 min}
YAML
}

# replay_of TRACE: the same fleet fed from it.
replay_of() {
  "$FLEETSIM_PYTHON" - "$1" <<'PY'
import re, sys
text = open("talk.yaml").read()
text = re.sub(r"arrivals: \{.*\}", "arrivals: {process: trace, file: %s, hash_block_size: 16}"
              % sys.argv[1], text)
text = re.sub(r"    (shared_prompt|prompt_tokens|output_tokens|sessions):.*\n(               .*\n)?", "",
              text)
open("replay.yaml", "w").write(text)
PY
}

@test "check states the requests and tokens that conversations bring" {
  scenario
  fs_run check talk.yaml
  assert_status 0
  # 0.5 starts/s, 4 turns, 1,800 s; 200 shared tokens, 150 new ones and some history.
  assert_output_has "class chat: poisson arrivals, 3,600 requests expected"
  assert_output_has "class batch: constant arrivals, 1,800 requests expected, on average 164.0 prompt"
}

@test "exported as it runs, then replayed: the identical requests" {
  scenario
  for trace in t.csv t.csv.gz; do
    fs_run run talk.yaml --quiet --no-output --requests a.csv --force --export-trace "$trace"
    assert_status 0
    assert_output_has "  sessions "
    assert_output_has "hash_block_size: 16"
    replay_of "$trace"
    "$FLEETSIM_BIN" run replay.yaml --quiet --json --no-output --requests b.csv --force >b.json
    assert_same_bytes a.csv b.csv
    [ "$(json b.json 'o["audit"]["ok"], o["requests"]["arrived"] > 4000')" = "(True, True)" ]
    [ "$(json b.json 'o["requests"]["cancelled"] > 0')" = True ]
  done
  [ "$(zcat t.csv.gz | cksum)" = "$(cksum <t.csv)" ]
  # A trace of a trace is that trace.
  "$FLEETSIM_BIN" run replay.yaml --quiet --json --no-output --export-trace again.csv >/dev/null
  assert_same_bytes t.csv again.csv
}

@test "with a prefix cache too, and a recorded class beside: the identical requests and hits" {
  scenario
  "$FLEETSIM_PYTHON" - <<'PY'
import random
random.seed(1)
with open("told.csv", "w") as out:
    out.write("arrival_s,prompt_tokens,output_tokens,hash_ids\n")
    for i in range(1500):
        ids = [7, 100 + i % 9, 1000 + i % 50, 10000 + i]
        out.write("%d,%d,%d,%s\n" % (i, 140, random.randint(1, 40), " ".join(map(str, ids))))
text = open("talk.yaml").read()
text = text.replace("engine: {", "engine: {enable_prefix_caching: true, ")
text = text.replace("fleet:", """  - name: told
    arrivals: {process: trace, file: told.csv, hash_block_size: 32}
fleet:""")
open("talk.yaml", "w").write(text)
PY
  "$FLEETSIM_BIN" run talk.yaml --quiet --json --no-output --requests a.csv --export-trace t.csv >a.json
  "$FLEETSIM_BIN" run talk.yaml --quiet --json --no-output --requests s.csv --step-by-step >s.json
  assert_same_bytes a.csv s.csv
  replay_of t.csv
  sed -i '/name: told/,/fleet:/s/hash_block_size: 16/hash_block_size: 32/' replay.yaml
  "$FLEETSIM_BIN" run replay.yaml --quiet --json --no-output --requests b.csv >b.json
  assert_same_bytes a.csv b.csv
  [ "$(json a.json 'o["digest"]')" = "$(json b.json 'o["digest"]')" ]
  [ "$(json a.json 'o["tokens"]')" = "$(json b.json 'o["tokens"]')" ]
  [ "$(json a.json 'o["audit"]["ok"], o["tokens"]["cached"] > 0.2 * o["tokens"]["prompt"]')" = "(True, True)" ]
}

@test "what a prefix cache cannot tell apart is refused" {
  scenario
  printf 'arrival_s,prompt_tokens,output_tokens,hash_ids\n0,40,9,1 2\n' >told.csv
  set -- --set "workload[1]={name: told, arrivals: {process: trace, file: told.csv, hash_block_size: 24}}"
  fs_run check talk.yaml "$@"
  assert_status 0
  fs_run check talk.yaml "$@" --set fleet.pools[0].engine.enable_prefix_caching=true
  assert_status 2
  assert_stderr_has "a hash_id stands for 24 tokens, which the block_size 16 of pool 'main' does not divide"
}

@test "every session ends in one of the ways there are" {
  scenario
  for drain in true false; do
    "$FLEETSIM_BIN" run talk.yaml --quiet --json --force -o talk.h5 --set "drain=$drain" >a.json
    "$FLEETSIM_BIN" show talk.h5 --json >b.json
    for o in a.json b.json; do
      [ "$(json $o 'o["sessions"]["started"] == sum(o["sessions"].values()) / 2 > 900')" = True ]
      [ "$(json $o '0 < o["sessions"]["given_up"] <= o["requests"]["cancelled"]')" = True ]
      [ "$(json $o 'o["audit"]["ok"]')" = True ]
    done
  done
  [ "$(json a.json '0 < o["sessions"]["cut"] <= o["requests"]["in_flight"]')" = True ]
}

@test "only a run can export what follows from the fleet" {
  scenario
  fs_run check talk.yaml --export-trace t.csv
  assert_status 1
  assert_stderr_has "only a run can export them"
  assert_absent t.csv
}

@test "pools with several block sizes have no names for contents" {
  scenario
  sed -i 's/^output:.*//' talk.yaml
  cat >>talk.yaml <<'YAML'
    - name: other
      engine: {block_size: 32}
      step_time: {model: constant, step: 20 ms}
      autoscaler: {policy: static, replicas: 1}
YAML
  fs_run run talk.yaml --quiet --no-output --export-trace t.csv
  assert_status 0
  [ "$(head -1 t.csv)" = "arrival_s,prompt_tokens,output_tokens,class,session,turn" ]
  # Where they matter, to a cache, they are not dropped.
  fs_run run talk.yaml --quiet --no-output --export-trace u.csv \
    --set fleet.pools[0].engine.enable_prefix_caching=true
  assert_status 1
  assert_stderr_has "class 'chat' cannot be exported with what its prompts hold in common"
  assert_absent u.csv
}

@test "every class is told how to replay it, one without contents and one of a smaller block too" {
  scenario
  "$FLEETSIM_PYTHON" - <<'PY'
text = open("talk.yaml").read()
text = text.replace("engine: {", "engine: {enable_prefix_caching: true, ")
text = text.replace("    patience: 8 s", "    pools: [main]").replace("    shared_prompt: {tokens: 64}", "    pools: [other]\n    shared_prompt: {tokens: 64}")
text = text.replace("fleet:", """  - name: plain
    arrivals: {process: poisson, rate: 0.5 /s}
    prompt_tokens: 90
    output_tokens: 20
fleet:""").replace("output: {trace", """    - name: other
      engine: {block_size: 6, enable_prefix_caching: true}
      step_time: {model: constant, step: 20 ms}
      autoscaler: {policy: static, replicas: 1}
output: {trace""")
open("talk.yaml", "w").write(text)
PY
  fs_run run talk.yaml --quiet --no-output --requests a.csv --export-trace t.csv
  assert_status 0
  assert_output_has "replay chat with arrivals: {process: trace, file: t.csv, hash_block_size: 16}"
  assert_output_has "replay batch with arrivals: {process: trace, file: t.csv, hash_block_size: 6}"
  assert_output_has "replay plain with arrivals: {process: trace, file: t.csv, hash_block_size: 48}"
  cp talk.yaml replay.yaml
  sed -i -E '/^    (shared_prompt|prompt_tokens|output_tokens|sessions):/d; /^               max_history/d' replay.yaml
  for class in chat batch plain; do
    line=$(sed -n "s/^replay $class with //p" <<<"$output")
    sed -i "/name: $class\$/,/arrivals:/s/    arrivals: .*/    $line/" replay.yaml
  done
  fs_run run replay.yaml --quiet --no-output --requests b.csv
  assert_status 0
  assert_same_bytes a.csv b.csv
}

@test "a policy changes the times of turns and nothing else of them" {
  scenario
  turns='
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r["class"] == "chat"]
said = {(r["session"], r["turn"]): (r["prompt_tokens"], r["output_tokens"]) for r in rows}
other = [r for r in csv.DictReader(open(sys.argv[2])) if r["class"] == "chat"]
both = [r for r in other if (r["session"], r["turn"]) in said]
assert len(both) > 3000, len(both)
assert all(said[r["session"], r["turn"]] == (r["prompt_tokens"], r["output_tokens"]) for r in both)
'
  "$FLEETSIM_BIN" run talk.yaml --quiet --json --no-output --requests a.csv >/dev/null
  "$FLEETSIM_BIN" run talk.yaml --quiet --json --no-output --requests b.csv \
    --set fleet.router.policy=random --set fleet.pools[0].autoscaler.replicas=5 >/dev/null
  "$FLEETSIM_PYTHON" -c "$turns" a.csv b.csv
  fs_run compare talk.yaml --variant two: --variant five:fleet.pools[0].autoscaler.replicas=5
  assert_status 0
  assert_output_has "arrivals: identical in all 2"
  assert_output_has "of sessions their first turns"
}

@test "one iteration at a time gives the same" {
  scenario
  "$FLEETSIM_BIN" run talk.yaml --quiet --json --no-output --requests a.csv >a.json
  "$FLEETSIM_BIN" run talk.yaml --quiet --json --no-output --requests b.csv --step-by-step >b.json
  assert_same_bytes a.csv b.csv
  [ "$(json a.json 'o["digest"]')" = "$(json b.json 'o["digest"]')" ]
}

@test "a closed loop is exported as it runs, too" {
  scenario
  loop='workload[1]={name: batch, arrivals: {process: closed_loop, concurrency: 5, think_time: 2 s, think_distribution: exponential}, shared_prompt: {tokens: 64}, prompt_tokens: {dist: constant, value: 100}, output_tokens: {dist: constant, value: 20}}'
  "$FLEETSIM_BIN" run talk.yaml --quiet --json --no-output --requests a.csv --export-trace t.csv --set "$loop" >/dev/null
  replay_of t.csv
  "$FLEETSIM_BIN" run replay.yaml --quiet --json --no-output --requests b.csv >/dev/null
  assert_same_bytes a.csv b.csv
  [ "$(grep -c ',batch,' a.csv)" -gt 2000 ]
}
