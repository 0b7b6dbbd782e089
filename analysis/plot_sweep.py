#!/usr/bin/env python3
"""Draws a sweep's outputs over its axes, from its folder (or sweep.h5) alone.

  plot_sweep.py night                             cost over the first axis, a line for each value of
                                                  the second; writes night-sweep.png beside it
  plot_sweep.py night -y ttft_p99 -x rate --by policy --at cold=2
                                                  another output; an axis that is not drawn is held
                                                  at its first value, or at the one that --at names
  plot_sweep.py night --map -y usd                colours over two axes, with the numbers
  plot_sweep.py night --pareto                    cost against p99 of the first token: every point,
                                                  and those that no other beats in both

Bars are 95 % intervals over the replications. PNG, SVG or PDF, by the suffix. As functions:
plot_sweep(fleetio.open_sweep("night"), "usd"), plot_map(…), plot_pareto(…) return a matplotlib
Figure.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402
import fleetio  # noqa: E402
from figure import BLUE, GREY, VERMILION, literal, style_axis  # noqa: E402

LINES_MAX = 8
LABELS_MAX = 12  # of points on the frontier
CELLS_MAX = 12   # along an axis of a map whose numbers are written


def label_of(array):
    """"cost ($)", "provisioning (min)"."""
    name, unit = array.attrs.get("long_name", array.name), array.attrs.get("units", "1")
    return literal(f"{name} ({unit})" if unit not in ("", "1") else str(name))


def value_text(array, at):
    """A coordinate's value with its unit: "2 min", "target"."""
    value, unit = array.values[at], array.attrs.get("units", "1")
    if array.dtype.kind in "OUS":
        return str(value)
    return f"{value:g}" + (f" {unit}" if unit not in ("", "1") else "")


def choose_axes(sweep, x, by):
    """The names of the axes to draw: those asked for, else the longest of numbers for x, and for
    the lines one of names, or what is left."""
    for name in (x, by):
        if name is not None and name not in sweep.axes:
            raise fleetio.FileError(f"{sweep.path}: no axis {name!r}; there is "
                                    f"{', '.join(sweep.axes)}")
    free = [name for name in sweep.axes if name not in (x, by)]
    numeric = [name for name in free if sweep.data[name].dtype.kind not in "OUS"]
    if x is None:
        x = max(numeric or free, key=lambda name: sweep.data.sizes[name])
        free.remove(x)
    if by is None:
        many = [name for name in free if sweep.data.sizes[name] > 1]
        by = max([name for name in many if name not in numeric] or many,
                 key=lambda name: sweep.data.sizes[name], default=None)
    return x, by


def hold(sweep, array, drawn, at):
    """The array with every axis that is not drawn held at one value, and what says so."""
    said = []
    for axis in sweep.axes:
        if axis in drawn or axis not in array.dims:
            continue
        values = sweep.data[axis]
        place = 0
        if axis in at:
            texts = [value_text(values, i) for i in range(len(values))]
            plain = [text.split(" ")[0] for text in texts]
            if at[axis] not in texts and at[axis] not in plain:
                raise fleetio.FileError(f"{sweep.path}: {axis} has no value {at[axis]!r}; it has "
                                        f"{', '.join(texts)}")
            place = (texts if at[axis] in texts else plain).index(at[axis])
        if len(values) > 1:
            said.append(f"{axis} = {value_text(values, place)}")
        array = array.isel({axis: place})
    return array, said


def positions(array):
    """Where a coordinate's values go on a drawn axis, and its ticks' labels (None: numbers)."""
    if array.dtype.kind in "OUS":
        return list(range(len(array))), [str(value) for value in array.values]
    return array.values, None


def name_ticks(axis, places, names):
    axis.set_xticks(places, [name if len(name) <= 14 else name[:13] + "…" for name in names],
                    rotation=0 if sum(map(len, names)) < 70 else 30, ha="center" if
                    sum(map(len, names)) < 70 else "right")


def title_of(figure, sweep, said):
    lines = [sweep.title] if sweep.title != sweep.name else []
    missing = "" if sweep.complete else (f"{sweep.meta.get('runs_done', '?')} of "
                                         f"{sweep.meta.get('runs', '?')} runs are done")
    rest = "  ·  ".join(part for part in (*said, missing) if part)
    return fig.header(figure, sweep.name, *lines, *([rest] if rest else []), top=0.985)


