#!/usr/bin/env bats
# Expert load as a user meets it: layout's option, refusals, the groups of a result file, scenarios.
# $stderr is bats' own.
# shellcheck disable=SC2154
load helpers

SCENARIOS=$FLEETSIM_SOURCE_DIR/scenarios

small() { # small.yaml: ten minutes of a small model
  cat >small.yaml <<'YAML'
name: small
seed: 1
start: 2026-03-02T00:00:00Z
horizon: 10 min
drain: false
workload:
  - name: chat
    arrivals: {process: poisson, rate: 1 /s}
    prompt_tokens: {dist: exponential, mean: 300}
    output_tokens: {dist: geometric, mean: 40}
fleet:
  pools:
    - name: main
      model: qwen3-30b-a3b
      gpu: h100-sxm
      parallel: {tensor: 1, attention_data: 8, expert: 8}
      engine: {max_num_seqs: 64, max_num_batched_tokens: 2048}
      step_time:
        model: roofline
        experts:
          {popularity: {dist: lognormal, sigma: 1.15}, layer_groups: 3, drift_time: 2 min, epoch: 1 min, placement: eplb}
      autoscaler: {policy: static, replicas: 1}
YAML
}

json() { # expression on d
  "$FLEETSIM_PYTHON" -c "import json, sys; d = json.load(sys.stdin); assert $1, d" <<<"$output"
}

@test "layout prices a popularity, and copies take their memory" {
  local kimi=(layout --model kimi-k3 --gpu h200-sxm --nodes 2 --json)
  fs_run "${kimi[@]}"
  json '[l for l in d["layouts"] if l["layout"] == "TP4 DP4 EP16"][0]["decode_busiest_over_mean"] < 1.12'
  local chunk
  chunk=$("$FLEETSIM_PYTHON" -c "import json, sys; print(json.load(sys.stdin)['layouts'][0]['chunk_s'])" <<<"$output")
  fs_run "${kimi[@]}" --popularity lognormal:1.15
  assert_status 0
  json "d['layouts'][0]['chunk_s'] > 1.1 * $chunk and d['layouts'][0]['chunk_busiest_over_mean'] > 1.2"
  fs_run "${kimi[@]}" --popularity lognormal:1.15 --placement eplb --redundant 16
  json "d['layouts'][0]['chunk_s'] < 1.02 * $chunk and all(l['expert'] > 1 for l in d['layouts'])"
}

@test "layout refuses a popularity it does not know" {
  fs_run layout --model kimi-k3 --gpu h200-sxm --nodes 2 --popularity pareto:1
  assert_status 2
  [[ $stderr == *"know uniform, lognormal:SIGMA"* ]]
  fs_run layout --model kimi-k3 --gpu h200-sxm --nodes 2 --popularity zipf
  assert_status 2
  fs_run layout --model llama-3.1-70b --gpu h200-sxm --popularity uniform
  assert_status 2
  [[ $stderr == *"has no experts"* ]]
}

@test "half a slot, a factor stated twice, and a table of the wrong length are refused" {
  local pool='fleet.pools[0].step_time'
  fs_run check "$SCENARIOS/expert-skew" --set "$pool.redundant_experts=16"
  assert_status 2
  [[ $stderr == *"272 expert slots"* ]]
  fs_run check "$SCENARIOS/expert-skew" --set "$pool.expert_imbalance=1.5"
  assert_status 2
  [[ $stderr == *"both expert_imbalance and experts.popularity"* ]]
  fs_run check "$SCENARIOS/expert-skew" --set "$pool.experts.popularity={dist: table, values: [1, 2]}"
  assert_status 2
  [[ $stderr == *"2 values for 256 experts"* ]]
  fs_run check "$SCENARIOS/expert-skew" --set "$pool.experts.rebalance=20 min"
  assert_status 2
  [[ $stderr == *"multiple of epoch"* ]]
}

