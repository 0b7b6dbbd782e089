#!/usr/bin/env python3
"""Draws predicted against measured time per output token, or the theory of queues over simulation.

    plot_validation.py POINTS.csv [-o docs/validation.png]
    plot_validation.py --mm1 SWEEP [-o docs/validation-theory.png]

POINTS.csv is what the validation program writes when FLEETSIM_VALIDATION_CSV names a file:

    FLEETSIM_VALIDATION_CSV=points.csv ctest -R validation/test_serving_points

SWEEP is the folder of a sweep over the rate of an M/M/1 queue (docs/validation-theory.md): its axis
is `rate`, its outputs are queue_mean and queue_p99. PNG, SVG or PDF, by the suffix.
"""
import argparse
import csv
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402
import fleetio  # noqa: E402

COLOURS = {"llama-3.1-8b": fig.SKY, "llama-3.1-70b": fig.BLUE, "qwen3-32b": fig.GREEN,
           "qwen3-235b-a22b": fig.ORANGE, "deepseek-v3": fig.VERMILION, "deepseek-r1": fig.PURPLE}


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def colour_of(model):
    return COLOURS.get(model.lower().replace(" ", "-"), fig.GREY)


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
             xlabel="measured (ms per output token)", ylabel="predicted (ms per output token)")
    axes.set_aspect("equal")
    axes.legend(fontsize=7, loc="upper left")


def plot_points(rows):
    """Predicted over measured for the rows of POINTS.csv. Returns a matplotlib Figure."""
    figure, (dense, moe) = fig.pyplot().subplots(1, 2, figsize=(9.6, 4.9))
    draw(dense, [r for r in rows if r["moe"] == "0"], "dense models")
    draw(moe, [r for r in rows if r["moe"] == "1"], "mixture of experts")
    figure.tight_layout()
    return figure


def plot_mm1(sweep, service_rate=10.0):
    """Waits of a fleetio.Sweep over `rate` beside those of an M/M/1 queue: mean λ/μ / (μ − λ), and
    p99, where P(wait > t) = λ/μ e^−(μ − λ)t. Returns a matplotlib Figure."""
    numpy = fleetio.require("numpy")
    rates = sweep.data["rate"].values
    fine = numpy.linspace(0.2 * rates.min(), min(1.01 * rates.max(), 0.98 * service_rate), 300)
    load = fine / service_rate
    theory = {"queue_mean": load / (service_rate - fine),
              "queue_p99": numpy.maximum(0, numpy.log(100 * load)) / (service_rate - fine)}
    figure, axes = fig.pyplot().subplots(1, 2, figsize=(9.6, 4.2))
    for axis, output, title in zip(axes, theory, ("Mean wait", "p99 of the wait")):
        mean, half = sweep.output(output)
        fig.style_axis(axis, title, "s (log scale)", grid="both")
        axis.plot(fine, theory[output], color=fig.INK, linewidth=1.3, label="M/M/1, theory")
        axis.errorbar(rates, mean.values, yerr=None if half is None else half.values, fmt="o",
                      color=fig.VERMILION, markersize=5, capsize=3,
                      label="simulated, 95 % interval")
        axis.set_xlabel("arrivals (requests / s)")
        fig.log_seconds(axis)
        axis.legend(frameon=False, fontsize=8.5, loc="upper left")
    figure.tight_layout(w_pad=2)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", help="the CSV of the validation program, or a sweep's folder")
    parser.add_argument("--mm1", action="store_true", help="a sweep over an M/M/1 queue's rate")
    parser.add_argument("-o", "--output", help="the picture (docs/validation.png, or with --mm1 "
                                               "docs/validation-theory.png)")
    arguments = parser.parse_args()
    try:
        if arguments.mm1:
            drawn, output = plot_mm1(fleetio.open_sweep(arguments.points)), "validation-theory"
        else:
            drawn, output = plot_points(read(arguments.points)), "validation"
        output = arguments.output or f"docs/{output}.png"
        fig.save(drawn, output)
    except (fleetio.FileError, OSError) as reason:
        print(f"plot_validation.py: {reason}", file=sys.stderr)
        return 1
    print(f"wrote {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
