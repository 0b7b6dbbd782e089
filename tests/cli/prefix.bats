#!/usr/bin/env bats
# Prefix caching and routing as a user sees them; the recorded conversations where they are at hand.
# $stderr is bats' own.
# shellcheck disable=SC2154
load helpers

json() { # expression on d
  "$FLEETSIM_PYTHON" -c "import json, sys; d = json.load(sys.stdin); assert $1, d" <<<"$output"
}

scenario() { # trace format block_size
  cat >one.yaml <<YAML
name: one
workload:
  - name: conv
    arrivals: {process: trace, format: mooncake, file: $1}
fleet:
  pools:
    - name: main
      engine: {max_num_seqs: 100000, max_num_batched_tokens: 1048576, block_size: $2,
               enable_prefix_caching: true}
      step_time: {model: constant, step: 10 ms}
      autoscaler: {policy: static, replicas: 1}
YAML
}

@test "T05: the recorded conversations hit as often in a run as in cache" {
  local data=$FLEETSIM_SHARED/data/mooncake
  [ -e "$data/conversation_trace.jsonl.gz" ] || skip "data/mooncake is absent"
  scenario "$data/conversation_trace.jsonl.gz" 512
  fs_run run one.yaml --json --quiet
  assert_status 0
  json 'd["tokens"]["prompt"] == 144793823 and d["tokens"]["cached"] == 54063104'
  json 'd["prefix"]["hit_blocks"] == 105592 and d["prefix"]["hit_tokens"] == 54063104'
  json 'abs(d["prefix"]["token_hit_rate"] - 0.37338) < 1e-5 and d["audit"]["ok"]'
  scenario "$data/conversation_trace.jsonl.gz" 16
  fs_run run one.yaml --json --quiet --force --step-by-step
  json 'd["tokens"]["cached"] == 54063104'
  scenario "$data/synthetic_trace.jsonl.gz" 512
  fs_run run one.yaml --json --quiet --force
  json 'd["tokens"]["cached"] == 39802880 and d["prefix"]["hit_blocks"] == 77740'
}

@test "conversations: what is cached depends on the router, arrivals do not" {
  cat >chat.yaml <<'YAML'
name: chat
horizon: 10 min
workload:
  - name: chat
    arrivals: {process: poisson, rate: 1 /s}
    shared_prompt: {tokens: 640}
    sessions: {turns: {dist: geometric, mean: 4}, think_time: 10 s}
    prompt_tokens: {dist: lognormal, mean: 120, sigma: 0.6}
    output_tokens: {dist: lognormal, mean: 90, sigma: 0.5}
  - name: batch
    arrivals: {process: poisson, rate: 0.2 /s}
    prompt_tokens: 1000
    output_tokens: 10
fleet:
  router: {policy: round_robin}
  pools:
    - name: main
      engine: {enable_prefix_caching: true}
      step_time: {model: affine, base: 10 ms, per_token: 40 us, per_kv_token: 20 ns}
      autoscaler: {policy: static, replicas: 4}
      price: {usd_per_gpu_hour: 3}
YAML
  local policy
  for policy in round_robin session_sticky prefix_aware weighted; do
    fs_run run chat.yaml --json --quiet --force --set fleet.router.policy=$policy
    assert_status 0
    printf '%s\n' "$output" >"$policy.json"
  done
  run "$FLEETSIM_PYTHON" - <<'PY'
import json
d = {p: json.load(open(p + ".json")) for p in ("round_robin", "session_sticky", "prefix_aware", "weighted")}
rate = {p: r["prefix"]["token_hit_rate"] for p, r in d.items()}
assert rate["round_robin"] + 0.1 < min(rate[p] for p in rate if p != "round_robin"), rate
for r in d.values():
    chat, batch = r["classes"]
    # Sums over classes are the run; what nobody shares is never found.
    assert chat["class"] == "chat" and batch["prefix"]["hit_tokens"] == 0
    for group, key in (("tokens", "prompt"), ("tokens", "cached"), ("prefix", "hit_tokens"),
                       ("tokens", "computed"), ("tokens", "output"), ("requests", "arrived")):
        assert chat[group][key] + batch[group][key] == r[group][key], (group, key)
    assert abs(chat["usd"] + batch["usd"] - r["cost"]["usd"]) < 1e-9 * r["cost"]["usd"]
    assert r["routing"]["load_max_over_mean"] >= 1
    assert chat["tokens"]["cached"] + chat["tokens"]["computed"] == chat["tokens"]["prompt"]
assert d["weighted"]["routing"]["decisions"] > 0 and d["round_robin"]["routing"]["decisions"] == 0
PY
  assert_status 0
  fs_run run chat.yaml --quiet --force
  assert_output_has "% of prompt tokens found"

  # compare has them side by side, as each run's own result says; without any cache it says nothing of one.
  local none='fleet.pools[0].engine.enable_prefix_caching=false'
  fs_run compare chat.yaml --quiet --variant prefix_aware:fleet.router.policy=prefix_aware \
    --variant session_sticky:fleet.router.policy=session_sticky --variant "none:$none"
  assert_status 0
  printf '%s\n' "$output" >table.txt
  run "$FLEETSIM_PYTHON" - <<'PY'
import json
rows = {line.split()[0]: line.split()[-2:] for line in open("table.txt") if line.strip()}
assert rows["variant"] == ["/", "mean"], rows
for policy in ("prefix_aware", "session_sticky"):
    r = json.load(open(policy + ".json"))
    assert rows[policy][0] == f"{100 * r['prefix']['token_hit_rate']:.2f}", (rows, policy)
    assert rows[policy][1] == f"{r['routing']['load_max_over_mean']:.2f}", (rows, policy)
assert rows["none"][0] == "–", rows
PY
  assert_status 0
  fs_run compare chat.yaml --quiet --set "$none" --variant a: --variant b:fleet.router.policy=least_loaded
  assert_status 0
  [[ "$output" != *fullest* ]]
}

