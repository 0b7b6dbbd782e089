#!/usr/bin/env python3
"""Draws how evenly experts load the GPUs, hour by hour, from a run's HDF5 file alone.

Above, the busiest GPU over the mean: over whole intervals, and as single steps pay for it.
Below, a heat map for each group of layers: every expert-parallel rank, its tokens over the mean of
the ranks. For runs whose pools state step_time.experts.

  plot_experts.py RUN.h5                       writes RUN-experts.png
  plot_experts.py RUN.h5 --layers 0,3          only these groups of layers
  plot_experts.py RUN.h5 --pool wide -o e.svg  one pool of several; PNG, SVG or PDF by the suffix

As a function: plot_experts(fleetio.open_run("RUN.h5")) returns a matplotlib Figure.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402
import fleetio  # noqa: E402
from figure import INK, legend, style_axis  # noqa: E402

PANELS_MAX = 8
COLOURS = "cividis"  # even to any eye, and rising in lightness on paper


def series_of(data, pool):
    """The columns of a group over series that belong to the pool: {layer group: indices}."""
    found = {}
    pools, layers = data["pool"].values, data["layer_group"].values
    pools, layers = (values[0] if values.ndim == 2 else values for values in (pools, layers))
    for at, (mine, layer) in enumerate(zip(pools, layers)):
        if int(mine) == pool:
            found.setdefault(int(layer), []).append(at)
    return found


def choose(run, pool, layers):
    """The pool's index and name, and the layer groups to draw."""
    if "gpu" not in run.groups:
        raise fleetio.FileError(f"{run.path}: it has no load by GPU: no pool states "
                                "step_time.experts")
    names = [str(name) for name in run.hourly["pool"].values]
    first = run.groups["gpu"]["pool"].values.ravel()
    index = names.index(fig.check_pool(run, pool)) if pool else int(first[0])
    groups = sorted(series_of(run.groups["gpu"], index))
    if not groups:
        raise fleetio.FileError(f"{run.path}: pool {pool!r} states no step_time.experts")
    wanted = groups[:PANELS_MAX] if layers is None else layers
    for layer in wanted:
        if layer not in groups:
            raise fleetio.FileError(f"{run.path}: no group of layers {layer}; there is "
                                    f"{groups[0]} to {groups[-1]}")
    return index, names[index], wanted


def times_of(data):
    """Edges of the intervals, the drain's left out, and which rows they are."""
    numpy, dates = fleetio.require("numpy"), __import__("matplotlib.dates").dates
    bounds = dates.date2num(data["time_bnds"].values)
    return numpy.append(bounds[:, 0], bounds[-1:, 1])


def panel_balance(axis, run, pool, layers, edges, rows):
    style_axis(axis, "Busiest GPU over the mean", "ratio (1: even)")
    data = run.groups["experts"]
    groups = series_of(data, pool)
    for number, layer in enumerate(layers):
        colour, line, _ = fig.SERIES[number % len(fig.SERIES)]
        values = data["max_over_mean"].values[:rows, groups[layer][0]].astype(float)
        axis.stairs(values, edges, baseline=None, color=colour, linestyle=line, linewidth=1.5,
                    label=f"layers {layer}" if len(layers) > 1 else "whole interval")
    steps = data["step_max_over_mean"].values[:rows, groups[layers[0]][0]].astype(float)
    axis.stairs(steps, edges, baseline=None, color=INK, linewidth=1.8, label="in a step, mean")
    axis.set_ylim(bottom=1)
    legend(axis)


def panel_map(axis, data, columns, edges, rows, limits, title):
    numpy = fleetio.require("numpy")
    style_axis(axis, title, "rank", grid="x")
    axis.grid(False)
    load = data["load"].values[:rows, columns].astype(float).T
    ranks = numpy.arange(load.shape[0] + 1) - 0.5
    mesh = axis.pcolormesh(edges, ranks, load, cmap=COLOURS, vmin=limits[0], vmax=limits[1],
                           rasterized=True)
    axis.set_ylim(ranks[-1], ranks[0])
    axis.yaxis.set_major_locator(__import__("matplotlib.ticker").ticker.MaxNLocator(
        nbins=5, integer=True))
    return mesh


def plot_experts(run, pool=None, layers=None):
    """Draws a fleetio.Run; pool: a pool's name, None: the first with experts; layers: groups of
    layers, None: the first eight. Returns a matplotlib Figure."""
    numpy, plt = fleetio.require("numpy"), fig.pyplot()
    index, name, layers = choose(run, pool, layers)
    data = run.groups["gpu"]
    edges = times_of(data)
    horizon = fig.intervals(run)  # the rows before the drain
    rows = min(len(horizon["time"]), len(data["time"]))
    edges = edges[:rows + 1]
    groups = series_of(data, index)
    shown = numpy.concatenate([data["load"].values[:rows, groups[layer]].astype(float).ravel()
                               for layer in layers])
    if numpy.isnan(shown).all():
        raise fleetio.FileError(f"{run.path}: no expert of pool {name} had a token")
    limits = min(1.0, float(numpy.nanmin(shown))), max(1.0, float(numpy.nanmax(shown)))
    count = len(layers)
    figure, axes = plt.subplots(count + 1, 1, figsize=(9.2, 3.3 + 1.75 * count), sharex=True,
                                gridspec_kw={"height_ratios": [1.1] + [1] * count})
    panel_balance(axes[0], run, index, layers, edges, rows)
    for axis, layer in zip(axes[1:], layers):
        mesh = panel_map(axis, data, groups[layer], edges, rows, limits,
                         f"Load by GPU, group of layers {layer}")
    fig.time_axis(axes[-1], edges[0], edges[-1])
    free = fig.header(figure, f"{run.name}, pool {name}", run.title,
                      f"{len(groups[layers[0]])} expert-parallel ranks  ·  least {limits[0]:.3g}, "
                      f"most {limits[1]:.3g} of the mean")
    figure.align_ylabels(axes)
    figure.tight_layout(rect=(0, 0, 0.915, free), h_pad=1.2)
    box_low, box_high = axes[-1].get_position(), axes[1].get_position()
    bar = figure.add_axes((0.922, box_low.y0, 0.015, box_high.y1 - box_low.y0))
    figure.colorbar(mesh, cax=bar).set_label("tokens over the mean of the ranks")
    return figure


def layer_list(text):
    return [int(part) for part in text.split(",")]


def arguments(parser):
    fig.add_pool(parser)
    parser.add_argument("--layers", type=layer_list, metavar="N[,N]",
                        help="groups of layers (default: the first eight)")


if __name__ == "__main__":
    sys.exit(fig.command(__doc__, "experts", lambda run, options: plot_experts(
        run, options.pool, options.layers), arguments))
