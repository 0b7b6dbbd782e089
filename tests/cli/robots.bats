#!/usr/bin/env bats
# scenarios/robot-shift, cut to the first minutes of its shift.
load helpers

start_of_shift() {
  "$FLEETSIM_BIN" run "$FLEETSIM_SOURCE_DIR/scenarios/robot-shift" --json --quiet --no-output \
    --set "horizon=62 min" "$@" >out.json
}

@test "a fleet that was ordered ahead takes the step" {
  start_of_shift
  [ "$(json out.json 'o["requests"]["completed"] == o["requests"]["arrived"] > 230000')" = True ]
  [ "$(json out.json 'o["slo"]["attainment"] > 0.99 and o["audit"]["ok"]')" = True ]
}

@test "one that follows utilisation serves robots that have given up" {
  start_of_shift --set "fleet.pools[0].autoscaler={policy: target, metric: utilization, target: 0.7, min_replicas: 4, max_replicas: 400}"
  [ "$(json out.json 'o["requests"]["completed"] < 1000 < 200000 < o["requests"]["cancelled"]')" = True ]
  [ "$(json out.json 'o["audit"]["ok"]')" = True ]
}

@test "compare says that a closed loop's times follow from the fleet" {
  fs_run compare "$FLEETSIM_SOURCE_DIR/scenarios/robot-shift" --set "horizon=61 min" \
    --set "workload[0].arrivals={process: closed_loop, concurrency: 1000, think_time: 100 ms}" \
    --variant many: --variant few:fleet.pools[0].initial_replicas=8
  assert_status 0
  assert_output_has "identical in all 2: 1,000 requests"
  assert_output_has "their times follow from the fleet"
}

@test "robots in a closed loop pace themselves" {
  start_of_shift --set "workload[0].arrivals={process: closed_loop, concurrency: 1000, think_time: 100 ms}"
  [ "$(json out.json 'o["requests"]["completed"] == o["requests"]["arrived"] > 170000')" = True ]
  [ "$(json out.json 'o["audit"]["ok"]')" = True ]
}
