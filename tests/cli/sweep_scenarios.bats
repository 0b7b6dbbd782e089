#!/usr/bin/env bats
# The sweeps of scenarios/: small everywhere, and in release what their READMEs say.
# $status and $stderr are of bats.
# shellcheck disable=SC2034
load helpers

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  unset SLURM_ARRAY_TASK_ID
  SCENARIOS=$FLEETSIM_SOURCE_DIR/scenarios
}

full_size() {
  ! grep -q __asan_init "$FLEETSIM_BIN" || skip "full days take minutes under sanitizers"
}

@test "every sweep of scenarios/ has sound points only" {
  for sheet in "$SCENARIOS"/*/sweep.yaml; do
    fs_run sweep "$sheet" --dry-run
    assert_status 0
  done
  fs_run sweep "$SCENARIOS/overnight" --dry-run
  [[ $output == *"overnight: 600 points"* ]]
}

@test "overnight, headroom and double-traffic, ten minutes of some of their points" {
  fs_run sweep "$SCENARIOS/overnight" -o o --quiet --set horizon='10 min' --only 'cold_start=2 min' --only peak=3
  assert_status 0
  assert_output_has "20 done, 0 failed, 580 missing"
  fs_run sweep "$SCENARIOS/headroom" -o h --quiet --set horizon='10 min' --replications 1
  assert_status 0
  assert_output_has "22 done, 0 failed, 0 missing"
  fs_run sweep "$SCENARIOS/double-traffic" -o d --quiet --set horizon='10 min' --replications 1
  assert_status 0
  assert_output_has "25 done, 0 failed, 0 missing"
}

@test "headroom: 90 % holds, 95 % does not" {
  full_size
  fs_run sweep "$SCENARIOS/headroom" -o h --quiet --only 'target=90 %' --only 'target=95 %' --only 'cold_start=0 s'
  assert_status 0
  "$FLEETSIM_PYTHON" - <<'PY'
import xarray as xr
d = xr.open_dataset("h/sweep.h5").sel(cold_start=0)
at = lambda target: d.sel(target=target, method="nearest")
assert round(float(at(90).usd_rep_mean)) == 320 and round(float(at(90).usd_rep_half)) == 4
assert round(100 * float(at(90).slo_attainment_rep_mean), 2) == 98.36
assert round(100 * float(at(95).slo_attainment_rep_mean), 2) == 21.03
PY
}

@test "double-traffic: 15 GPUs carry 75,000 users and not 87,500" {
  full_size
  fs_run sweep "$SCENARIOS/double-traffic" -o d --quiet --only quota=15 --only users=75000 --only users=87500
  assert_status 0
  "$FLEETSIM_PYTHON" - <<'PY'
import xarray as xr
d = xr.open_dataset("d/sweep.h5").sel(quota=15)
assert round(100 * float(d.slo_attainment_rep_mean.sel(users=75000)), 2) == 98.48
assert round(100 * float(d.slo_attainment_rep_mean.sel(users=87500)), 2) == 54.89
PY
}

@test "overnight: what the cache is worth, and the router that knows of it" {
  full_size
  fs_run sweep "$SCENARIOS/overnight" -o o --quiet --only policy=target --only policy=slo --only 'cold_start=2 min' --only peak=3
  assert_status 0
  "$FLEETSIM_PYTHON" - <<'PY'
import xarray as xr
d = xr.open_dataset("o/sweep.h5").sel(cold_start=120, peak=3)
assert [round(float(x)) for x in d.usd.sel(policy="target")] == [225, 209, 190, 190], d.usd
assert [round(float(x)) for x in d.usd.sel(policy="slo")] == [256, 215, 171, 178], d.usd
assert [round(float(x), 3) for x in d.ttft_p99.sel(policy="target")] == [0.534, 0.265, 0.143, 0.273]
share = d.tokens_cached / d.tokens_prompt
assert [round(float(x), 2) for x in share.sel(policy="target")][0] == 0
PY
}
