#!/usr/bin/env python3
"""Draws how long requests waited, from a run's HDF5 file alone.

Above, the distributions over the whole run, from the histograms in the file: the share at or below
a duration, and on a logarithmic scale the share above it. Below, percentiles by interval of the
time to first token, per output token and to the end, with their SLOs.

  plot_latency.py RUN.h5                 writes RUN-latency.png
  plot_latency.py RUN.h5 -o latency.svg  PNG, SVG or PDF, by the suffix

As a function: plot_latency(fleetio.open_run("RUN.h5")) returns a matplotlib Figure.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402
import fleetio  # noqa: E402
from figure import (BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, legend,  # noqa: E402
                    style_axis)

# Name, colour and line style of each quantity.
LINES = {"queue": ("to the first step", SKY, "--"), "ttft": ("to the first token", BLUE, "-"),
         "itl": ("between tokens", ORANGE, ":"),
         "tpot": ("per output token", VERMILION, "-."),
         "e2e": ("to the last token", INK, "-")}
PERCENTILES = [("p99", VERMILION, "-"), ("p95", ORANGE, "--"), ("p90", GREEN, "-."),
               ("p50", BLUE, "-")]
KINDS = [("ttft", "Time to first token, by interval"), ("tpot", "Time per output token"),
         ("e2e", "Arrival to last token")]


def share_at_most(low, high, count):
    """Durations and the share of values at or below them: the corners of a cumulative curve."""
    numpy = fleetio.require("numpy")
    cumulative = numpy.cumsum(count) / count.sum()
    return numpy.append(low[:1], high), numpy.append(0.0, cumulative)


def panel_distributions(whole, tail, run):
    style_axis(whole, "Distribution over the run", "share at or below (%)", grid="both")
    style_axis(tail, "Its tail", "share above (%, log scale)", grid="both")
    drawn = 0
    for quantity, (label, colour, line) in LINES.items():
        low, high, count = run.distribution(quantity)
        if not len(count):
            continue
        drawn += 1
        seconds, share = share_at_most(low, high, count)
        seconds = seconds.clip(min=1e-4)
        whole.plot(seconds, 100 * share, color=colour, linestyle=line, linewidth=1.6, label=label)
        above = 1 - share
        keep = above * count.sum() >= 0.5  # the last corner has nothing above it
        tail.plot(seconds[keep], 100 * above[keep], color=colour, linestyle=line, linewidth=1.6)
    for axis in (whole, tail):
        axis.set_xlabel("s (log scale)")
        if not drawn:
            fig.note(axis, "no histograms in this file")
            continue
        fig.log_seconds(axis, "x")
    if not drawn:
        return
    whole.set_ylim(0, 100)
    tail.set_yscale("log")
    tail.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    tail.set_ylim(top=100)


def panel_percentiles(page, axis, run, kind, title):
    scale, unit = (1e3, "ms") if kind == "tpot" else (1, "s")
    style_axis(axis, title, f"{unit} (log scale)")
    if not page.has(f"{kind}_p50"):
        fig.note(axis, "no values")
        return
    for name, colour, line in PERCENTILES:
        page.stairs(axis, scale * page.values(f"{kind}_{name}"), color=colour, linestyle=line,
                    linewidth=1.6, label=name)
    for limit in fig.slo_limits(run, kind):
        axis.axhline(scale * limit, color=PURPLE, linewidth=1.2, linestyle=(0, (4, 3)),
                     label=f"SLO {fig.duration(limit)}")
    fig.log_seconds(axis)
    legend(axis)


def plot_latency(run, pool=None):
    """Draws a fleetio.Run. pool: whose percentiles, None: all together; the distributions are those
    of all pools. Returns a matplotlib Figure."""
    plt = fig.pyplot()
    hours = fig.intervals(run, fig.check_pool(run, pool))
    figure = plt.figure(figsize=(9.2, 11.0))
    sides = {"left": 0.075, "right": 0.975}
    upper = figure.add_gridspec(1, 2, top=0.88, bottom=0.67, wspace=0.2, **sides)
    lower = figure.add_gridspec(3, 1, top=0.595, bottom=0.045, hspace=0.3, **sides)
    whole, tail = figure.add_subplot(upper[0, 0]), figure.add_subplot(upper[0, 1])
    panel_distributions(whole, tail, run)
    axes = []
    for row in range(3):
        axes.append(figure.add_subplot(lower[row, 0], sharex=axes[0] if axes else None))
    page = fig.Page(figure, axes, hours)
    for axis, (kind, title) in zip(axes, KINDS):
        panel_percentiles(page, axis, run, kind, title)
    for axis in axes[:-1]:
        axis.tick_params(labelbottom=False)
    fig.time_axis(axes[-1], page.edges[0], page.edges[-1])
    free = fig.header(figure, run.name if pool is None else f"{run.name}, pool {pool}", run.title)
    handles = whole.get_legend_handles_labels()[0]
    if handles:
        figure.legend(handles=handles, loc="upper left", ncol=5, frameon=False,
                      bbox_to_anchor=(0.06, free - 0.004), fontsize=8.5)
    figure.align_ylabels(axes)
    return figure


if __name__ == "__main__":
    sys.exit(fig.command(__doc__, "latency", lambda run, options: plot_latency(run, options.pool),
                         fig.add_pool))
