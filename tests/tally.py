#!/usr/bin/env python3
"""Counts what a ctest run really ran: tally.py JUNIT.xml prints `passed failed skipped` last.

A test program holds many tests, so its own count is taken where it prints one (Check, TAP from
bats, Python's unittest); a program without one counts as one. A line that starts with `SKIP:` is a
skipped test, shown here. Failures are named.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def count(status, output):
    """(passed, failed, [what was skipped]) of one ctest test."""
    skips = re.findall(r"^(?:SKIP: (.*)|ok \d+ (.* # skip.*)|.*\.\.\. skipped (.*))$", output,
                       flags=re.M)
    skips = [next(filter(None, groups), "").strip() for groups in skips]
    if status == "notrun":
        return 0, 0, skips or ["the whole program"]
    passed = failed = 0
    for checks, failures, errors in re.findall(
            r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", output, flags=re.M):
        bad = int(failures) + int(errors)
        passed, failed = passed + int(checks) - bad, failed + bad
    passed += len(re.findall(r"^ok \d+", output, flags=re.M))
    failed += len(re.findall(r"^not ok \d+", output, flags=re.M))
    for total in re.findall(r"^Ran (\d+) tests? in ", output, flags=re.M):
        bad = sum(int(n) for n in re.findall(r"\b(?:failures|errors)=(\d+)", output))
        passed, failed = passed + int(total) - bad, failed + bad
    passed -= min(passed, len(skips))
    if status == "fail":
        failed = max(failed, 1)
    elif passed + failed + len(skips) == 0:
        passed = 1
    return passed, failed, skips


def main():
    totals = [0, 0, 0]
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        passed, failed, skips = count(case.get("status"), output)
        for skip in skips:
            print(f"  skipped  {case.get('name')}: {skip}")
        if failed:
            print(f"  FAILED   {case.get('name')}")
        totals = [totals[0] + passed, totals[1] + failed, totals[2] + len(skips)]
    print(*totals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
