#!/usr/bin/env python3
"""Puts known mistakes into the scheduler, one at a time, and requires that the property test finds
each of them.

    run.py [--cases N] [--jobs N] [--cc CC] [--keep DIR] [NAME …]

Every NAME.patch beside this script is one mistake; its first lines say which. It is applied with
`patch -p1` to a copy of the sources, what depends on the files it touches is built anew, and
tests/prop/test_engine.c (spans = steps = naive engine) runs over at most N random cases. The
sources as they are must pass the same cases. Prints how many cases each mistake took.

Exits 0 when every mistake is found, 1 when one survives or a patch does not apply (the code has
moved: write the mistake anew), 77 when a tool is missing.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FOLDERS = ["sim/base", "models", "sim/engine", "sim/fleet"]
FLAGS = ["-std=c11", "-O1", "-DNDEBUG", "-D_POSIX_C_SOURCE=200809L", "-ffp-contract=off",
         "-fno-strict-overflow", "-I."]


class Fault(Exception):
    """A mistake that cannot be tried; the message says why."""


def run(command, folder, **options):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, **options)


def copy_sources(target):
    """The sources the property test is built from; returns the .c files, relative to the root."""
    files = [p for folder in FOLDERS for p in sorted((ROOT / folder).glob("*.[ch]"))]
    files += sorted((ROOT / "tests/prop").glob("support_*.[ch]"))
    files.append(ROOT / "tests/prop/test_engine.c")
    for path in files:
        copy = target / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    return [str(p.relative_to(ROOT)) for p in files if p.suffix == ".c"]


def pkg_config(what):
    return run(["pkg-config", what, "gsl", "check"], ROOT).stdout.split()


def compile_one(cc, tree, source):
    target = tree / (source + ".o")
    result = run([*cc, *FLAGS, *pkg_config("--cflags"), "-MMD", "-c", source, "-o", str(target)],
                 tree)
    if result.returncode != 0:
        raise Fault(f"{source} does not compile:\n{result.stdout}")


def link(cc, tree, sources):
    objects = [source + ".o" for source in sources]
    result = run([*cc, *objects, "-o", "test_engine", *pkg_config("--libs"), "-lm"], tree)
    if result.returncode != 0:
        raise Fault(f"does not link:\n{result.stdout}")


def dependents(tree, sources, touched):
    """The sources that have to be compiled again when these files change."""
    found = []
    for source in sources:
        rule = (tree / (source + ".d")).read_text().replace("\\\n", " ")
        if touched & {os.path.normpath(name) for name in rule.split(":", 1)[1].split()}:
            found.append(source)
    return found


def try_cases(tree, cases):
    """Runs the property test; the number of cases until the first failure, or None."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PROP_")}
    environment.update(PROP_SEED="1", PROP_COUNT=str(cases), PROP_SHRINK="0", CK_FORK="no")
    result = run(["./test_engine"], tree, env=environment, timeout=600)
    seed = re.search(r"seed (\d+) fails", result.stdout)
    if (result.returncode != 0) != bool(seed):
        raise Fault(f"the property test ended with {result.returncode}:\n{result.stdout}")
    return int(seed.group(1)) if seed else None


def try_mutation(patch, base, sources, options):
    """Applies one patch to a copy of the built tree; cases until it is found, or None."""
    with tempfile.TemporaryDirectory(dir=base.parent) as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(base, tree, copy_function=os.link)
        touched = set(re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), flags=re.M))
        for name in touched:
            if not (base / name).exists():
                raise Fault(f"there is no {name} any more: write this mistake anew")
            (tree / name).unlink()  # the copy shares it with the base: patch a file of its own
            shutil.copy2(base / name, tree / name)
        result = run(["patch", "-p1", "--batch", "--forward", "--no-backup-if-mismatch", "-i",
                      str(patch)], tree)
        if result.returncode != 0:
            raise Fault(f"the code has moved, write this mistake anew:\n{result.stdout}")
        for source in dependents(base, sources, touched):
            for suffix in (".o", ".d"):
                (tree / (source + suffix)).unlink()
            compile_one(options.cc, tree, source)
        (tree / "test_engine").unlink()
        link(options.cc, tree, sources)
        return try_cases(tree, options.cases)


def build_base(tree, options):
    sources = copy_sources(tree)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(compile_one, options.cc, tree, s) for s in sources]:
            done.result()
    link(options.cc, tree, sources)
    return sources


def arguments():
    parser = argparse.ArgumentParser(description="Mutation test of the scheduler")
    parser.add_argument("--cases", type=int, default=5000, help="cases each mistake may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cc", type=str.split, default=["cc"])
    parser.add_argument("--keep", type=Path, help="build the unchanged sources here, and keep them")
    parser.add_argument("names", nargs="*", metavar="NAME")
    return parser.parse_args()


def report(name, attempt):
    """One line for a mistake; whether it was found."""
    try:
        cases = attempt.result()
    except Fault as fault:
        print(f"NOT TRIED {name}: {fault}")
        return False
    if cases is None:
        print(f"SURVIVES  {name}")
        return False
    print(f"found     {name}: after {cases} cases", flush=True)
    return True


def main():
    options = arguments()
    for tool in ("patch", "pkg-config", options.cc[0]):
        if not shutil.which(tool):
            print(f"SKIP: no {tool} on this machine")
            return 77
    patches = sorted(HERE.glob("*.patch"))
    if options.names:
        patches = [HERE / f"{name.removesuffix('.patch')}.patch" for name in options.names]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        base = options.keep or Path(folder) / "base"
        base.mkdir(parents=True, exist_ok=True)
        try:
            sources = build_base(base, options)
            failed = try_cases(base, options.cases)
        except Fault as fault:
            print(f"the sources as they are: {fault}")
            return 1
        if failed is not None:
            print(f"the sources as they are fail case {failed} of the property test: mend that")
            return 1
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            attempts = [(p.stem, pool.submit(try_mutation, p, base, sources, options))
                        for p in patches]
            found = [report(name, attempt) for name, attempt in attempts]
    print(f"{sum(found)} of {len(found)} mistakes found in {time.monotonic() - begun:.0f} s")
    return 0 if found and all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
