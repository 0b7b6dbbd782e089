#!/usr/bin/env python3
"""Measures how fast fleetsim is: run.py BUILD [--full] [--json FILE] [--only PART[,PART…]]

BUILD is the folder of a release build. Prints tables; docs/benchmarks.md says what each figure
means. Slowness never fails; a wrong result does: an audit that does not hold, requests that are
missing, two runs that should have one digest and have two. Times are CPU time of the whole process,
start-up and the result file (to a RAM disk) included, the least of the repeats: on a machine that
others use too, wall time says little. --full takes the day at its whole size instead of a tenth.

Standard library only.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
YARDSTICK = HERE / "yardstick.yaml"
SESSIONS = HERE / "sessions.yaml"
REPLICAS, PER_DAY = 273, 15_000_000  # of yardstick.yaml
DAY_S = 86_400
AUTOSCALER = ("{policy: target, metric: concurrency, target: 16, min_replicas: 4, "
              "max_replicas: %d, interval: 15 s}")
AZURE = "data/azure_llm_2023/AzureLLMInferenceTrace_conv.csv.gz"
AZURE_ROWS = 19_366


class Wrong(Exception):
    """A result that is not what it has to be."""


class Bench:
    """Where things are, and the figures so far."""

    def __init__(self, options, scratch):
        self.fleetsim = Path(options.build).resolve() / "fleetsim"
        self.tools = Path(options.build).resolve() / "bench"
        self.full = options.full
        self.scratch = scratch
        self.shared = Path(os.environ.get("FLEETSIM_SHARED", ROOT / ".." / "shared"))
        self.figures = {}
        self.skipped = []

    def note(self, key, value):
        self.figures[key] = value

    def skip(self, what):
        self.skipped.append(what)
        print(f"  skipped  {what}")

    def size(self):
        """(replicas, requests a day) of the day at the size that was asked for."""
        replicas = REPLICAS if self.full else REPLICAS // 10
        return replicas, PER_DAY * replicas / REPLICAS


def cpu_run(command):
    """(CPU seconds, wall seconds, stdout) of a command that must succeed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        text = out.read().decode()
        if process.returncode != 0:
            raise Wrong(f"exit code {process.returncode}: {' '.join(map(str, command))}\n"
                        + err.read().decode()[-2000:])
    return usage.ru_utime + usage.ru_stime, wall, text


def simulate(bench, scenario, sets=(), repeats=1, steps=False, output=True):
    """Runs a scenario; the result's object with cpu_s and wall_s (the least) added."""
    command = [bench.fleetsim, "run", scenario, "--json", "--quiet", "--force"]
    command += ["-o", bench.scratch / "out.h5"] if output else ["--no-output"]
    command += ["--step-by-step"] if steps else []
    for item in sets:
        command += ["--set", item]
    best = None
    for _ in range(repeats):
        cpu, wall, text = cpu_run(command)
        result = json.loads(text)
        check_result(result, command)
        if best and best["digest"] != result["digest"]:
            raise Wrong(f"two digests of one run: {' '.join(map(str, command))}")
        result["cpu_s"] = min(cpu, best["cpu_s"]) if best else cpu
        result["wall_s"] = min(wall, best["wall_s"]) if best else wall
        best = result
    return best


def check_result(result, command):
    requests = result["requests"]
    if not result["audit"]["ok"] or result["audit"]["checks"] == 0:
        raise Wrong(f"the audit does not hold: {' '.join(map(str, command))}")
    if requests["completed"] != requests["arrived"] or requests["arrived"] == 0:
        raise Wrong(f"{requests} of {' '.join(map(str, command))}")


