#!/usr/bin/env python3
"""One result from every build: run.py [--into DIR] [--keep DIR] [SCENARIO …]

Every scenario beside this script runs in every build of fleetsim that there is a reason to doubt:
gcc and clang, unoptimised and optimised, under sanitizers, and with the CPU features hidden from
glibc by which it chooses its variants of exp, log and cos; span by span and step by step. Required:

- digest, summary (`--json` without its `run` part), hourly table, request rows and exported
  arrivals are the same bytes in all of them;
- the HDF5 file, which names its compiler, is the same bytes in all runs of the same build: again,
  step by step, and with CPU features hidden.

Builds go to DIR (build/): those of the presets are used where they are, and `fleetsim` is built
where it is missing or older than its sources. --keep leaves all results in a new folder. Prints a
table; the last line counts. Exits 1 when anything differs. Standard library only.
"""
import argparse
import concurrent.futures
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Name, folder, preset, compiler ("" is the preset's own: what a user's build has).
BUILDS = [("gcc -O0", "debug", "debug", ""),
          ("gcc -O3", "release", "release", ""),
          ("clang -O0", "clang-debug", "debug", "clang"),
          ("clang -O3", "clang-release", "release", "clang"),
          ("sanitizers", "sanitize", "sanitize", "")]
REFERENCE = "gcc -O3"

# Names as in glibc since 2.33 (before, they ended in _Usable).
MASK = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-FMA,-FMA4,-BMI2,-ERMS"
# Values of the C library's functions, in full: some differ between its FMA variant and the plain.
LIBM_PROBE = """
import hashlib, math
h = hashlib.sha256()
for i in range(1, 20001):
    x = i * 0.0123457
    h.update(repr((math.exp(-x / 10), math.log(x), math.pow(x, 1.37), math.cos(x))).encode())
print(h.hexdigest())
"""


class Counts:
    """What was required, and what came of it."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0

    def require(self, ok, what):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print(f"  FAILED   {what}", flush=True)
        return ok

    def skip(self, what):
        self.skipped += 1
        print(f"  skipped  {what}", flush=True)


def masked_environment():
    return {**os.environ, "GLIBC_TUNABLES": MASK}


# --- builds --------------------------------------------------------------------------------------

def command_run(command):
    """Nothing when it succeeded, else what it printed."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    return "" if done.returncode == 0 else f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}"


def build(into, folder, preset, compiler):
    """Builds fleetsim alone; nothing when it succeeded, else what was printed."""
    target = into / folder
    if not (target / "build.ninja").exists():
        command = ["cmake", "--preset", preset, "-B", target]
        if compiler:
            command += [f"-DCMAKE_C_COMPILER={compiler}", "-DFLEETSIM_TESTS=OFF"]
        fault = command_run(command)
        if fault:
            return fault
    return command_run(["ninja", "-C", target, "fleetsim"])


def builds_make(into, counts):
    """{name: program} of the builds that could be made."""
    programs = {}
    for name, folder, preset, compiler in BUILDS:
        if compiler and not shutil.which(compiler):
            counts.skip(f"{name}: {compiler} is not installed")
            continue
        begun = time.monotonic()
        fault = build(into, folder, preset, compiler)
        if not counts.require(not fault, f"{name} does not build:\n{fault}"):
            continue
        programs[name] = into / folder / "fleetsim"
        print(f"  {name:<12} {compiler_of(into / folder):<24} {time.monotonic() - begun:5.1f} s",
              flush=True)
    return programs


def compiler_of(folder):
    """What CMake found: "GNU 12.2.0"."""
    for path in folder.glob("CMakeFiles/*/CMakeCCompiler.cmake"):
        text = path.read_text(encoding="utf-8")
        found = [re.search(rf'set\(CMAKE_C_COMPILER_{key} "([^"]*)"\)', text)
                 for key in ("ID", "VERSION")]
        return " ".join(match.group(1) for match in found if match)
    return ""


# --- CPU features --------------------------------------------------------------------------------

def mask_check(counts):
    """Whether hiding CPU features works here: the C library's values must change by it."""
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        counts.skip("hidden CPU features: not glibc on x86-64")
        return False
    plain, masked = (subprocess.run([sys.executable, "-c", LIBM_PROBE], env=env, check=True,
                                    capture_output=True, text=True).stdout
                     for env in (None, masked_environment()))
    if plain != masked:
        counts.require(True, "")
        print("  hidden CPU features change exp, log, pow or cos in the last digit: in force")
        return True
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        flags = ""
    if re.search(r"^flags.*\bfma\b", flags, flags=re.M):
        counts.require(False, f"GLIBC_TUNABLES={MASK} changes nothing on a CPU with FMA")
    else:
        counts.skip("hidden CPU features: this CPU has no FMA to hide")
    return False


# --- runs ----------------------------------------------------------------------------------------

class Cell:
    """One scenario in one build and mode: the files it wrote, by kind."""

    def __init__(self, name, mode, folder):
        self.name, self.mode, self.folder = name, mode, folder
        self.fault, self.digest, self.events, self.iterations = "", "", 0, 0

    def bytes_of(self, kind):
        return (self.folder / kind).read_bytes()


def replayed(scenario):
    """The name of the scenario whose exported arrivals this one replays, "" if none."""
    match = re.search(r"^# replays: (\S+)\.yaml", scenario.read_text(encoding="utf-8"), flags=re.M)
    return match.group(1) if match else ""