@test "an hour of expert-skew: groups in the file, the same bytes step by step" {
  fs_run run "$SCENARIOS/expert-skew" --set 'horizon=75 min' -o spans.h5 --quiet
  assert_status 0
  fs_run run "$SCENARIOS/expert-skew" --set 'horizon=75 min' -o steps.h5 --quiet --step-by-step
  assert_status 0
  cmp spans.h5 steps.h5
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py
import numpy as np
f = h5py.File("spans.h5")
gpu, experts = f["gpu"], f["experts"]
tokens = gpu["tokens"][:5].reshape(5, 8, 32)
assert (tokens.sum(axis=2) == experts["pairs"][:5]).all()
ratio = tokens.max(axis=2) / tokens.mean(axis=2)
assert np.allclose(ratio, experts["max_over_mean"][:5])
assert np.allclose(1 / ratio, experts["mean_over_max"][:5])
assert experts["placements"][4, 0] == 1 and experts["stall"][4, 0] > 0
assert ratio[0].mean() < 1.2 < 1.5 < ratio[3].mean()  # drift undoes the placement
assert len(f["hot_experts/expert"]) == 5 * 8 * 5
PY
}

@test "an experts popularity that nothing can follow is refused, with its place" {
  small
  fs_run check small.yaml --set 'fleet.pools[0].model=llama-3.1-8b' --set 'fleet.pools[0].parallel={tensor: 8}'
  assert_status 2
  [[ $stderr == *"small.yaml:"*"'Llama 3.1 8B' has no experts"* ]]
  local key='fleet.pools[0].step_time.experts.popularity' zeros
  zeros=$(printf '0, %.0s' {1..128})
  fs_run check small.yaml --set "$key={dist: table, values: [${zeros%, }]}"
  assert_status 2
  [[ $stderr == *"values 0 to 127 are all 0"* ]]
  fs_run check small.yaml --set "$key={dist: table, values: [1, ${zeros}1, $zeros$zeros]}"
  assert_status 2
  [[ $stderr == *"386 values for 128 experts; with 3 layer groups give 128 or 384"* ]]
  fs_run check small.yaml --set "$key={dist: table, values: [1, ${zeros}$zeros${zeros%, 0, }]}"
  assert_status 2
  [[ $stderr == *"values 128 to 255 are all 0"* ]]
  sed 's/top_k: 8,/top_k: 128,/' "$FLEETSIM_SOURCE_DIR/models/catalog/llm/qwen3-30b-a3b.yaml" >most.yaml
  sed -i 's/experts: 128/experts: 256/; /^published/d' most.yaml
  fs_run check small.yaml --set 'fleet.pools[0].model=./most.yaml'
  assert_status 0
  sed 's/top_k: 128/top_k: 129/' most.yaml >more.yaml
  fs_run check small.yaml --set 'fleet.pools[0].model=./more.yaml'
  assert_status 2
  [[ $stderr == *"129 experts per token"* ]]
  fs_run layout --model ./more.yaml --gpu h100-sxm --popularity uniform
  assert_status 2
  [[ $stderr == *"129 experts: a popularity is modelled for up to 128"* ]]
  # Four groups of which a token uses two: 2 x 64 experts to choose from.
  sed 's/top_k: 128/top_k: 128, groups: 4, top_groups: 2/' most.yaml >node.yaml
  fs_run check small.yaml --set 'fleet.pools[0].model=./node.yaml'
  assert_status 0
  sed -i 's/groups: 4, top_groups: 2/groups: 4, top_groups: 1/' node.yaml
  fs_run check small.yaml --set 'fleet.pools[0].model=./node.yaml'
  assert_status 2
  [[ $stderr == *"128 experts out of 1 groups of 64: too few"* ]]
}

@test "rows of expert load hold what the hourly rows hold, whatever the interval, epoch and warm-up" {
  small
  local interval epoch warmup
  for warmup in 0 150; do
    for epoch in 60 120 300; do
      for interval in 30 60 120 200; do
        fs_run run small.yaml --set "output.trace_interval=$interval s" --set "warmup=$warmup s" \
          --set "fleet.pools[0].step_time.experts.epoch=$epoch s" \
          --set "fleet.pools[0].step_time.experts.rebalance=$epoch s" -o small.h5 --quiet --force
        assert_status 0
        "$FLEETSIM_PYTHON" - $warmup $epoch $interval <<'PY'
import sys
import h5py
import numpy as np
warmup, epoch, interval = map(int, sys.argv[1:])
f = h5py.File("small.h5")
e, hourly = f["experts"], f["hourly"]
executed = hourly["tokens_prefill_executed"][:] + hourly["tokens_decode_executed"][:]
assert (e["tokens"][:] == executed).all(), (e["tokens"][:, 0], executed[:, 0])
assert (e["pairs"][:] == 8 * executed).all()
assert (f["gpu/tokens"][:].reshape(len(executed), 3, 8).sum(axis=2) == e["pairs"][:]).all()
# A placement exactly at an edge belongs to the interval that it opens.
starts = np.arange(len(executed)) * interval
expected = [sum(start <= t < start + interval and t >= warmup for t in range(epoch, 600, epoch)) for start in starts]
assert e["placements"][:, 0].tolist() == expected, (e["placements"][:, 0], expected)
moved = e["moved_copies"][:].sum(axis=1)
assert ((e["stall"][:, 0] > 0) == (moved > 0)).all() and (moved[e["placements"][:, 0] == 0] == 0).all()
none = e["pairs"][:] == 0
for name in ("max_over_mean", "mean_over_max", "step_max_over_mean", "expert_max_over_mean"):
    assert (np.isnan(e[name][:]) == none).all(), name
PY
      done
    done
  done
}