def figures_of(result):
    """The figures of one run, per second of CPU time."""
    cpu, run = result["cpu_s"], result["run"]
    arrived = result["requests"]["arrived"]
    return {"requests": arrived, "cpu_s": cpu, "wall_s": result["wall_s"],
            "requests_per_s": arrived / cpu, "events_per_s": run["events"] / cpu,
            "replica_s_per_s": result["gpu_hours"]["held"] * 3600 / cpu,
            "iterations_per_s": run["iterations"] / cpu,
            "spans_per_request": run["spans"] / arrived,
            "peak_mib": run["peak_rss_bytes"] / 2**20}


RUN_COLUMNS = [("requests", "requests", "{:,.0f}"), ("cpu_s", "CPU s", "{:.3f}"),
               ("wall_s", "wall s", "{:.3f}"), ("requests_per_s", "requests/s", "{:,.0f}"),
               ("events_per_s", "events/s", "{:,.0f}"),
               ("replica_s_per_s", "replica-s/s", "{:,.0f}"),
               ("iterations_per_s", "iterations/s", "{:,.0f}"),
               ("spans_per_request", "spans/req", "{:.2f}"), ("peak_mib", "peak MiB", "{:.1f}")]


def heading(text):
    print(f"\n{text}", flush=True)


def run_row(bench, key, label, result):
    if result is None:
        print(f"  {'':<34}" + "".join(f"{title:>15}" for _, title, _ in RUN_COLUMNS))
        return
    figures = figures_of(result)
    bench.note(key, figures)
    print(f"  {label:<34}" + "".join(f"{form.format(figures[name]):>15}"
                                     for name, _, form in RUN_COLUMNS), flush=True)


def figure_row(bench, key, label, value, form):
    bench.note(key, value)
    print(f"  {label:<64}{form.format(value):>15}", flush=True)


# --- the event queue -----------------------------------------------------------------------------

def compile_tool(bench, name, sources, flags):
    """A C program beside the release build; compiled again when a source is newer."""
    bench.tools.mkdir(exist_ok=True)
    target = bench.tools / name
    headers = list((ROOT / "sim/base").glob("*.h"))
    if target.exists() and all(p.stat().st_mtime < target.stat().st_mtime
                               for p in [*sources, *headers, Path(__file__)]):
        return target
    compiler = os.environ.get("CC", "cc").split()
    done = subprocess.run([*compiler, *flags[0], *sources, "-o", target, *flags[1]],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"{name} does not compile:\n{done.stderr[-2000:]}")
    return target


def part_hold(bench):
    heading("Event queue: ns per hold (take the first event, put back a later one)")
    gsl = [subprocess.run(["pkg-config", what, "gsl"], capture_output=True, text=True,
                          check=True).stdout.split() for what in ("--cflags", "--libs")]
    hold = compile_tool(bench, "hold", [HERE / "hold.c", *sorted((ROOT / "sim/base").glob("*.c"))],
                        (["-std=c11", "-O3", "-flto", "-DNDEBUG", "-D_POSIX_C_SOURCE=200809L",
                          "-ffp-contract=off", "-fno-strict-overflow", f"-I{ROOT}", *gsl[0]],
                         [*gsl[1], "-lm"]))
    pending = [10**k for k in range(2, 7)]
    _, _, text = cpu_run([hold, str(10_000_000 if bench.full else 2_000_000),
                          *map(str, pending)])
    rows = [line.split() for line in text.splitlines()]
    if [int(row[0]) for row in rows] != pending:
        raise Wrong(f"hold printed {text}")
    print(f"  {'pending':<34}" + "".join(f"{n:>15,}" for n in pending))
    for column, key, label in ((1, "steps", "step events (winner tree)"),
                               (2, "heap", "other events (heap, handles)")):
        values = [float(row[column]) for row in rows]
        bench.note(f"hold.{key}_ns", dict(zip(map(str, pending), values)))
        print(f"  {label:<34}" + "".join(f"{v:>15.1f}" for v in values))


# --- whole runs ----------------------------------------------------------------------------------