def cell_run(program, scenario, cell, arrivals, env):
    """Runs it; cell.fault says what went wrong."""
    cell.folder.mkdir(parents=True)
    command = [program, "run", scenario, "--json", "--quiet", "-o", "result.h5", "--hourly",
               "hourly.csv", "--requests", "requests.csv", "--export-trace", "arrivals.csv"]
    command += ["--step-by-step"] if cell.mode == "steps" else []
    if replayed(scenario):  # by a relative name: the result holds the scenario as resolved
        shutil.copy(arrivals / replayed(scenario) / "arrivals.csv", cell.folder / "recorded.csv")
        command += ["--set", "workload[0].arrivals.file=recorded.csv"]
    done = subprocess.run(command, cwd=cell.folder, env=env, capture_output=True, text=True,
                          errors="replace", check=False, timeout=300)
    if done.returncode != 0:
        cell.fault = f"exit code {done.returncode}: {done.stderr[-2000:]}"
        return cell
    result = json.loads(done.stdout)
    cell.events, cell.iterations = result["run"]["events"], result["run"]["iterations"]
    cell.digest = result["digest"]
    if not result["audit"]["ok"]:
        cell.fault = "the audit does not hold"
    del result["run"]
    (cell.folder / "summary.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return cell


def cells_of(name, programs, masked):
    """(program, mode, key, environment) of all runs of a scenario."""
    for build_name, program in programs.items():
        env = None
        if build_name == "sanitizers":
            env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1",
                   "UBSAN_OPTIONS": "print_stacktrace=1"}
        for mode in ("spans", "again", "steps"):
            yield program, mode, build_name, env
    if masked and REFERENCE in programs:
        for mode in ("spans", "steps"):
            yield programs[REFERENCE], mode, "hidden", masked_environment()


def scenario_run(scenario, programs, masked, into, workers):
    """All cells of one scenario, in order."""
    jobs = []
    for program, mode, name, env in cells_of(scenario.stem, programs, masked):
        key = f"{name} {mode}".replace(" ", "_")
        cell = Cell(name, mode, into / key / scenario.stem)
        jobs.append(workers.submit(cell_run, program, scenario, cell, into / key, env))
    return [job.result() for job in jobs]


# --- what is required ----------------------------------------------------------------------------

def scenario_judge(name, cells, counts):
    """Requires one result of all cells; prints the scenario's line of the table."""
    for cell in cells:
        counts.require(not cell.fault, f"{name}, {cell.name}, {cell.mode}: {cell.fault}")
    cells = [cell for cell in cells if not cell.fault]
    if not cells:
        return
    first = cells[0]
    ok = True
    for kind in ("summary.json", "hourly.csv", "requests.csv", "arrivals.csv"):
        want = first.bytes_of(kind)
        others = [f"{cell.name} {cell.mode}" for cell in cells if cell.bytes_of(kind) != want]
        ok &= counts.require(want and not others, f"{name}: {kind} of {first.name} {first.mode} is"
                             f" not that of {', '.join(others)}")
    digests = {cell.digest for cell in cells}
    ok &= counts.require(len(digests) == 1, f"{name}: digests "
                         + ", ".join(f"{c.name} {c.mode}: {c.digest}" for c in cells))
    files = {(cell.name, cell.mode): cell.bytes_of("result.h5") for cell in cells}
    for (build_name, mode), content in files.items():
        twin = (REFERENCE if build_name == "hidden" else build_name, "spans")
        if twin in files and twin != (build_name, mode):
            ok &= counts.require(content == files[twin], f"{name}: result.h5 of {build_name} {mode}"
                                 f" is not that of {' '.join(twin)}")
    steps = next((cell for cell in cells if cell.mode == "steps"), first)
    print(f"  {name:<15} {first.digest}  {len(cells):>4} runs {first.events:>9,} events"
          f" {steps.events:>11,} in steps  {'same' if ok else 'DIFFERENT'}", flush=True)


def scenarios_find(names, counts):
    """The scenarios asked for, or all. One that replays another brings it along and comes after
    it: it reads the arrivals that the same build exported."""
    found = {path.stem: path for path in sorted(HERE.glob("*.yaml"))}
    if names:
        wanted = set(names) | {replayed(found[name]) for name in names if name in found}
        found = {name: path for name, path in found.items() if name in wanted}
    counts.require(found and set(names) <= set(found), f"no scenario {' '.join(names)} in {HERE}")
    return sorted(found.values(), key=lambda path: bool(replayed(path)))


def main(argv):
    parser = argparse.ArgumentParser(description="One result from every build.")
    parser.add_argument("scenario", nargs="*", help="names; all of this folder by default")
    parser.add_argument("--into", default=ROOT / "build", type=Path, help="folder of the builds")
    parser.add_argument("--keep", type=Path, help="a new folder for all results")
    options = parser.parse_args(argv)
    counts = Counts()
    programs = builds_make(options.into.resolve(), counts)
    masked = mask_check(counts)
    ram = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fleetsim-matrix-", dir=ram) as scratch:
        into = options.keep.resolve() if options.keep else Path(scratch)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
            for scenario in scenarios_find(options.scenario, counts):
                cells = scenario_run(scenario, programs, masked, into, workers)
                scenario_judge(scenario.stem, cells, counts)
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
