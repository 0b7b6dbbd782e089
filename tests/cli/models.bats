#!/usr/bin/env bats
# plan, layout, levers and list: the worked answers as a user sees them, and what is refused.
# $stderr is bats' own.
# shellcheck disable=SC2154
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

@test "a name is met by the catalogue's names that share its parts" {
  fs_run layout --model llama-70b --gpu h200
  assert_status 2
  [[ $stderr == *"unknown model 'llama-70b', did you mean 'llama-3.1-70b' or 'llama-3.3-70b'?"* ]]
  [[ $stderr == *"unknown gpu 'h200', did you mean 'h200-sxm'?"* ]]
  fs_run layout --model meta-llama/Llama-3.1-8B-Instruct --gpu H100
  assert_status 2
  [[ $stderr == *"cannot open model file 'meta-llama/Llama-3.1-8B-Instruct', did you mean 'llama-3.1-8b'?"* ]]
  [[ $stderr == *"unknown gpu 'H100', did you mean 'h100-sxm'?"* ]]
  fs_run layout --model zzz --gpu h200-sxm
  [[ $stderr == *"unknown model 'zzz' (\`fleetsim list models\` names them; a path works too)"* ]]
}

@test "a catalogue that is not there, or empty, is said once and why" {
  FLEETSIM_CATALOG=/nonexistent fs_run list models
  assert_status 2
  [[ $stderr == *"no catalogue: FLEETSIM_CATALOG names '/nonexistent', which is no folder"* ]]
  FLEETSIM_CATALOG=/nonexistent fs_run layout --model kimi-k3 --gpu h200-sxm
  assert_status 2
  [[ $stderr == *"no catalogue to look up model 'kimi-k3': FLEETSIM_CATALOG names '/nonexistent'"* ]]
  for what in gpus models prices cold-starts; do
    FLEETSIM_CATALOG=$PWD fs_run list $what
    assert_status 2
    [[ $stderr == *"has no $what (no "*"/*.yaml)"* ]]
  done
}

@test "layout's options: whole numbers, no contradiction, no step of days" {
  for option in --gpus --nodes --batch --context --chunk; do
    fs_run layout --model llama-3.1-8b --gpu h100-sxm $option 1.5
    assert_status 2
    [[ $stderr == *"$option '1.5': must be a whole number"* ]]
  done
  fs_run layout --model llama-3.1-8b --gpu h100-sxm --nodes 2 --gpus 4
  assert_status 64
  fs_run list gpus --tpot '10 ms'
  assert_status 64
  fs_run layout --model llama-3.1-8b --gpu h100-sxm --batch 1e6 --context 1e8
  assert_status 2
  [[ $stderr == *"lower --batch or --context"* ]]
  fs_run layout --model llama-3.1-405b --gpu l40s --gpus 64 --chunk 1e7 --context 1e8
  assert_status 2
  [[ $stderr == *"lower --chunk or --context"* ]]
}

@test "a GPU file with a forgotten unit is an error, whichever rate it is" {
  local gpu=$FLEETSIM_SOURCE_DIR/models/catalog/gpu/h200-sxm.yaml
  for edit in 's/4.8 TB.s/4.8/' 's/^link_bandwidth.*/link_bandwidth: 450/' \
    's/^nic_bandwidth.*/nic_bandwidth: 50/' 's/^host_bandwidth.*/host_bandwidth: 64/' \
    's/^peak.*/peak: {bf16: 989}/' 's/^peak.*/peak: {bf16: 989 TFLOPS, fp8: 1979}/' \
    's/^hbm: 141 GB/hbm: 141/' 's/^hbm_real.*/hbm_real: 143771/'; do
    sed "$edit" "$gpu" >gpu.yaml
    fs_run layout --model llama-3.1-70b --gpu ./gpu.yaml
    assert_status 2
    [[ $stderr == *"gpu.yaml:"*"must be at least"* ]]
  done
}

@test "plan: capacity per replica, empty hours are 0, a peak between hours is said" {
  fs_run plan "$FLEETSIM_SOURCE_DIR/scenarios/chat-1m" --json
  json 'abs(d["replica_requests_per_s"] - 1 / (1500 / 15000 + 400 / 1500)) < 1e-12'
  printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.0,100,10\n2023-11-16 18:10:00.0,100,10\n' >t.csv
  fs_run plan "$FLEETSIM_SOURCE_DIR/scenarios/azure-conv" --set workload[0].arrivals.file=t.csv
  assert_status 0
  [[ $output != *-0* ]]
  [[ $output != *" 0.0  at the target"* && $output != *" 0.0 at the target"* ]]
  fs_run plan "$FLEETSIM_SOURCE_DIR/scenarios/chat-1m" \
    --set 'workload[0].arrivals.spikes=[{at: 10.3 h, duration: 10 min, factor: 20}]'
  assert_status 0
  [[ $stderr == *"above the busiest full hour"* ]]
  fs_run plan "$FLEETSIM_SOURCE_DIR/scenarios/chat-1m" --set 'workload[0].output_tokens.value=0'
  assert_status 2
  [[ $stderr == *"gets no output tokens"* ]]
}