@test "rows by hour and class add up to those of the fleet" {
  cat >two.yaml <<'YAML'
name: two
horizon: 30 min
warmup: 5 min
workload:
  - name: a
    arrivals: {process: poisson, rate: 1 /s}
    shared_prompt: {tokens: 320}
    prompt_tokens: 100
    output_tokens: 20
    slo: {ttft: 1 s, attainment: 90 %}
  - name: b
    arrivals: {process: poisson, rate: 2 /s}
    prompt_tokens: 50
    output_tokens: 5
fleet:
  pools:
    - name: main
      engine: {enable_prefix_caching: true}
      step_time: {model: constant, step: 10 ms}
      autoscaler: {policy: static, replicas: 2}
output: {trace_interval: 10 min}
YAML
  fs_run run two.yaml --quiet -o two.h5
  assert_status 0
  run "$FLEETSIM_PYTHON" - <<'PY'
import h5py
with h5py.File("two.h5") as f:
    hours, fleet = f["hourly_classes"], f["fleet"]
    assert [n.decode() if isinstance(n, bytes) else n for n in hours["class"][()]] == ["a", "b"]
    for name in ("arrived", "admitted", "completed", "tokens_prompt", "tokens_cached",
                 "prefix_hit_tokens", "prefix_lookup_blocks", "slo_attained", "slo_missed"):
        rows = hours[name][()]
        assert rows.shape == (4, 2) and rows.sum() > 0 or name == "slo_missed", name
        assert (rows.sum(axis=1) == fleet[name][()]).all(), name
        if name in f["classes"]:
            assert (rows.sum(axis=0) == f["classes"][name][()]).all(), name
PY
  assert_status 0
}

@test "signals that cannot be are refused" {
  local scenario=$FLEETSIM_SOURCE_DIR/scenarios/chat-1m
  fs_run check "$scenario" --set fleet.router.signals.delay='1 s'
  assert_status 2
  [[ $stderr == *"cannot be late: state an interval"* ]]
  fs_run check "$scenario" --set fleet.router.signals.interval='1 us'
  assert_status 2
  [[ $stderr == *"must be 0 or at least 1 ms"* ]]
  fs_run check "$scenario" --set fleet.router.policy=weighted --set fleet.router.signals.interval='0 s'
  assert_status 2
  fs_run check "$scenario" --set fleet.router.signals='{interval: 1 ms, delay: 60 s}'
  assert_status 2
  [[ $stderr == *"at most 1000 intervals"* ]]
}

@test "prefix-saving: 11 replicas are enough with a router that knows caches, not with one that does not" {
  local scenario=$FLEETSIM_SOURCE_DIR/scenarios/prefix-saving policy
  for policy in prefix_aware round_robin; do
    fs_run run "$scenario" --json --quiet --no-output --set fleet.router.policy=$policy \
      --set fleet.pools[0].autoscaler.replicas=11
    assert_status 0
    if [ $policy = prefix_aware ]; then
      json 'round(100 * d["slo"]["attainment"], 2) == 98.79 and d["routing"]["load_max_over_mean"] < 1.2'
    else
      json 'd["slo"]["attainment"] < 0.5 and d["prefix"]["token_hit_rate"] < 0.4'
    fi
  done
}

@test "recorded conversations through 8 replicas: what the scenario's README says" {
  local data=$FLEETSIM_SHARED/data/mooncake scenario=$FLEETSIM_SOURCE_DIR/scenarios/prefix-saving/mooncake.yaml
  [ -e "$data/conversation_trace.jsonl.gz" ] || skip "data/mooncake is absent"
  fs_run run "$scenario" --json --quiet --no-output \
    --set "workload[0].arrivals.file=$data/conversation_trace.jsonl.gz"
  assert_status 0
  json 'd["prefix"]["hit_tokens"] == 51563280 and round(d["latency"]["ttft_s"]["p99"], 2) == 4.86'
  local digest
  digest=$("$FLEETSIM_PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["digest"])' <<<"$output")
  fs_run run "$scenario" --json --quiet --no-output --step-by-step \
    --set "workload[0].arrivals.file=$data/conversation_trace.jsonl.gz"
  json "d['digest'] == '$digest'"
  fs_run run "$scenario" --json --quiet --no-output --set fleet.router.policy=round_robin \
    --set "workload[0].arrivals.file=$data/conversation_trace.jsonl.gz"
  json 'd["prefix"]["hit_tokens"] == 17309808 and d["routing"]["load_max_over_mean"] > 1.5'
}
