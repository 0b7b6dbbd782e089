#!/usr/bin/env python3
"""Recomputes a run's numbers from its rows per request and per hour, by the definitions alone.

    recompute.py OUT.json REQUESTS.csv HOURLY.csv FILE.h5

OUT.json is what `run --json` printed, the CSVs are those of --requests and --hourly, FILE.h5 the
result file, which says what the horizon, the warm-up, the limits and the prices were. Everything
is done in whole picoseconds and exact fractions. Prints what is wrong and exits 1, or one line and
0; 77 when h5py is missing.
"""
import csv
import json
import re
import sys
from fractions import Fraction

try:
    import h5py
except ImportError:
    print("recompute.py needs the Python package h5py (Debian: python3-h5py)")
    sys.exit(77)

TICKS = 10**12
KINDS = ["ttft", "tpot", "itl", "e2e", "queue"]
QUANTILES = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p95": Fraction(19, 20),
             "p99": Fraction(99, 100)}


class Check:
    """Collects what is wrong."""

    def __init__(self):
        self.wrong = []
        self.count = 0

    def same(self, what, want, have):
        self.count += 1
        if want != have:
            self.wrong.append(f"{what}: recomputed {want}, reported {have}")

    def near(self, what, want, have, relative=1e-9, absolute=1e-12):
        self.count += 1
        if want is None or have is None:
            if want is not have:
                self.wrong.append(f"{what}: recomputed {want}, reported {have}")
        elif abs(want - have) > max(absolute, relative * abs(want)):
            self.wrong.append(f"{what}: recomputed {want}, reported {have}")


def ticks(text):
    return int(Fraction(text) * TICKS) if text else None


def read_requests(path):
    rows = []
    with open(path, encoding="utf-8", newline="") as file:
        for raw in csv.DictReader(file):
            row = {key: ticks(raw[key]) for key in
                   ["arrival_s", "admitted_s", "first_token_s", "end_s"]}
            row.update({key: int(raw[key]) for key in
                        ["id", "prompt_tokens", "output_tokens", "cached_tokens",
                         "recomputed_tokens", "preemptions"]})
            row.update({key: raw[key] for key in ["class", "pool", "replica", "outcome"]})
            rows.append(row)
    return rows


def seconds_of(resolved, key):
    found = re.search(rf"^{key}: (\S+) (ps|ns|us|ms|s|min|h|d)$", resolved, re.M)
    unit = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": TICKS, "min": 60 * TICKS,
            "h": 3600 * TICKS, "d": 86400 * TICKS}[found.group(2)]
    return int(Fraction(found.group(1)) * unit)


class Scenario:
    """What the result file says the run was."""

    def __init__(self, path):
        with h5py.File(path, "r") as file:
            resolved = file["scenario/resolved"].asstr()[()]
            self.horizon = seconds_of(resolved, "horizon")
            self.warmup = seconds_of(resolved, "warmup")
            self.prices = [float(p) for p in
                           re.findall(r"^        usd_per_gpu_hour: \$(\S+)/h$", resolved, re.M)]
            names = [n.decode() if isinstance(n, bytes) else n
                     for n in file["classes/class"].asstr()[()]]
            self.limits = {}
            for i, name in enumerate(names):
                self.limits[name] = [self.limit(file[f"classes/slo_{kind}"][i])
                                     for kind in ["ttft", "tpot", "e2e"]]

    @staticmethod
    def limit(seconds):
        return None if seconds != seconds else round(Fraction(float(seconds)) * TICKS)


def durations(row):
    """TTFT, TPOT (a fraction), E2E and time to the first step; None where undefined."""
    first, end, done = row["first_token_s"], row["end_s"], row["outcome"] == "completed"
    ttft = None if first is None else first - row["arrival_s"]
    tpot = None
    if done and row["output_tokens"] >= 2:
        tpot = Fraction(end - first, row["output_tokens"] - 1)
    e2e = end - row["arrival_s"] if done else None
    queue = None if row["admitted_s"] is None else row["admitted_s"] - row["arrival_s"]
    return {"ttft": ttft, "tpot": tpot, "e2e": e2e, "queue": queue}


def attained(row, limits):
    """True, False or, in flight and nothing broken that is known, None."""
    if row["outcome"] == "in_flight":
        return None
    if row["outcome"] != "completed":
        return False
    values = durations(row)
    for kind, limit in zip(["ttft", "tpot", "e2e"], limits):
        if limit is not None and values[kind] is not None and values[kind] > limit:
            return False
    return True


