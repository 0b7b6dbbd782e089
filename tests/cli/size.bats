#!/usr/bin/env bats
# `fleetsim size`: the smallest static fleet that meets the SLO.
load helpers

small() {
  sed 's/rate: 2 \/s/rate: 40 \/s/; s/horizon: 10 min/horizon: 2 min/' \
    "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" >small.yaml
}

static() {
  "$FLEETSIM_BIN" run small.yaml --json --quiet --no-output --set "fleet.pools[0].initial_replicas=$1" \
    --set "fleet.pools[0].autoscaler={policy: static, replicas: $1}" "${@:2}"
}

@test "one replica fewer misses the SLO, by the runs themselves" {
  small
  fs_run size small.yaml --json --quiet
  assert_status 0
  printf '%s\n' "$output" >out.json
  n=$(json out.json 'o["replicas"]')
  [ "$n" -gt 2 ]
  [ "$(json out.json 'o["one_fewer"]')" = $((n - 1)) ]
  static "$n" >enough.json
  static $((n - 1)) >few.json
  [ "$(json enough.json 'o["slo"]["attainment"] >= 0.95')" = True ]
  [ "$(json few.json 'o["slo"]["attainment"] < 0.95')" = True ]
  [ "$(json out.json 'o["one_fewer_attainment"]')" = "$(json few.json 'o["slo"]["attainment"]')" ]
}

@test "what binds follows what is scarce" {
  small
  fs_run size small.yaml --quiet
  assert_output_has "what binds: compute"
  fs_run size small.yaml --quiet --set fleet.pools[0].engine.max_num_seqs=2
  assert_output_has "what binds: queue (max_num_seqs)"
  fs_run size small.yaml --quiet --set fleet.pools[0].engine.num_gpu_blocks_override=600
  assert_output_has "what binds: KV"
  fs_run size small.yaml --quiet --set workload[0].arrivals.rate=1/s
  assert_output_has "1 replica all day meets the SLO"
  assert_output_has "what binds: nothing, one replica being the least"
}

@test "over replications" {
  small
  fs_run size small.yaml --json --quiet --replications 3
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["replications"], o["replicas_most"] >= o["replicas_mean"]')" = "(3, True)" ]
  [ "$(json out.json 'o["replicas_half_interval"] >= 0')" = True ]
}

@test "what cannot be sized is said" {
  small
  fs_run size small.yaml --quiet --set workload[0].slo.ttft=1us
  assert_status 1
  assert_stderr_has "no fleet meets it"
  fs_run size small.yaml --quiet --set 'workload[0].slo={ttft: 1 s}'
  assert_status 2
  assert_stderr_has "no class states"
}