def hour_trace(bench):
    """(path, rows, label): the recorded hour where it is, else one drawn like it."""
    if (bench.shared / AZURE).exists():
        return bench.shared / AZURE, AZURE_ROWS, "Azure hour"
    bench.skip(f"the Azure hour: {AZURE} is not there; an hour drawn like it instead")
    path = bench.scratch / "hour.csv.gz"
    cpu_run([bench.fleetsim, "check", HERE / "hour-synthetic.yaml", "--export-trace", path])
    return path, None, "synthetic hour"


def part_runs(bench):
    heading("Whole runs, start-up and result file included; per second of CPU time")
    trace, rows, label = hour_trace(bench)
    run_row(bench, None, None, None)
    start = simulate(bench, YARDSTICK, ["horizon=1 s"], repeats=5)
    run_row(bench, "start", "start-up: 1 s of the yardstick day", start)
    for replicas in (1, 10, 100):
        result = simulate(bench, HERE / "hour.yaml", [
            f"workload[0].arrivals.file={trace}",
            f"fleet.pools[0].autoscaler.replicas={replicas}"], repeats=5)
        if rows and result["requests"]["arrived"] != rows:
            raise Wrong(f"{result['requests']['arrived']} of {rows} rows of the trace arrived")
        run_row(bench, f"hour.{replicas}", f"{label}, replicas: {replicas}", result)
    replicas, per_day = bench.size()
    day = [f"workload[0].arrivals.requests_per_day={per_day}"]
    static = simulate(bench, YARDSTICK, [*day, f"fleet.pools[0].autoscaler.replicas={replicas}"],
                      repeats=1 if bench.full else 3)
    run_row(bench, "yardstick.static", f"yardstick day, static, {replicas} replicas", static)
    result = simulate(bench, YARDSTICK, [
        *day, f"fleet.pools[0].autoscaler={AUTOSCALER % (replicas * 3 // 2)}",
        f"fleet.pools[0].initial_replicas={replicas // 3}"], repeats=1 if bench.full else 3)
    run_row(bench, "yardstick.autoscaled", "yardstick day, autoscaled", result)
    run_row(bench, "chat-1m", "scenarios/chat-1m, autoscaled",
            simulate(bench, ROOT / "scenarios/chat-1m/scenario.yaml"))


def part_steps(bench):
    heading("Spans against one event per iteration (--step-by-step), the yardstick day")
    replicas, per_day = bench.size()
    sets = [f"workload[0].arrivals.requests_per_day={per_day}",
            f"fleet.pools[0].autoscaler.replicas={replicas}"]
    spans = simulate(bench, YARDSTICK, sets, repeats=1 if bench.full else 3)
    steps = simulate(bench, YARDSTICK, sets, steps=True)
    if spans["digest"] != steps["digest"]:
        raise Wrong(f"spans {spans['digest']}, steps {steps['digest']}: not one digest")
    run_row(bench, None, None, None)
    run_row(bench, "steps.spans", f"spans, {replicas} replicas", spans)
    run_row(bench, "steps.steps", "step by step", steps)
    figure_row(bench, "steps.ratio", "step by step takes this many times as long",
               steps["cpu_s"] / spans["cpu_s"], "{:.2f}")


# --- how it grows --------------------------------------------------------------------------------