@test "copies of hot experts are those at the end of the interval, though they are placed anew right then" {
  small
  local pool='fleet.pools[0].step_time' interval
  for interval in 60 120; do # the placement at 120 s comes before the edge, and after it
    fs_run run small.yaml --set "$pool.redundant_experts=128" --set "$pool.experts.epoch=120 s" \
      --set "$pool.experts.drift_time=10 s" --set "$pool.experts.rebalance=120 s" \
      --set "output.trace_interval=$interval s" -o $interval.h5 --quiet
    assert_status 0
  done
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py
def copies(file, interval):
    hot = {name: column[:] for name, column in h5py.File(file)["hot_experts"].items()}
    return {(start + interval, group, expert): count for start, group, expert, count
            in zip(hot["start"], hot["layer_group"], hot["expert"], hot["copies"])}
minutes, twos = copies("60.h5", 60), copies("120.h5", 120)
both = minutes.keys() & twos.keys()
assert len(both) >= 50, len(both)
assert max(minutes.values()) > 4
assert all(minutes[key] == twos[key] for key in both)
PY
}

@test "the sweeps of the scenarios are sound" {
  fs_run sweep "$SCENARIOS/expert-skew" --dry-run
  assert_status 0
  assert_output_has 135
  fs_run sweep "$SCENARIOS/kimi-k3-two-nodes" --dry-run
  assert_status 0
  assert_output_has 120
}

@test "a file without a popularity has no such groups" {
  fs_run run "$SCENARIOS/kimi-k3-two-nodes" -o k3.h5 --quiet
  assert_status 0
  "$FLEETSIM_PYTHON" -c "import h5py; f = h5py.File('k3.h5'); assert 'gpu' not in f and 'experts' not in f"
}

# What the README of kimi-k3-two-nodes says: the worked answer's choice, and what skew does to both.
@test "kimi-k3-two-nodes: the worked answer holds under its assumptions, and skew decides the fitted one" {
  local ep16='fleet.pools[0].parallel={tensor: 4, attention_data: 4, expert: 16}'
  local skew='fleet.pools[0].step_time.experts.popularity={dist: lognormal, sigma: 1.15}'
  cost() { # scenario, settings: dollars per million tokens
    local file=$1 sets=()
    shift
    for set in "$@"; do
      sets+=(--set "$set")
    done
    "$FLEETSIM_BIN" run "$SCENARIOS/kimi-k3-two-nodes/$file" "${sets[@]}" --json --quiet -o cost.h5 --force |
      "$FLEETSIM_PYTHON" -c "import json, sys; print(json.load(sys.stdin)['cost']['usd_per_mtok_total'])"
  }
  "$FLEETSIM_PYTHON" - "$(cost worked.yaml)" "$(cost worked.yaml "$ep16")" "$(cost worked.yaml "$skew")" \
    "$(cost worked.yaml "$ep16" "$skew")" "$(cost scenario.yaml)" "$(cost scenario.yaml "$ep16")" \
    "$(cost scenario.yaml "$skew")" "$(cost scenario.yaml "$ep16" "$skew")" <<'PY'
import sys
b, a, b_skew, a_skew, fb, fa, fb_skew, fa_skew = map(float, sys.argv[1:])
assert abs(a / b - 1.35) < 0.01, a / b
assert 1.45 < a_skew / b_skew < 1.55, a_skew / b_skew
assert abs(fa / fb - 0.94) < 0.01, fa / fb
assert 0.99 < fa_skew / fb_skew < 1.03, fa_skew / fb_skew
PY
}