def check_latency(check, what, values, have):
    """`have` maps count, mean, … to numbers in seconds."""
    check.same(f"{what} count", len(values), have["count"])
    if not values:
        for key in ["mean", *QUANTILES, "max"]:
            check.same(f"{what} {key}", None, have[key])
        return
    values = sorted(values)
    # Each value is rounded to a tick once, the mean once more.
    check.near(f"{what} mean", float(sum(values) / len(values)) / TICKS, have["mean"], 1e-12, 2e-12)
    check.near(f"{what} max", float(values[-1]) / TICKS, have["max"], 1e-12, 1e-12)
    for key, share in QUANTILES.items():
        rank = -(-len(values) * share.numerator // share.denominator)
        check.near(f"{what} {key}", float(values[rank - 1]) / TICKS, have[key], 1 / 256, 2e-12)


def check_summary(check, out, rows, scenario):
    counted = [r for r in rows if scenario.warmup <= r["arrival_s"] < scenario.horizon]
    check.same("no arrival after the horizon", 0,
               sum(r["arrival_s"] >= scenario.horizon for r in rows))
    check.same("arrived", len(counted), out["requests"]["arrived"])
    for outcome in ["completed", "refused", "unservable", "cancelled", "in_flight"]:
        check.same(outcome, sum(r["outcome"] == outcome for r in counted),
                   out["requests"][outcome])
    admitted = [r for r in counted if r["admitted_s"] is not None]
    check.same("tokens prompt", sum(r["prompt_tokens"] for r in admitted), out["tokens"]["prompt"])
    check.same("tokens cached", sum(r["cached_tokens"] for r in admitted), out["tokens"]["cached"])
    check.same("tokens recomputed", sum(r["recomputed_tokens"] for r in counted),
               out["tokens"]["recomputed"])
    check.same("preemptions", sum(r["preemptions"] for r in counted), out["kv"]["preemptions"])
    if out["requests"]["in_flight"] == 0:
        check.same("tokens output", sum(r["output_tokens"] for r in admitted),
                   out["tokens"]["output"])
        check.same("tokens computed", out["tokens"]["prompt"] - out["tokens"]["cached"],
                   out["tokens"]["computed"])
    for kind in ["ttft", "tpot", "e2e", "queue"]:
        values = [durations(r)[kind] for r in counted]
        check_latency(check, kind, [v for v in values if v is not None],
                      out["latency"][kind + "_s"])
    verdicts = [attained(r, scenario.limits[r["class"]]) for r in counted]
    check.same("attained", sum(v is True for v in verdicts), out["slo"]["attained"])
    check.same("missed", sum(v is False for v in verdicts), out["slo"]["missed"])
    check.same("undecided", sum(v is None for v in verdicts), out["slo"]["undecided"])
    check.near("attainment", out["slo"]["attained"] / len(counted) if counted else None,
               out["slo"]["attainment"])
    hours = out["gpu_hours"]
    check.near("held", hours["starting"] + hours["ready"] + hours["draining"], hours["held"])
    check.same("billed ≥ held", True, hours["billed"] >= hours["held"] * (1 - 1e-12) - 1e-12)
    check.same("idle ≤ ready", True, hours["idle"] <= hours["ready"] * (1 + 1e-12))


def number(text):
    return None if text == "" else float(text)


def hour_of(row, stamp):
    return Fraction(row["start"]) * TICKS <= stamp < Fraction(row["end"]) * TICKS


def overlap(a, b, c, d):
    return max(0, min(b, d) - max(a, c))


def check_hour(check, hour, rows, scenario):
    """One row of the hourly CSV against the requests; `rows` are those of its pool."""
    begin, end = int(Fraction(hour["start"]) * TICKS), int(Fraction(hour["end"]) * TICKS)
    drain = hour["is_drain"] == "1"
    name = f"{hour['pool']} from {hour['start']} s"

    def inside(stamp):
        # What happens at the very end of a run has no later row to go to.
        return stamp is not None and begin <= stamp and (stamp < end or (drain and stamp <= end))

    counted = [r for r in rows if scenario.warmup <= r["arrival_s"] < scenario.horizon]
    filed = {"arrived": [r for r in counted if inside(r["arrival_s"])],
             "admitted": [r for r in counted if inside(r["admitted_s"])],
             "completed": [r for r in counted
                           if r["outcome"] == "completed" and inside(r["end_s"])]}
    for key, requests in filed.items():
        check.same(f"{key}, {name}", len(requests), int(hour[key]))
    for outcome in ["refused", "unservable"]:
        check.same(f"{outcome}, {name}", sum(r["outcome"] == outcome and inside(r["end_s"])
                                             for r in counted), int(hour[outcome]))
    for kind, key in [("ttft", "first_token_s"), ("queue", "admitted_s"), ("tpot", "end_s"),
                      ("e2e", "end_s")]:
        values = [durations(r)[kind] for r in counted if inside(r[key])]
        have = {k: number(hour[f"{kind}_{k}"]) for k in ["count", "mean", *QUANTILES, "max"]}
        check_latency(check, f"{kind}, {name}", [v for v in values if v is not None], have)
    verdicts = [attained(r, scenario.limits[r["class"]]) for r in filed["arrived"]]
    check.same(f"attained, {name}", sum(v is True for v in verdicts), int(hour["slo_attained"]))
    check.same(f"missed, {name}", sum(v is False for v in verdicts), int(hour["slo_missed"]))
    start = max(begin, scenario.warmup)
    check.near(f"covered, {name}", max(0, end - start) / TICKS, float(hour["covered"]))
    if end > start:
        area = sum(overlap(r["arrival_s"], r["end_s"], start, end) for r in rows)
        check.near(f"in_flight_mean, {name}", area / (end - start),
                   number(hour["in_flight_mean"]))
        cut = sum(r["outcome"] == "in_flight" for r in rows)
        running = sum(r["arrival_s"] < end <= r["end_s"] for r in rows)
        check.same(f"in_flight_end, {name}", cut if drain else running, int(hour["in_flight_end"]))


def check_hourly(check, out, hourly, rows, scenario):
    pools = [p for p in dict.fromkeys(h["pool"] for h in hourly) if p != "all"]
    for hour in hourly:
        of_pool = [r for r in rows if hour["pool"] in ("all", r["pool"])]
        check_hour(check, hour, of_pool, scenario)
        held = sum(float(hour[f"gpu_hours_{k}"]) for k in
                   ["provisioning", "loading", "serving", "idle", "draining"])
        check.near("held by state", held, float(hour["gpu_hours_held"]))
        if hour["is_drain"] == "1":
            check.same("the drain is not billed", 0.0, float(hour["gpu_hours_billed"]))
    billed = {"all": 0.0}
    for pool in ["all", *pools]:
        mine = [h for h in hourly if h["pool"] == pool]
        billed[pool] = sum(float(h["gpu_hours_billed"]) for h in mine)
        for before, after in zip(mine, mine[1:]):
            check.same("intervals follow each other", before["end"], after["start"])
    mine = [h for h in hourly if h["pool"] == "all"]
    billable = [h for h in mine if h["is_drain"] == "0"]
    check.near("billed", billed["all"], out["gpu_hours"]["billed"])
    for key in ["held", "starting", "ready", "draining", "idle"]:
        check.near(f"gpu_hours {key}", sum(float(h[f"gpu_hours_{key}"]) for h in billable),
                   out["gpu_hours"][key])
    for key in ["arrived", "completed", "refused", "unservable"]:
        check.same(f"{key} over the hours", sum(int(h[key]) for h in mine), out["requests"][key])
    if len(scenario.prices) == len(pools):
        usd = sum(billed[p] * price for p, price in zip(pools, scenario.prices))
        check.near("usd", usd, out["cost"]["usd"])
        tokens = out["tokens"]["prompt"] + out["tokens"]["output"]
        tokens = [sum(int(h[f"tokens_{k}"]) for h in mine) for k in ["prompt", "output"]]
        both = sum(tokens)
        if scenario.warmup == 0 and both:
            check.near("usd_per_mtok_total", 1e6 * usd / both, out["cost"]["usd_per_mtok_total"])
            share = [out["cost"]["usd_per_mtok_input"], out["cost"]["usd_per_mtok_output"]]
            parts = [s * t / 1e6 for s, t in zip(share, tokens) if s is not None]
            if len(parts) == 2:
                check.near("usd = input + output", usd, sum(parts))


def main():
    if len(sys.argv) != 5:
        print(__doc__)
        return 64
    with open(sys.argv[1], encoding="utf-8") as file:
        out = json.load(file)
    rows = read_requests(sys.argv[2])
    with open(sys.argv[3], encoding="utf-8", newline="") as file:
        hourly = list(csv.DictReader(file))
    scenario = Scenario(sys.argv[4])
    check = Check()
    check.same("ids", list(range(len(rows))), [r["id"] for r in rows])
    check_summary(check, out, rows, scenario)
    check_hourly(check, out, hourly, rows, scenario)
    for line in check.wrong[:40]:
        print(line)
    if check.wrong:
        return 1
    print(f"{check.count} numbers of {len(rows)} requests and {len(hourly)} rows recomputed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