def part_growth(bench):
    heading("Growth: CPU µs per request, load per replica the same everywhere (flat curve)")
    requests = 4_500_000 if bench.full else 1_500_000
    costs = {}
    for replicas in (1, 27, 273, 2730):
        rate = PER_DAY / REPLICAS * replicas / DAY_S
        result = simulate(bench, YARDSTICK, [
            "workload[0].arrivals.curve={shape: flat}",
            f"workload[0].arrivals.requests_per_day={PER_DAY / REPLICAS * replicas}",
            f"horizon={requests / rate:.0f} s",
            f"fleet.pools[0].autoscaler.replicas={replicas}"], repeats=3)
        costs[replicas] = 1e6 * result["cpu_s"] / result["requests"]["arrived"]
        figure_row(bench, f"growth.replicas.{replicas}_us", f"replicas: {replicas:,}",
                   costs[replicas], "{:.3f}")
    figure_row(bench, "growth.replicas.ratio", "dearest over cheapest",
               max(costs.values()) / min(costs.values()), "{:.2f}")
    replicas, days = 27, {}
    for count in (1, 10):
        result = simulate(bench, YARDSTICK, [
            f"workload[0].arrivals.requests_per_day={PER_DAY / REPLICAS * replicas}",
            f"horizon={24 * count} h", f"fleet.pools[0].autoscaler.replicas={replicas}"],
            repeats=3 if count == 1 else 1)
        days[count] = 1e6 * result["cpu_s"] / result["requests"]["arrived"]
        figure_row(bench, f"growth.days.{count}_us",
                   f"{count} day(s) of {replicas} replicas, evening peak:"
                   f" {result['requests']['arrived']:,} requests", days[count], "{:.3f}")
    figure_row(bench, "growth.days.ratio", "per request, ten days over one", days[10] / days[1],
               "{:.3f}")


# --- the floor and the instructions --------------------------------------------------------------

def part_floor(bench):
    heading("Against a hand-written lower bound on the same day (day.c, MODE 3)")
    source = bench.shared / "limit/day.c"
    if not source.exists():
        bench.skip("the lower bound: limit/day.c is not there")
        return
    day3 = compile_tool(bench, "day3", [source],
                        (["-w", "-O3", "-march=native", "-DMODE=3"], ["-lm"]))
    replicas, per_day = bench.size()
    sets = [f"workload[0].arrivals.requests_per_day={per_day}",
            f"fleet.pools[0].autoscaler.replicas={replicas}"]
    floor, ours = [], []
    for _ in range(3):  # alternately: the machine's mood hits both
        cpu, _, text = cpu_run([day3, f"{per_day:.0f}", str(replicas)])
        if f"done={per_day:.0f} " not in text:
            raise Wrong(f"day3 printed {text}")
        floor.append(cpu)
        ours.append(simulate(bench, YARDSTICK, sets)["cpu_s"])
    figure_row(bench, "floor.day3_s", f"day3, {replicas} replicas: CPU s, median of 3",
               statistics.median(floor), "{:.3f}")
    figure_row(bench, "floor.fleetsim_s", "fleetsim, full metrics and result file",
               statistics.median(ours), "{:.3f}")
    figure_row(bench, "floor.ratio", "ratio", statistics.median(ours) / statistics.median(floor),
               "{:.2f}")


