#!/usr/bin/env bats
# `fleetsim compare`: variants on the same arrivals.
load helpers

small() {
  cp "$FLEETSIM_SOURCE_DIR/tests/cli/small.yaml" small.yaml
}

@test "side by side, with identical arrivals and the cheapest that meets the SLO" {
  small
  fs_run compare small.yaml --variant as-is: \
    --variant 'peak:fleet.pools[0].autoscaler={policy: static, replicas: 5},fleet.pools[0].initial_replicas=5' \
    --variant 'rr:fleet.router.policy=round_robin'
  assert_status 0
  assert_output_has "as-is"
  assert_output_has "peak"
  assert_output_has "arrivals: identical in all 3: "
  assert_output_has "cheapest that meets the SLO: "
  assert_output_has "audit: ok in all of them"
  [[ $output != *" "$'\n'* ]] || { echo "a line ends in a blank" >&2; show_run; return 1; }
  assert_absent small.h5
}

@test "commas inside brackets, braces and quotes do not split" {
  small
  fs_run compare small.yaml --json --quiet --variant a: \
    --variant 'b:fleet.pools[0].autoscaler={policy: static, replicas: 2},fleet.pools[0].initial_replicas=2,description="one, two"'
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["variants"][1]["set"]')" = \
    "['fleet.pools[0].autoscaler={policy: static, replicas: 2}', 'fleet.pools[0].initial_replicas=2', 'description=\"one, two\"']" ]
}

@test "the JSON holds each run's own object" {
  small
  fs_run compare small.yaml --json --quiet --variant a: --variant 'b:fleet.router.policy=random'
  assert_status 0
  printf '%s\n' "$output" >out.json
  "$FLEETSIM_BIN" run small.yaml --json --quiet --no-output --set fleet.router.policy=random >b.json
  "$FLEETSIM_PYTHON" - <<'PY'
import json
o, b = json.load(open("out.json")), json.load(open("b.json"))
assert o["arrivals"]["identical"] is True
assert o["arrivals"]["requests"] == b["requests"]["arrived"]
assert o["arrivals"]["prompt_tokens"] == b["tokens"]["prompt"]
assert o["arrivals"]["output_tokens"] == b["tokens"]["output"]
mine = o["variants"][1]["result"]
mine.pop("run"), b.pop("run")
assert mine == b
billed = [v["result"]["gpu_hours"]["billed"] for v in o["variants"]]
assert [v["saving"] for v in o["variants"]] == [1 - x / max(billed) for x in billed]
cheap = min((v for v in o["variants"] if v["slo_met"] == 1), key=lambda v: v["result"]["cost"]["usd"])
assert o["cheapest_that_meets_slo"] == cheap["name"]
PY
}

@test "variants that change the traffic are told apart" {
  small
  fs_run compare small.yaml --variant a: --variant b:workload[0].arrivals.rate=3/s
  assert_status 0
  assert_output_has "arrivals: NOT the same"
}

@test "none meets the SLO: said so" {
  small
  fs_run compare small.yaml --set 'workload[0].slo={ttft: 1 ms, attainment: 99 %}' \
    --variant a: --variant b:fleet.router.policy=random
  assert_status 0
  assert_output_has "none of them meets it"
}

@test "bad variants are bad usage" {
  small
  fs_run compare small.yaml --variant a:
  assert_status 64
  assert_stderr_has "1 --variant given"
  fs_run compare small.yaml --variant a: --variant a:
  assert_status 64
  assert_stderr_has "two variants are called 'a'"
  fs_run compare small.yaml --variant a: --variant seed=2
  assert_status 64
  assert_stderr_has "has no name"
  fs_run compare small.yaml --variant a: --variant b:seed
  assert_status 64
  assert_stderr_has "'seed' is not KEY=VALUE"
  fs_run compare small.yaml --variant a: --variant 'b:fleet.router={policy: random'
  assert_status 64
  assert_stderr_has "do not close"
}

@test "everything wrong in every variant is said before the first is simulated" {
  small
  fs_run compare small.yaml --variant a:fleet.ruoter.policy=random --variant b:sede=1 --variant c:
  assert_status 2
  assert_stderr_has "variant a:"
  assert_stderr_has "did you mean 'router'"
  assert_stderr_has "variant b:"
  assert_stderr_has "did you mean 'seed'"
  [ -z "$output" ]
}

