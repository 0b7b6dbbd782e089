#!/usr/bin/env python3
"""Draws what `fleetsim compare --json` found: cost and time to first token.

  plot_compare.py -o out.png --x "cold start (s)" 0=a.json 30=b.json 600=c.json
      one curve for each variant, over the numbers given
  plot_compare.py -o out.png --x "spare replicas" one.json
      one curve, over the number at the end of each variant's name

--slo 1 draws the limit on the time to first token. PNG, SVG or PDF, by the suffix. As a function:
plot_compare({"name": [(x, result), …]}, "label") returns a matplotlib Figure.
"""
import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402


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


def plot_compare(curves, x_label, limit=None):
    """Two panels over the same axis. limit: the SLO on time to first token, in seconds. Returns a
    matplotlib Figure."""
    figure, (cost, wait) = fig.pyplot().subplots(1, 2, figsize=(9, 3.8))
    for number, (name, points) in enumerate(curves.items()):
        colour, line, mark = fig.SERIES[number % len(fig.SERIES)]
        xs = [x for x, _ in points]
        style = {"color": colour, "linestyle": line, "marker": mark, "markersize": 4.5}
        cost.plot(xs, [r["cost"]["usd"] for _, r in points], label=name, **style)
        wait.plot(xs, [r["latency"]["ttft_s"]["p99"] for _, r in points], **style)
    fig.style_axis(cost, "Cost", fig.literal("$"), grid="both")
    fig.style_axis(wait, "Time to first token, p99", "s (log scale)", grid="both")
    if limit is not None:
        line = wait.axhline(limit, color=fig.INK, linestyle=(0, (4, 3)), linewidth=1.1,
                            label=f"SLO {fig.duration(limit)}")
        fig.legend(wait, [line])
    fig.log_seconds(wait)
    for axis in (cost, wait):
        axis.set_xlabel(x_label)
    cost.set_ylim(bottom=0)
    fig.thousands(cost.yaxis)
    several = len(curves) > 1
    if several:
        figure.legend(handles=cost.get_legend_handles_labels()[0], loc="lower center",
                      ncol=len(curves), frameon=False, fontsize=8.5)
    figure.tight_layout(rect=(0, 0.07 if several else 0, 1, 1), w_pad=2)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="[X=]FILE.json")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--x", default="", help="label of the horizontal axis, with its unit")
    parser.add_argument("--slo", type=float, metavar="SECONDS",
                        help="the limit on the time to first token, as a line")
    arguments = parser.parse_args()
    named = all("=" in file for file in arguments.files)
    if not named and len(arguments.files) > 1:
        parser.error("several files need a number each: 30=b.json")
    read = curves_over_files(arguments.files) if named else curve_over_variants(arguments.files[0])
    fig.save(plot_compare(read, arguments.x, arguments.slo), arguments.output)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
