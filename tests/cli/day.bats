#!/usr/bin/env bats
# The day of scenarios/chat-1m: with a hundredth of the users everywhere, at full size in release.
load helpers

DAY=$FLEETSIM_SOURCE_DIR/scenarios/chat-1m

full_size() {
  ! grep -q __asan_init "$FLEETSIM_BIN" || skip "the full day takes minutes under sanitizers"
}

@test "full day, autoscaled: references, floor ≤ billed ≤ peak, audit, result file" {
  full_size
  "$FLEETSIM_BIN" run "$DAY" --json --quiet -o day.h5 >out.json
  [ "$(json out.json '[round(o["gpu_hours"][k]) for k in ("floor", "ideal", "peak")]')" = \
    "[1528, 2196, 6552]" ]
  [ "$(json out.json 'o["gpu_hours"]["ideal"], o["gpu_hours"]["peak"]')" = "(2196, 6552)" ]
  [ "$(json out.json 'o["gpu_hours"]["floor"] <= o["gpu_hours"]["billed"] <= o["gpu_hours"]["peak"]')" = True ]
  [ "$(json out.json 'abs(o["requests"]["arrived"] - 15e6) < 4 * 15e6 ** 0.5')" = True ]
  [ "$(json out.json 'o["audit"]["ok"]')" = True ]
}

@test "full day at peak size: hour 20 has TPOT 30–40 ms and 24–29 requests per ready GPU" {
  full_size
  "$FLEETSIM_BIN" run "$DAY/peak.yaml" --json --quiet --no-output --hourly hours.csv >out.json
  [ "$(json out.json 'o["gpu_hours"]["billed"]')" = 6552 ]
  [ "$(json out.json 'o["audit"]["ok"]')" = True ]
  "$FLEETSIM_PYTHON" - <<'PY'
import csv
row = [r for r in csv.DictReader(open("hours.csv")) if r["pool"] == "all"][20]
assert row["start"] == "72000", row["start"]
for key in ("tpot_mean", "tpot_p50"):
    assert 0.030 <= float(row[key]) <= 0.040, row[key]
assert 24 <= float(row["in_flight_per_ready_gpu"]) <= 29, row["in_flight_per_ready_gpu"]
PY
}

@test "a hundredth of the day: the table has 24 hours in UTC, the evening is the peak" {
  fs_run run "$DAY" --no-output --set workload[0].arrivals.users.daily=1e4
  assert_status 0
  assert_output_has "audit: ok"
  [ "$(grep -cE '^[0-2][0-9]:00 ' <<<"$output")" = 24 ]
  [ "$(grep -E '^[0-2][0-9]:00 ' <<<"$output" | tr -d , | sort -k2n | tail -n 1 | cut -c1-2)" -ge 19 ]
  assert_output_has "need, GPUs"
}