@test "--policies: a variant each, the peak from the plan, what the scenario has as it is" {
  small
  fs_run compare small.yaml --json --quiet --policies static,target,ideal,slo
  assert_status 0
  printf '%s\n' "$output" >out.json
  [ "$(json out.json '[v["name"] for v in o["variants"]]')" = "['static', 'target', 'ideal', 'slo']" ]
  [ "$(json out.json 'o["saving_against"], o["replications"]')" = "('static', 1)" ]
  [ "$(json out.json 'o["variants"][1]["set"]')" = "[]" ]
  [ "$(json out.json 'abs(o["variants"][0]["result"]["gpu_hours"]["billed"] - o["variants"][0]["result"]["gpu_hours"]["peak"]) < 1e-9')" = True ]
  [ "$(json out.json 'o["variants"][1]["met_cold_start"] > 0, o["variants"][0]["met_cold_start"]')" = "(True, 0)" ]
  [ "$(json out.json 'o["variants"][1]["saving_half_interval"]')" = None ]
}

@test "who is cheapest: all that cost as little, never an oracle; what static holds is said" {
  small
  fs_run compare small.yaml --quiet --policies static,target,ideal
  assert_status 0
  assert_output_has "saved: against static, 1 replica all the time, the plan's peak (--peak size: as few as meet the SLO)"
  [[ "$output" != *"meets the SLO: ideal"* ]]
  fs_run compare small.yaml --quiet --variant 'oracle:fleet.pools[0].autoscaler={policy: ideal}' \
    --set 'fleet.pools[0].capacity=1' --variant 'two:fleet.pools[0].autoscaler={policy: ideal}' \
    --set 'workload[0].slo={e2e: 1 h, attainment: 1 %}'
  assert_output_has "none of them meets it but an oracle, which knows the future"
  sed -i '/initial_replicas/d' small.yaml
  fs_run compare small.yaml --quiet --set 'fleet.pools[0].autoscaler={policy: static, replicas: 9}' \
    --set 'workload[0].slo={e2e: 1 h, attainment: 1 %}' --variant ll: --variant rr:fleet.router.policy=round_robin \
    --variant 'more:fleet.pools[0].autoscaler={policy: static, replicas: 10}' --variant last:
  assert_output_has "cheapest that meets the SLO: ll, rr and last, "
}

@test "--replications: paired runs give savings an interval" {
  small
  fs_run compare small.yaml --json --quiet --policies static,target --replications 3
  assert_status 0
  printf '%s\n' "$output" >out.json
  for k in 0 1 2; do
    fs_run compare small.yaml --json --quiet --policies static,target --set replication=$k
    printf '%s\n' "$output" >"one$k.json"
  done
  "$FLEETSIM_PYTHON" - <<'PY'
import json, statistics
o = json.load(open("out.json"))
saved = [json.load(open(f"one{k}.json"))["variants"][1]["saving"] for k in range(3)]
assert abs(o["variants"][1]["saving"] - statistics.mean(saved)) < 1e-12
half = 4.302652729911275 * statistics.stdev(saved) / 3 ** 0.5
assert abs(o["variants"][1]["saving_half_interval"] - half) < 1e-9
assert o["variants"][0]["saving_half_interval"] == 0
PY
}

@test "--policies and --replications that make no sense are refused" {
  small
  fs_run compare small.yaml --policies static,targt
  assert_status 2
  assert_stderr_has "did you mean 'target'?"
  fs_run compare small.yaml --policies static,schedule
  assert_status 2
  assert_stderr_has "needs more than the scenario tells"
  fs_run compare small.yaml --policies static,target --replications none
  assert_status 64
}

@test "--replications: every headline and its differences from the first variant, with their intervals" {
  small
  variants=(--variant a: --variant 'rr:fleet.router.policy=round_robin')
  fs_run compare small.yaml --quiet "${variants[@]}" --replications 6
  assert_status 0
  assert_output_has "95 % intervals over 6 replications"
  assert_output_has "Differences from a, paired by replication"
  fs_run compare small.yaml --json --quiet "${variants[@]}" --replications 6
  assert_status 0
  printf '%s\n' "$output" >out.json
  for k in 0 1 2 3 4 5; do
    "$FLEETSIM_BIN" compare small.yaml --json --quiet "${variants[@]}" --set replication=$k >"$k.json"
  done
  "$FLEETSIM_PYTHON" - <<'PY'
import json, math, statistics
o = json.load(open("out.json"))
runs = [[v["result"] for v in json.load(open(f"{k}.json"))["variants"]] for k in range(6)]
t5 = 2.5705818  # t(0.975, 5)
a = [r[0]["latency"]["ttft_s"]["mean"] for r in runs]
b = [r[1]["latency"]["ttft_s"]["mean"] for r in runs]
first, second = o["variants"]
i = first["intervals"]["ttft_mean_s"]
assert abs(i["mid"] - statistics.mean(a)) < 1e-12
assert abs((i["high"] - i["low"]) / 2 / (t5 * statistics.stdev(a) / math.sqrt(6)) - 1) < 1e-6
assert "differences" not in first
d = second["differences"]["ttft_mean_s"]
paired = [y - x for x, y in zip(a, b)]
half = t5 * statistics.stdev(paired) / math.sqrt(6)
assert abs(d["mid"] - statistics.mean(paired)) < 1e-12
assert abs((d["high"] - d["low"]) / 2 / half - 1) < 1e-6
assert abs(d["gain"] - d["unpaired_half"] / half) < 1e-6 * d["gain"] and d["gain"] > 1
p99 = sorted(r[1]["latency"]["tpot_s"]["p99"] for r in runs)
i = second["intervals"]["tpot_p99_s"]
assert i["method"] == "order" and (i["low"], i["high"]) == (p99[0], p99[5])
PY
  fs_run compare small.yaml --json --quiet "${variants[@]}"
  printf '%s\n' "$output" >one.json
  [ "$(json one.json '"intervals" in o["variants"][0]')" = False ]
}

