#!/usr/bin/env python3
"""Draws what `fleetsim compare --json` found: cost and time to first token.

  plot_compare.py -o out.png --x "cold start (s)" 0=a.json 30=b.json 600=c.json
      one curve for each variant, over the numbers given
  plot_compare.py -o out.png --x "spare replicas" one.json
      one curve, over the number at the end of each variant's name
"""
import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleetio  # noqa: E402

COLOURS = ["#222222", "#0072B2", "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"]


def curves_over_files(files):
    """{variant: [(x, result), …]} of x=FILE arguments."""
    curves = {}
    for argument in files:
        x, _, path = argument.partition("=")
        with open(path, encoding="utf-8") as file:
            for variant in json.load(file)["variants"]:
                curves.setdefault(variant["name"], []).append((float(x), variant["result"]))
    return curves


def curve_over_variants(path):
    """One curve over the numbers that end the variants' names; others are left out."""
    points = []
    with open(path, encoding="utf-8") as file:
        for variant in json.load(file)["variants"]:
            number = re.search(r"(\d+(?:\.\d+)?)$", variant["name"])
            if number:
                points.append((float(number.group(1)), variant["result"]))
    return {"": sorted(points, key=lambda point: point[0])}


def plot_compare(curves, x_label):
    """Two panels over the same axis; returns a matplotlib Figure."""
    fleetio.require("matplotlib")
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, (cost, wait) = pyplot.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    for (name, points), colour in zip(curves.items(), COLOURS):
        xs = [x for x, _ in points]
        cost.plot(xs, [r["cost"]["usd"] for _, r in points], "o-", color=colour, label=name)
        wait.plot(xs, [r["latency"]["ttft_s"]["p99"] for _, r in points], "o-", color=colour)
    cost.set(xlabel=x_label, ylabel=r"cost (\$)", ylim=(0, None))
    wait.set(xlabel=x_label, ylabel="time to first token, p99 (s)", yscale="log")
    wait.axhline(1, color="#8A8A8A", linestyle=":", linewidth=1)
    for axis in (cost, wait):
        axis.grid(color="#DDDDDD", linewidth=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    if len(curves) > 1:
        cost.legend(frameon=False, fontsize=8)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="[X=]FILE.json")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--x", default="", help="label of the horizontal axis")
    arguments = parser.parse_args()
    named = all("=" in file for file in arguments.files)
    if not named and len(arguments.files) > 1:
        parser.error("several files need a number each: 30=b.json")
    read = curves_over_files(arguments.files) if named else curve_over_variants(arguments.files[0])
    plot_compare(read, arguments.x).savefig(arguments.output, dpi=120)


if __name__ == "__main__":
    main()