def plot_sweep(sweep, output="usd", x=None, by=None, at=None, log=False):
    """An output over axis x, a line for each value of axis by (None: chosen, the longest of numbers
    first). at: {axis: value} for those that are not drawn. Returns a matplotlib Figure."""
    mean, half = sweep.output(output)
    x, by = choose_axes(sweep, x, by)
    mean, said = hold(sweep, mean, (x, by), at or {})
    half = None if half is None else hold(sweep, half, (x, by), at or {})[0]
    figure, axis = fig.pyplot().subplots(figsize=(8.2, 5.0))
    style_axis(axis, "", label_of(mean), grid="both")
    places, names = positions(sweep.data[x])
    count = 1 if by is None else min(sweep.data.sizes[by], LINES_MAX)
    if by is not None and sweep.data.sizes[by] > count:
        said.append(f"the first {count} of {sweep.data.sizes[by]} values of {by}")
    for number in range(count):
        colour, line, mark = fig.SERIES[number]
        pick = {} if by is None else {by: number}
        spread = None if half is None else half.isel(pick).values
        axis.errorbar(places, mean.isel(pick).values, yerr=spread, color=colour,
                      linestyle="none" if names else line,
                      marker=mark, markersize=4.5, capsize=2.5, elinewidth=0.9,
                      label=None if by is None else value_text(sweep.data[by], number))
    if names:
        name_ticks(axis, places, names)
    axis.set_xlabel(label_of(sweep.data[x]))
    if log:
        fig.log_seconds(axis)
    else:
        low, high = axis.get_ylim()
        if sweep.data[output].attrs.get("units") == "1" and low > 0.9 * high:
            axis.margins(y=0.1)
        else:
            low = min(0, low)
            axis.set_ylim(low, high + 0.04 * (high - low))
            fig.thousands(axis.yaxis)
    if half is not None:
        said.append(f"95 % intervals over {sweep.data.sizes[fleetio.REPLICATION]} replications")
    free = title_of(figure, sweep, said)
    if by is not None:
        axis.legend(title=label_of(sweep.data[by]), frameon=False, fontsize=8.5,
                    loc="upper left", bbox_to_anchor=(1.01, 1))
    figure.tight_layout(rect=(0, 0, 1, free))
    return figure