@test "an SLO that nobody came for is not said to be unstated" {
  small
  fs_run compare small.yaml --quiet --set workload[0].arrivals.rate=0.00001/s --variant a: --variant b:fleet.router.policy=random
  assert_status 0
  assert_output_has "cheapest that meets the SLO: no request arrived that it could be judged by"
  fs_run compare small.yaml --quiet --set 'workload[0].slo={ttft: 1 s}' --variant a: --variant b:fleet.router.policy=random
  assert_output_has "cheapest that meets the SLO: no class states an attainment"
}

roofline() {
  cat >roofline.yaml <<'YAML'
name: roofline
horizon: 10 min
workload:
  - name: chat
    arrivals: {process: poisson, rate: 60 /s}
    prompt_tokens: {dist: lognormal, mean: 1000, sigma: 0.8}
    output_tokens: {dist: lognormal, mean: 250, sigma: 0.7}
    slo: {ttft: 1 s, tpot: 50 ms, attainment: 95 %}
fleet:
  pools:
    - name: main
      model: llama-3.1-8b
      gpu: h100-sxm
      step_time: {model: roofline}
      autoscaler: {policy: ideal}
      cold_start: {provision: 60 s}
YAML
}

@test "--policies with a capacity that has to be measured: once, and what reacts goes by what it saw" {
  roofline
  fs_run compare roofline.yaml --json --policies static,ideal,target,predictive,warm_pool
  assert_status 0
  printf '%s\n' "$output" >out.json
  # shellcheck disable=SC2154  # bats' own
  [ "$(grep -c 'pool main: one replica sustains' <<<"$stderr")" = 1 ]
  [[ $stderr != *warning* ]]
  [ "$(json out.json 'all(18 < v["result"]["pools"][0]["capacity"] < 19.5 for v in o["variants"])')" = True ]
  [ "$(json out.json 'all(v["result"]["gpu_hours"]["ideal"] > 0 for v in o["variants"])')" = True ]
  [ "$(json out.json '"metric: concurrency" in o["variants"][2]["set"][0]')" = True ]
  [ "$(json out.json '"capacity: 18" in o["variants"][3]["set"][0]')" = True ]
  [ "$(json out.json 'all(v["slo_met"] for v in o["variants"])')" = True ]
}

@test "--peak size: static has the smallest fleet that meets the SLO" {
  roofline
  "$FLEETSIM_BIN" size roofline.yaml --json --quiet >size.json
  fs_run compare roofline.yaml --json --quiet --policies static,target --peak size
  assert_status 0
  printf '%s\n' "$output" >out.json
  n=$(json size.json 'o["replicas"]')
  [ "$(json out.json 'o["variants"][0]["set"]')" = "['fleet.pools[0].autoscaler={policy: static, replicas: $n}']" ]
  fs_run compare roofline.yaml --json --quiet --policies static,target
  printf '%s\n' "$output" >out.json
  [ "$(json out.json 'o["variants"][0]["set"]')" = "['fleet.pools[0].autoscaler={policy: static, replicas: 5}']" ]
  [ "$n" -lt 5 ]
  fs_run compare roofline.yaml --quiet --policies ideal,target --peak size
  assert_status 64
  fs_run compare roofline.yaml --quiet --policies static,target --peak largest
  assert_status 64
}

@test "what cannot be measured is said, with what to state" {
  roofline
  sed -i 's/, attainment: 95 %//' roofline.yaml
  fs_run check roofline.yaml
  assert_status 2
  [[ $stderr == *"cannot be measured: no class that uses it states an slo with an attainment"* ]]
}
