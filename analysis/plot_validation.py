#!/usr/bin/env python3
"""Draws predicted against measured time per output token.

    plot_validation.py POINTS.csv [-o docs/validation.png]

POINTS.csv is what the validation program writes when FLEETSIM_VALIDATION_CSV names a file:

    FLEETSIM_VALIDATION_CSV=points.csv ctest -R validation/test_serving_points
"""
import argparse
import csv
import sys

try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("plot_validation.py: needs matplotlib (Debian: python3-matplotlib)")

COLOURS = {"llama-3.1-8b": "#66ccee", "llama-3.1-70b": "#4477aa", "qwen3-32b": "#228833",
           "qwen3-235b-a22b": "#ccbb44", "deepseek-v3": "#ee6677", "deepseek-r1": "#ee6677"}


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def colour_of(model):
    return COLOURS.get(model.lower().replace(" ", "-"), "#888888")


def draw(axes, rows, title):
    low, high = 2.0, 250.0
    axes.plot([low, high], [low, high], color="black", linewidth=0.8)
    axes.fill_between([low, high], [0.8 * low, 0.8 * high], [1.2 * low, 1.2 * high],
                      color="black", alpha=0.08, linewidth=0, label="within 20 %")
    for model in sorted({row["model"] for row in rows}):
        kept = [r for r in rows if r["model"] == model and r["excluded"] == "0"]
        axes.scatter([float(r["measured_tpot_ms"]) for r in kept],
                     [float(r["predicted_tpot_ms"]) for r in kept], s=9, alpha=0.7,
                     color=colour_of(model), linewidths=0, label=f"{model} ({len(kept)})")
    out = [r for r in rows if r["excluded"] != "0"]
    axes.scatter([float(r["measured_tpot_ms"]) for r in out],
                 [float(r["predicted_tpot_ms"]) for r in out], s=18, marker="x", color="#555555",
                 linewidths=0.8, label=f"excluded ({len(out)})")
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), title=title,
             xlabel="measured, ms per output token", ylabel="predicted, ms")
    axes.set_aspect("equal")
    axes.legend(fontsize=7, loc="upper left")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("points", help="the CSV of the validation program")
    parser.add_argument("-o", "--output", default="docs/validation.png")
    arguments = parser.parse_args()
    rows = read(arguments.points)
    figure, (dense, moe) = plt.subplots(1, 2, figsize=(9.6, 4.9))
    draw(dense, [r for r in rows if r["moe"] == "0"], "dense models")
    draw(moe, [r for r in rows if r["moe"] == "1"], "mixture of experts")
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=90)
    print(f"{arguments.output}: {len(rows)} points")


if __name__ == "__main__":
    main()