def plot_map(sweep, output="usd", x=None, by=None, at=None):
    """An output as colours over two axes, with its numbers where there is room. Returns a
    matplotlib Figure."""
    numpy = fleetio.require("numpy")
    mean, _ = sweep.output(output)
    x, by = choose_axes(sweep, x, by)
    if by is None:
        raise fleetio.FileError(f"{sweep.path}: a map needs two axes of more than one value")
    mean, said = hold(sweep, mean, (x, by), at or {})
    values = mean.transpose(by, x).values
    figure, axis = fig.pyplot().subplots(figsize=(8.2, 5.0))
    mesh = axis.imshow(values, cmap="cividis", aspect="auto", origin="lower")
    figure.colorbar(mesh, ax=axis, pad=0.02).set_label(label_of(mean))
    for name, put in ((x, axis.set_xticks), (by, axis.set_yticks)):
        texts = [value_text(sweep.data[name], i).split(" ")[0] if sweep.data[name].dtype.kind
                 not in "OUS" else value_text(sweep.data[name], i)
                 for i in range(sweep.data.sizes[name])]
        step = -(-len(texts) // CELLS_MAX)
        put(range(0, len(texts), step), texts[::step])
    axis.set_xlabel(label_of(sweep.data[x]))
    axis.set_ylabel(label_of(sweep.data[by]))
    if max(values.shape) <= CELLS_MAX and not numpy.isnan(values).all():
        middle = (numpy.nanmin(values) + numpy.nanmax(values)) / 2
        for (row, column), value in numpy.ndenumerate(values):
            axis.text(column, row, "–" if value != value else f"{value:.3g}", ha="center",
                      va="center", fontsize=8, color="black" if value > middle else "white")
    free = title_of(figure, sweep, said)
    figure.tight_layout(rect=(0, 0, 1, free))
    return figure


def frontier(costs, waits):
    """Indices of the points that no other beats in both, by rising cost."""
    numpy = fleetio.require("numpy")
    best, kept = float("inf"), []
    for at in numpy.lexsort((waits, costs)):
        if waits[at] < best:
            best = waits[at]
            kept.append(int(at))
    return kept


def point_text(sweep, place, axes):
    return ", ".join(f"{axis}={value_text(sweep.data[axis], at)}" for axis, at in
                     zip(sweep.axes, place) if axis in axes)


def number_points(axis, points):
    """Numbers beside points; those that lie on each other share a label."""
    last, groups = None, []
    for row, point in enumerate(points):
        place = axis.transData.transform(point)
        if last is not None and abs(place - last).max() < 16:
            groups[-1][1].append(str(row + 1))
        else:
            groups.append((point, [str(row + 1)]))
        last = place
    for point, names in groups:
        axis.annotate(", ".join(names), point, (5, 5), textcoords="offset points", fontsize=8)


def plot_pareto(sweep, cost="usd", wait="ttft_p99"):
    """Every point's cost against its waiting time, and the frontier. Returns a matplotlib
    Figure."""
    numpy = fleetio.require("numpy")
    (costs, _), (waits, _) = sweep.output(cost), sweep.output(wait)
    costs = costs.transpose(*sweep.axes)
    waits = waits.transpose(*sweep.axes)
    x, y = costs.values.ravel(), waits.values.ravel()
    there = numpy.flatnonzero(~numpy.isnan(x) & ~numpy.isnan(y))
    if not len(there):
        raise fleetio.FileError(f"{sweep.path}: no point has both {cost} and {wait}")
    best = [int(there[at]) for at in frontier(x[there], y[there])]
    rows = 0.2 * min(len(best), LABELS_MAX)
    figure, (axis, table) = fig.pyplot().subplots(2, 1, figsize=(8.2, 5.2 + rows), gridspec_kw={
        "height_ratios": [3.6, max(0.2, rows)]})
    style_axis(axis, "", label_of(waits), grid="both")
    axis.plot(x[there], y[there], "o", color=GREY, markersize=4, alpha=0.7,
              label=f"all {len(there)} points")
    axis.step(x[best], y[best], where="post", color=VERMILION, linewidth=1.2)
    axis.plot(x[best], y[best], "o", color=BLUE, markersize=6,
              label="no other is cheaper and faster")
    axis.set_xlabel(label_of(costs))
    if wait.startswith(("ttft", "e2e", "tpot", "queue", "itl")) and (y[there] > 0).all():
        fig.log_seconds(axis)
        axis.set_ylabel(label_of(waits) + ", log scale")
    fig.thousands(axis.xaxis)
    shown = best if len(best) <= LABELS_MAX else [best[round(i * (len(best) - 1) / (
        LABELS_MAX - 1))] for i in range(LABELS_MAX)]
    axes = [name for name in sweep.axes if sweep.data.sizes[name] > 1]
    table.axis("off")
    for row, at in enumerate(shown):
        place = numpy.unravel_index(at, costs.shape)
        line = f"{row + 1}   {x[at]:,.4g}, {y[at]:.3g}:  {point_text(sweep, place, axes)}"
        table.text(0, 1 - (row + 0.5) / len(shown), literal(line, 120), fontsize=8.5, va="center",
                   transform=table.transAxes)
    axis.legend(frameon=False, fontsize=8.5, loc="upper right")
    free = title_of(figure, sweep, [])
    figure.tight_layout(rect=(0, 0, 1, free))
    number_points(axis, [(x[at], y[at]) for at in shown])
    return figure


def draw(sweep, options):
    at = {}
    for text in options.at or []:
        axis, _, value = text.partition("=")
        if axis not in sweep.axes:
            raise fleetio.FileError(f"{sweep.path}: no axis {axis!r}; there is "
                                    f"{', '.join(sweep.axes)}")
        at[axis] = value
    if options.pareto:
        return plot_pareto(sweep, options.output_name or "usd", options.against)
    if options.map:
        return plot_map(sweep, options.output_name or "usd", options.x, options.by, at)
    return plot_sweep(sweep, options.output_name or "usd", options.x, options.by, at, options.log)


def arguments(parser):
    parser.add_argument("-y", dest="output_name", metavar="OUTPUT",
                        help="a column of the summary (usd)")
    parser.add_argument("-x", metavar="AXIS", help="the axis to draw over")
    parser.add_argument("--by", metavar="AXIS", help="the axis of lines, or the map's second")
    parser.add_argument("--at", action="append", metavar="AXIS=VALUE",
                        help="where to hold an axis that is not drawn; may be repeated")
    parser.add_argument("--log", action="store_true", help="a logarithmic scale")
    parser.add_argument("--map", action="store_true", help="colours over two axes")
    parser.add_argument("--pareto", action="store_true", help="cost against waiting time")
    parser.add_argument("--against", default="ttft_p99", metavar="OUTPUT",
                        help="of --pareto: the other output (ttft_p99)")


if __name__ == "__main__":
    sys.exit(fig.command(__doc__, "sweep", draw, arguments, "SWEEP", fleetio.open_sweep))