roof() { # model gpu tensor: a scenario whose step time is roofline
  cat >roof.yaml <<EOF
name: roof
start: 2026-01-01T00:00:00Z
horizon: 60 s
workload:
  - name: c
    arrivals: {process: poisson, rate: 2 /s}
    prompt_tokens: {dist: constant, value: 1400}
    output_tokens: {dist: constant, value: 50}
fleet:
  router: {policy: least_loaded}
  pools:
    - name: main
      model: $1
      gpu: $2
      parallel: {tensor: $3}
      step_time: {model: roofline}
      autoscaler: {policy: static, replicas: 1}
      price: {usd_per_gpu_hour: 3}
EOF
}

@test "plan predicts the rates of the pool's model, or of the one that is asked for" {
  roof llama-3.1-70b h200-sxm 4
  fs_run plan roof.yaml --json
  assert_status 0
  json 'd["layout"] == "TP4" and d["gpus_per_replica"] == 4'
  json '4000 < d["assumptions"]["prefill_tokens_per_s_per_gpu"] < 8000'
  fs_run plan roof.yaml --gpu b200 --json
  assert_status 0
  json 'd["assumptions"]["prefill_tokens_per_s_per_gpu"] > 10000'
  local prefill
  prefill=$("$FLEETSIM_PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["assumptions"]["prefill_tokens_per_s_per_gpu"])' <<<"$output")
  fs_run plan roof.yaml --gpu b200 --cached 50% --json
  json "abs(d['assumptions']['prefill_tokens_per_s_per_gpu'] / $prefill - 2) < 1e-9"
  fs_run plan roof.yaml --model llama-3.1-8b
  assert_status 0
  assert_output_has "of Llama 3.1 8B on H200 SXM; rates by the fitted model"
}

@test "tensor parallelism beyond the domain is warned of" {
  roof llama-3.1-405b h100-sxm 16
  fs_run check roof.yaml
  assert_status 0
  [[ $stderr == *"tensor 16 crosses the scale-up domain of 8 H100 SXM"* ]]
  roof llama-3.1-405b h100-sxm 8
  fs_run check roof.yaml
  assert_status 0
  [[ $stderr != *crosses* ]]
}

@test "levers multiply, and say whether it is enough" {
  fs_run levers
  assert_status 0
  for text in 0.5556 0.1667 3.33x 2.60 -61.5 4.33 -76.9 "quality guards" Enough; do
    assert_output_has "$text"
  done
  fs_run levers --json --lever fp8=1.6 --lever caching=1.25 --lever 'drafts=1.3,exact verification'
  json 'abs(d["product"] - 2.6) < 1e-12 and not d["enough"]'
  for gain in '' =0 =-1 =nan =inf =0x10 =1e7 =1.5x; do
    fs_run levers --lever "fp8$gain"
    assert_status 2
  done
}

@test "a preset of a cold start that changes nothing is said to, and an unknown one is an error" {
  local scenario=$FLEETSIM_SOURCE_DIR/scenarios/chat-1m
  fs_run check "$scenario" --set 'fleet.pools[0].cold_start.preset=vllm-tuned-8b-l40s'
  assert_status 0
  [[ $stderr == *"the scenario itself states all that preset 'vllm-tuned-8b-l40s' does: it changes nothing"* ]]
  fs_run check "$scenario" --set 'fleet.pools[0].cold_start.preset=vllm-tuned-8b-l40'
  assert_status 2
  [[ $stderr == *"unknown cold-start preset"*"did you mean 'vllm-tuned-8b-l40s'?"* ]]
  printf 'name: a\nhardware: b\nengine: c\nsource: d\ndate: e\npreset: vllm-sleep-4b-a100\n' >nested.yaml
  fs_run check "$scenario" --set 'fleet.pools[0].cold_start.preset=./nested.yaml'
  assert_status 2
  [[ $stderr == *"nested.yaml"*"a preset cannot name another preset"* ]]
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
  fs_run list cold-starts --json
  json 'len(d["cold_starts"]) >= 10 and all(c["phases"] and c["source"] and c["date"] for c in d["cold_starts"])'
  fs_run list policies --json
  json '{"least_loaded", "prefix_aware", "weighted"} <= {r["policy"] for r in d["routers"]}'
  json '{"static", "target", "predictive"} <= {a["policy"] for a in d["autoscalers"]}'
  fs_run list planets
  assert_status 64
}