def instructions(bench, sets, output=False, scenario=YARDSTICK):
    """(instructions by callgrind, requests) of a run. Without a result file they are the same every
    time; with one, a run that is slow enough saves its finished hours now and then."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", bench.fleetsim,
               "run", scenario, "--json", "--quiet"]
    command += ["--force", "-o", bench.scratch / "out.h5"] if output else ["--no-output"]
    for item in sets:
        command += ["--set", item]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not match:
        raise Wrong(f"callgrind: exit code {done.returncode}\n{done.stderr[-2000:]}")
    result = json.loads(done.stdout)
    check_result(result, command)
    return int(match.group(1)), result["requests"]["arrived"]


def part_instructions(bench):
    heading("Instructions (callgrind), about 150,000 requests of the yardstick day")
    if not shutil.which("valgrind"):
        bench.skip("instructions: valgrind is not installed")
        return
    start, few = instructions(bench, ["horizon=1 s"])
    result_file = instructions(bench, ["horizon=1 s"], output=True)[0] - start
    figure_row(bench, "instructions.start", "start-up and end: 1 s of the day", start, "{:,}")
    figure_row(bench, "instructions.file", "the result file", result_file, "{:,}")
    cases = [("thin", "a hundredth of the fleet and its load, 24 h",
              ["workload[0].arrivals.requests_per_day=150000",
               "fleet.pools[0].autoscaler.replicas=3"]),
             ("dawn", "273 replicas, 58 min from 06:00 on",
              ["start=2026-03-02T06:00:00Z", "horizon=58 min"]),
             ("peak", "273 replicas, 288 s from 20:00 on",
              ["start=2026-03-02T20:00:00Z", "horizon=288 s"])]
    for key, label, sets in cases:
        total, requests = instructions(bench, sets)
        figure_row(bench, f"instructions.{key}.requests", f"{label}: requests", requests, "{:,}")
        figure_row(bench, f"instructions.{key}.total", "  per request, all of it",
                   (total + result_file) / requests, "{:,.0f}")
        figure_row(bench, f"instructions.{key}.net", "  per request, net of start-up and file",
                   (total - start) / (requests - few), "{:,.0f}")
    heading("Instructions (callgrind) per turn of a conversation, start-up included")
    pool = "fleet.pools[0]"
    wide = [f"{pool}.autoscaler.replicas=4", f"{pool}.step_time.per_token=10 us",
            f"{pool}.engine.num_gpu_blocks_override=50000"]
    cases = [("off", "no cache, 119 in a batch", [f"{pool}.engine.enable_prefix_caching=false"]),
             ("sticky", "session_sticky, 65 in a batch", []),
             ("aware", "prefix_aware, 64 in a batch", ["fleet.router.policy=prefix_aware"]),
             ("weighted", "weighted, 64 in a batch", ["fleet.router.policy=weighted"]),
             ("wide", "prefix_aware, 200 in a batch", ["fleet.router.policy=prefix_aware", *wide])]
    for key, label, sets in cases:
        total, requests = instructions(bench, sets, scenario=SESSIONS)
        figure_row(bench, f"instructions.sessions.{key}", f"{label}: {requests:,} turns",
                   total / requests, "{:,.0f}")


PARTS = {"hold": part_hold, "runs": part_runs, "steps": part_steps, "growth": part_growth,
         "floor": part_floor, "instructions": part_instructions}


def machine():
    """Enough to know which figures may be compared; nothing that names the machine."""
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next((line.split(":", 1)[1].strip() for line in info
                          if line.startswith("model name")), "")
    except OSError:
        pass
    return {"cores": os.cpu_count(), "cpu": model, "load": round(os.getloadavg()[0], 1)}


def parse(argv):
    parser = argparse.ArgumentParser(description="Measures how fast fleetsim is.")
    parser.add_argument("build", help="folder of a release build")
    parser.add_argument("--full", action="store_true", help="the day at its whole size")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--only", metavar="PART,…", help=f"of {', '.join(PARTS)}")
    options = parser.parse_args(argv)
    options.parts = options.only.split(",") if options.only else list(PARTS)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part '{unknown[0]}'; there are: {', '.join(PARTS)}")
    return options


def main(argv):
    options = parse(argv)
    begun = time.monotonic()
    ram = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    wrong = []
    with tempfile.TemporaryDirectory(prefix="fleetsim-bench-", dir=ram) as scratch:
        bench = Bench(options, Path(scratch))
        where = machine()
        version = cpu_run([bench.fleetsim, "--version"])[2].strip().splitlines()
        print(version[0] if version else "", f"on {where['cores']} cores ({where['cpu']}),"
              f" load {where['load']}, the day {'whole' if options.full else 'at a tenth'}")
        for name in options.parts:
            try:
                PARTS[name](bench)
            except Wrong as fault:
                wrong.append(f"{name}: {fault}")
                print(f"  WRONG  {wrong[-1]}")
    print(f"\n{len(options.parts) - len(wrong)} parts measured, {len(wrong)} wrong,"
          f" {len(bench.skipped)} skipped, {time.monotonic() - begun:.0f} s")
    if options.json:
        report = {"machine": where, "version": version, "full": options.full,
                  "figures": bench.figures, "skipped": bench.skipped, "wrong": wrong}
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
