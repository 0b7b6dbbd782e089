#!/usr/bin/env bats
# The day of scenarios/chat-1m: with a hundredth of the users everywhere, at full size in release.
load helpers

DAY=$FLEETSIM_SOURCE_DIR/scenarios/chat-1m

full_size() {
  ! grep -q __asan_init "$FLEETSIM_BIN" || skip "the full day takes minutes under sanitizers"
}

# readme_shows FILE: the README's first block is this output of `run`, but for the line of its speed.
# FLEETSIM_UPDATE=1 writes it anew.
readme_shows() {
  "$FLEETSIM_PYTHON" - "$FLEETSIM_SOURCE_DIR/README.md" "$1" <<'PY'
import difflib, os, sys
page, output = (open(name, encoding="utf-8").read() for name in sys.argv[1:])
start = page.index("```\n", page.index("run-output: begin")) + 4
last = "written: chat-1m.h5\n"
end = page.index(last, start) + len(last)
if os.environ.get("FLEETSIM_UPDATE") == "1":
    open(sys.argv[1], "w", encoding="utf-8").write(page[:start] + output + page[end:])
    sys.exit()
def timeless(text):
    return [line for line in text.splitlines() if not line.startswith("  speed ")]
difference = list(difflib.unified_diff(timeless(page[start:end]), timeless(output), "README.md",
                                       "fleetsim run", lineterm=""))
print(*difference, sep="\n")
sys.exit(bool(difference))
PY
}

@test "full day, autoscaled: references, floor ≤ billed ≤ peak, audit, and what the README shows" {
  full_size
  "$FLEETSIM_BIN" run "$DAY/scenario.yaml" -o chat-1m.h5 --quiet >out.txt
  grep -q "^audit: ok" out.txt
  "$FLEETSIM_PYTHON" - <<'PY'
import h5py
with h5py.File("chat-1m.h5") as file:
    summary = {name: file["summary"][name][0] for name in file["summary"] if name != "pool"}
print({k: v for k, v in summary.items() if k.startswith("gpu_hours")})
assert round(summary["gpu_hours_floor"]) == 1528
assert (summary["gpu_hours_ideal"], summary["gpu_hours_peak"]) == (2196, 6552)
assert summary["gpu_hours_floor"] <= summary["gpu_hours_billed"] <= summary["gpu_hours_peak"]
assert abs(summary["arrived"] - 15e6) < 4 * 15e6 ** 0.5
assert summary["completed"] == summary["arrived"] and summary["slo_met"] == 1
PY
  readme_shows out.txt
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
