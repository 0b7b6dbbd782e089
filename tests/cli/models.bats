#!/usr/bin/env bats
# plan, layout, levers and list: the worked answers as a user sees them, and what is refused.
load helpers

json() { # expression on d
  "$FLEETSIM_PYTHON" -c "import json, sys; d = json.load(sys.stdin); assert $1, d" <<<"$output"
}

@test "plan shows the chain with every assumption" {
  fs_run plan "$FLEETSIM_SOURCE_DIR/scenarios/chat-1m" --model llama-3.1-70b --gpu h200-sxm
  assert_status 0
  for text in 15,000,000 173.6 520.8 781,250 208,333 138.9 52.1 272.8 6,552 2,196 4,392 26,208 \
    131,760 786,240 0.1318 0.7862 0.1541 0.9196 28,500,000,000 6,510 "296.9 MiB" "2.03  TB" \
    "GPUs by hour" "what moves the answer"; do
    assert_output_has "$text"
  done
  [[ $stderr == *"2.09 PFLOP/s"*"1.98 PFLOP/s"* ]]
}

@test "plan follows what is set, and its JSON is whole" {
  local scenario=$FLEETSIM_SOURCE_DIR/scenarios/chat-1m
  fs_run plan "$scenario" --json --set 'workload[0].output_tokens.value=800'
  assert_status 0
  json 'd["gpu_hours_ideal"] == 3781'
  fs_run plan "$scenario" --json --set 'workload[0].arrivals.users.daily=2e6'
  json 'd["gpu_hours_ideal"] == 4375'
  fs_run plan "$scenario" --json --set 'workload[0].arrivals.curve.peak_factor=2'
  json 'd["gpu_hours_ideal"] == 2195'
  fs_run plan "$scenario" --json --set 'fleet.pools[0].target_utilization=0.85'
  json 'd["gpu_hours_ideal"] == 1806'
  fs_run plan "$scenario" --json --set 'fleet.pools[0].step_time.prefill_tokens_per_s=7000'
  json 'd["gpu_hours_ideal"] == 2876 and d["gpus_peak"] == 358'
  json 'len(d["hourly_gpus"]) == 24 and sum(d["hourly_gpus"]) == 2876'
  json '[s["swing"] for s in d["sensitivity"]] == sorted((s["swing"] for s in d["sensitivity"]), reverse=True)'
}

@test "plan compares with an API" {
  fs_run plan "$FLEETSIM_SOURCE_DIR/scenarios/chat-1m" --json --api-input 0.20 --api-output 0.80
  assert_status 0
  json 'abs(d["api"]["usd_per_day"] - 9300) < 1e-6'
  json 'abs(d["api"]["break_even_utilization"]["low"] - 0.3286) < 1e-3'
  fs_run plan "$FLEETSIM_SOURCE_DIR/scenarios/chat-1m" --api-input 0.20
  assert_status 2
  [[ $stderr == *"go together"* ]]
}

@test "layout gives the worked answer for kimi-k3 on two nodes" {
  fs_run layout --model kimi-k3 --gpu h200-sxm --nodes 2 --sheet --json --all
  assert_status 0
  json 'd["fits"] and abs(d["expert_bytes"] - 1.446456e12) < 1e6 and d["memory_bytes"] == 2256e9'
  json 'any(l["layout"] == "TP4 DP2 EP8 PP2" and abs(l["link_bytes_per_layer"] - 308.28e6) < 1e4 for l in d["layouts"])'
  json 'any(l["layout"] == "TP4 DP4 EP16" and abs(l["network_bytes_per_layer"] - 88.08e6) < 1e4 for l in d["layouts"])'
  json 'all(l["collectives_per_token"] == 184 for l in d["layouts"])'
  [[ $stderr == *"has no fp4 math"*"computed at the bf16 rate"* ]]
  fs_run layout --model kimi-k3 --gpu h200-sxm --sheet
  assert_status 0
  assert_output_has "does not fit: the weights alone exceed all memory by 431.9 GB"
}

@test "layout refuses what is wrong, by name" {
  fs_run layout --model kimi-k4 --gpu h201-sxm
  assert_status 2
  [[ $stderr == *"unknown model 'kimi-k4', did you mean 'kimi-k2'?"* ]]
  [[ $stderr == *"unknown gpu 'h201-sxm', did you mean 'h200-sxm'?"* ]]
  fs_run layout --model llama-3.1-70b --gpu h200-sxm --weights fp9
  assert_status 2
  [[ $stderr == *"--weights 'fp9' is not known, did you mean 'fp8'?"* ]]
  fs_run layout --gpu h200-sxm
  assert_status 64
  echo '{"num_hidden_layers": 3,,}' >config.json
  fs_run layout --model ./config.json --gpu h200-sxm
  assert_status 2
  [[ $stderr == *"config.json:1:"* ]]
}

@test "levers multiply, and say whether it is enough" {
  fs_run levers
  assert_status 0
  for text in 0.5556 0.1667 3.33x 2.60 -61.5 4.33 -76.9 "quality guards" Enough; do
    assert_output_has "$text"
  done
  fs_run levers --json --lever fp8=1.6 --lever caching=1.25 --lever 'drafts=1.3,exact verification'
  json 'abs(d["product"] - 2.6) < 1e-12 and not d["enough"]'
  fs_run levers --lever fp8
  assert_status 2
}

@test "list shows the catalogue, and a model's cost on every GPU" {
  fs_run list gpus --json
  assert_status 0
  json 'len(d["gpus"]) >= 16'
  fs_run list models --json
  json 'len(d["models"]) >= 33'
  fs_run list prices --json
  json 'all(p["date"] and p["source"] for p in d["prices"])'
  fs_run list gpus --model llama-3.1-405b --tpot '50 ms' --json
  assert_status 0
  json 'any(not g["feasible"] and g["why_not"] for g in d["gpus"])'
  json 'all(g["tpot_s"] <= 0.05 for g in d["gpus"] if g["feasible"])'
  fs_run list planets
  assert_status 64
}
