#!/usr/bin/env python3
"""Kills a sweep at random moments and holds what is left to its promises.

    sweep_kill.py PROGRAM SWEEP.yaml KILLS [SEED]

Of every three kills one hits a worker, one the parent, one both. Each time the same command goes
on in the same folder; when it is through, the next folder begins. In the end every folder must hold
the bytes of a sweep that was never disturbed, and no journal may say twice that a run was done.
"""
import filecmp
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

LATEST_S = 0.4  # of a kill, after the start


def children(pid):
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def start(program, sweep, folder, jobs=3):
    return subprocess.Popen([program, "sweep", sweep, "-o", folder, "--quiet", "--jobs", str(jobs)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def disturb(process, who, chance):
    """Whether somebody was there to kill."""
    limit = time.monotonic() + chance.uniform(0.005, LATEST_S)
    while time.monotonic() < limit and process.poll() is None:
        time.sleep(0.002)
    if who != "parent":
        # A worker lives for milliseconds: wait for one.
        while process.poll() is None and not children(process.pid):
            pass
    workers = children(process.pid)
    if process.poll() is not None or (who != "parent" and not workers):
        return False
    if who == "both":
        for worker in workers:
            kill(worker)
    if who == "worker":
        kill(chance.choice(workers))
        time.sleep(chance.uniform(0, 0.05))
    kill(process.pid)
    process.wait()
    return True


def journal_check(folder):
    done = Counter()
    for line in (Path(folder) / "journal.jsonl").read_text().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("event") == "done":
            done[entry["run"]] += 1
    again = [run for run, times in done.items() if times > 1]
    assert not again, f"{folder}: done and run again: {again}"
    return sum(done.values())


def folders_same(folder, reference):
    names = sorted(p.name for p in (Path(reference) / "runs").iterdir())
    assert names == sorted(p.name for p in (Path(folder) / "runs").iterdir()), f"{folder}/runs"
    for name in ["points.json", "sweep.h5"] + [f"runs/{name}" for name in names]:
        assert filecmp.cmp(Path(folder) / name, Path(reference) / name, shallow=False), \
            f"{folder}/{name} differs from that of an undisturbed sweep"


def main():
    program, sweep, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    chance = random.Random(seed)
    assert start(program, sweep, "reference", 2).wait() == 0
    counts, folders, folder = Counter(), 0, None
    while sum(counts.values()) < kills:
        if folder is None:
            folders += 1
            folder = f"killed-{folders}"
        who = ["worker", "parent", "both"][sum(counts.values()) % 3]
        process = start(program, sweep, folder)
        if disturb(process, who, chance):
            counts[who] += 1
        elif process.wait() == 0:
            folder = None
    runs = 0
    for k in range(1, folders + 1):
        folder = f"killed-{k}"
        code = start(program, sweep, folder).wait()
        assert code == 0, f"{folder}: exit code {code}"
        runs += journal_check(folder)
        folders_same(folder, "reference")
    print(f"{sum(counts.values())} kills ({dict(counts)}), {folders} folders, {runs} runs, "
          f"none of them twice, all bytes equal")


if __name__ == "__main__":
    main()
