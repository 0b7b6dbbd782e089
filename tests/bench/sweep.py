#!/usr/bin/env python3
"""Measures what a sweep adds to its runs: sweep.py BUILD [POINTS]

Two figures: how much faster two processes are than one (wall time: on a machine that others use
too it says little, so the load is printed beside it), and what a point costs beyond the run itself,
as CPU time: that of a sweep of POINTS (200) less that of as many `fleetsim run` with a result file.
A wrong result fails; slowness does not. Standard library only.
"""
import filecmp
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = 25  # single runs that stand for the others
SWEEP = """name: bench
base: {base}
outputs: [usd, ttft_p99]
axes:
  - {{name: seed, key: seed, range: {{from: 1, to: {points}, step: 1}}}}
"""


def measure(command):
    """(CPU seconds with all children, wall seconds)."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main():
    program = str(Path(sys.argv[1]).resolve() / "fleetsim")
    points = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    small = str(ROOT / "tests/cli/small.yaml")
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        sheet = Path(folder, "sweep.yaml")
        sheet.write_text(SWEEP.format(base=small, points=points))
        wall, cpu = {}, {}
        for horizon, name in (("10 min", "short"), ("8 h", "long")):
            for jobs in (1, 2):
                out = str(Path(folder, f"{name}{jobs}"))
                cpu[name, jobs], wall[name, jobs] = measure(
                    [program, "sweep", str(sheet), "--quiet", "--jobs", str(jobs), "-o", out,
                     "--set", f"horizon={horizon}"])
            assert filecmp.cmp(Path(folder, f"{name}1/sweep.h5"), Path(folder, f"{name}2/sweep.h5"),
                               shallow=False), "one and two processes differ"
        alone = sum(measure([program, "run", small, "--quiet", "--force", "--set", f"seed={seed}",
                             "-o", str(Path(folder, "run.h5"))])[0] for seed in range(RUNS)) / RUNS
        again, _ = measure([program, "sweep", str(sheet), "--quiet", "-o",
                            str(Path(folder, "short1")), "--set", "horizon=10 min"])
    beyond = cpu["short", 1] / points - alone
    load = os.getloadavg()[0]
    print(f"{points} points, load {load:.1f} on {os.cpu_count()} processors")
    for name, what in (("short", "10 min"), ("long", "8 h")):
        print(f"  {what:>6} each: {wall[name, 1]:6.2f} s with one process, {wall[name, 2]:6.2f} s "
              f"with two: {wall[name, 1] / wall[name, 2]:.2f} times as fast; "
              f"{1e3 * cpu[name, 1] / points:.1f} ms of CPU for a point")
    print(f"  a point beyond its run: {1e3 * beyond:+.2f} ms of CPU (a run alone "
          f"{1e3 * alone:.1f} ms, with its start and its result file)")
    print(f"  a point that is up to date: {1e3 * again / points:.2f} ms of CPU")


if __name__ == "__main__":
    main()
