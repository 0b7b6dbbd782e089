#!/usr/bin/env python3
"""Draws where every dollar of a run went, from its HDF5 file alone.

Left, the bill as a waterfall: work, headroom, cold starts, draining, rounding. Right,
the bill between what the work alone, the ideal fleet and the fleet at its peak would cost.

  plot_cost.py RUN.h5                 writes RUN-cost.png
  plot_cost.py RUN.h5 -o cost.svg     PNG, SVG or PDF, by the suffix

As a function: plot_cost(fleetio.open_run("RUN.h5")) returns a matplotlib Figure.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402
import fleetio  # noqa: E402
from figure import (BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, YELLOW, dollars,  # noqa: E402
                    literal, style_axis)

PARTS = [("usd_work", "work", BLUE), ("usd_headroom", "headroom", SKY),
         ("usd_cold_start", "cold starts", ORANGE), ("usd_drain", "draining", GREY),
         ("usd_rounding", "rounding", YELLOW)]


def value(total, name):
    return float(total[name].item())


def panel_waterfall(axis, total):
    style_axis(axis, "Where the bill went", "", grid="x")
    usd, at = value(total, "usd"), 0.0
    labels, rows = [], [(name, label, colour) for name, label, colour in PARTS
                        if value(total, name) == value(total, name)]
    for row, (name, label, colour) in enumerate(rows):
        part = value(total, name)
        axis.barh(-row, part, 0.62, left=at, color=colour)
        axis.text(max(at, at + part) + 0.012 * usd, -row, literal(
            f"{dollars(part)}  ({fig.percent(part / usd)})"), va="center", fontsize=8.5)
        if row + 1 < len(rows):
            axis.plot([at + part] * 2, [-row - 0.31, -row - 0.69], color=GREY, linewidth=0.8)
        at += part
        labels.append(label)
    axis.barh(-len(rows), usd, 0.62, color=GREEN)
    axis.text(1.012 * usd, -len(rows), literal(dollars(usd)), va="center", fontsize=8.5,
              fontweight="bold")
    axis.set_yticks([-row for row in range(len(rows) + 1)], labels + ["billed"])
    axis.tick_params(axis="y", length=0)
    axis.set_xlim(0, 1.32 * usd)
    axis.set_xlabel(literal("$"))
    fig.thousands(axis.xaxis)


def references(total):
    """[(label, dollars, low, high, colour)], the cheapest first; undefined ones left out."""
    ideal_hours, usd_ideal = value(total, "gpu_hours_ideal"), value(total, "usd_ideal")
    price = usd_ideal / ideal_hours if ideal_hours > 0 else float("nan")
    nan = float("nan")
    rows = [("floor:\nthe work\nalone", price * value(total, "gpu_hours_floor"), nan, nan, SKY),
            ("ideal:\neach hour's\nneed", usd_ideal, nan, nan, BLUE),
            ("billed:\nthis run", value(total, "usd"), value(total, "usd_low"),
             value(total, "usd_high"), GREEN),
            ("peak:\nlargest need\nall the time", value(total, "usd_peak"), nan, nan, PURPLE)]
    return [row for row in rows if row[1] == row[1]]


def panel_references(axis, total):
    style_axis(axis, "Between floor and peak", literal("$"))
    rows = references(total)
    for at, (_, usd, low, high, colour) in enumerate(rows):
        axis.bar(at, usd, 0.62, color=colour)
        spread = low == low and high > low
        if spread:
            axis.errorbar([at], [usd], yerr=[[usd - low], [high - usd]], fmt="none", ecolor=INK,
                          elinewidth=0.9, capsize=3)
        axis.annotate(literal(dollars(usd)), (at, high if spread else usd), (0, 3),
                      textcoords="offset points", ha="center", va="bottom", fontsize=8.5)
    axis.set_xticks(range(len(rows)), [row[0] for row in rows])
    axis.tick_params(axis="x", length=0)
    axis.margins(y=0.1)
    axis.set_ylim(bottom=0)
    fig.thousands(axis.yaxis)


def side(usd, reference):
    return "below" if usd <= reference else "above"


def sentence(total):
    usd, peak, ideal = (value(total, name) for name in ("usd", "usd_peak", "usd_ideal"))
    parts = [f"{dollars(usd)} for {value(total, 'gpu_hours_billed'):,.4g} GPU hours",
             f"${value(total, 'usd_per_mtok_total'):.3g} per million tokens"]
    if peak > 0:
        parts.append(f"{fig.percent(abs(usd / peak - 1))} {side(usd, peak)} peak")
    if ideal > 0:
        parts.append(f"{fig.percent(abs(usd / ideal - 1))} {side(usd, ideal)} ideal")
    refused = value(total, "usd_refused")
    if refused > 0:
        parts.append(f"refused work would be {dollars(refused)} more")
    return "  ·  ".join(parts)


def plot_cost(run, pool=None):
    """Draws a complete fleetio.Run with a price; pool: one pool's name, None: the fleet. Returns a
    matplotlib Figure."""
    plt = fig.pyplot()
    if not run.complete:
        raise fleetio.FileError(f"{run.path}: the run is not finished: it has no summary")
    total = run.summary.sel(pool=fig.check_pool(run, pool) or "all")
    usd = value(total, "usd")
    if not usd > 0:
        raise fleetio.FileError(f"{run.path}: nothing was billed; does a pool state a price?")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.2, 4.6),
                                         gridspec_kw={"width_ratios": [1.25, 1]})
    panel_waterfall(left, total)
    panel_references(right, total)
    free = fig.header(figure, run.name if pool is None else f"{run.name}, pool {pool}", run.title,
                      sentence(total), top=0.98)
    figure.tight_layout(rect=(0, 0, 1, free), w_pad=2)
    return figure


if __name__ == "__main__":
    sys.exit(fig.command(__doc__, "cost", lambda run, options: plot_cost(run, options.pool),
                         fig.add_pool))
