#!/usr/bin/env bats
# The scenarios of autoscaling: what their READMEs say, from the runs themselves.
load helpers

SCENARIOS=$FLEETSIM_SOURCE_DIR/scenarios

@test "scale-to-zero: half of the bill, and 95.6 % within a second" {
  fs_run compare "$SCENARIOS/scale-to-zero/scenario.yaml" --json --quiet --variant 15min: \
    --variant always:fleet.pools[0].autoscaler.min_replicas=1
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'round(100 * o["variants"][0]["saving"], 1)')" = 53.8 ]
  [ "$(json out.json 'round(o["variants"][0]["result"]["cost"]["usd"])')" = 233 ]
  [ "$(json out.json 'round(100 * o["variants"][0]["result"]["slo"]["attainment"], 2)')" = 95.63 ]
  [ "$(json out.json 'o["cheapest_that_meets_slo"]')" = 15min ]
}

@test "warm-pool: ten spares, and 23 replicas all day for less" {
  fs_run compare "$SCENARIOS/warm-pool/scenario.yaml" --json --quiet --variant none: \
    --variant ten:fleet.pools[0].autoscaler.spares=10 \
    --variant 'peak:fleet.pools[0].autoscaler={policy: static, replicas: 23}'
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json '[round(v["result"]["cost"]["usd"]) for v in o["variants"]]')" = "[278, 460, 414]" ]
  [ "$(json out.json '[v["slo_met"] for v in o["variants"]]')" = "[0, 1, 1]" ]
  [ "$(json out.json 'o["cheapest_that_meets_slo"]')" = peak ]
}

@test "autoscale-vs-peak: at a hundredth of the users every policy lies between floor and peak" {
  fs_run compare "$SCENARIOS/autoscale-vs-peak/scenario.yaml" --json --quiet \
    --set workload[0].arrivals.users.daily=1e4 --set fleet.pools[0].autoscaler.min_replicas=1 \
    --policies static,target,predictive,ideal
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'all(v["result"]["gpu_hours"]["floor"] <= v["result"]["gpu_hours"]["billed"] <= v["result"]["gpu_hours"]["peak"] for v in o["variants"])')" = True ]
  [ "$(json out.json 'o["variants"][1]["saving"] > 0.4')" = True ]
}

@test "levers: together they gain more than the product of each alone" {
  levers() {
    "$FLEETSIM_BIN" size "$SCENARIOS/levers/scenario.yaml" --json --quiet "${@:2}" >"$1.json"
  }
  fp8='fleet.pools[0].precision={weights: fp8, kv: fp8}'
  cache=(--set fleet.pools[0].engine.enable_prefix_caching=true --set fleet.router.policy=prefix_aware)
  seats=(--set fleet.pools[0].engine.max_num_seqs=256
    --set fleet.pools[0].engine.max_num_batched_tokens=4096)
  levers base
  levers seats "${seats[@]}"
  levers joint --set "$fp8" "${cache[@]}" "${seats[@]}" --set fleet.pools[0].price.usd_per_gpu_hour=2.2
  [ "$(json base.json 'o["replicas"], round(o["usd_per_mtok_total"], 4)')" = "(72, 0.3404)" ]
  [ "$(json seats.json 'o["replicas"], round(o["usd_per_mtok_total"], 4)')" = "(63, 0.3002)" ]
  [ "$(json joint.json 'o["replicas"], round(o["usd_per_mtok_total"], 4)')" = "(12, 0.0414)" ]
}
