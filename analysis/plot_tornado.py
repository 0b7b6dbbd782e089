#!/usr/bin/env python3
"""Draws what each input does to an output when it is changed alone: a tornado.

From the folder of `fleetsim sweep … --sensitivity OUTPUT` (or its sweep.h5). The widest bar is the
input that matters most; both ends say at which value.

  plot_tornado.py s                       cost; writes s-tornado.png beside the folder
  plot_tornado.py s -y ttft_p99 -o t.svg  another output; PNG, SVG or PDF, by the suffix

As a function: plot_tornado(fleetio.open_sweep("s"), "usd") returns a matplotlib Figure.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402
import fleetio  # noqa: E402
from figure import BLUE, INK, ORANGE, literal, style_axis  # noqa: E402

BARS_MAX = 20


def ends_of(sweep, output, name):
    """At which cases an input's least and largest value were found: two texts, "" for the base."""
    mean, _ = sweep.output(output)
    mine = sweep.data["case_input"].values == name
    values, labels = mean.values[mine], sweep.data["case"].values[mine]
    effect = sweep.sensitivity.sel(input=name)
    texts = []
    for end in ("low", "high"):
        found = labels[values == effect[f"{output}_{end}"].item()]
        texts.append(str(found[0]).partition("=")[2] if len(found) else "")
    return texts


def plot_tornado(sweep, output="usd"):
    """The inputs by what they do to an output, the widest above. Returns a matplotlib Figure."""
    numpy = fleetio.require("numpy")
    if sweep.sensitivity is None:
        raise fleetio.FileError(f"{sweep.path}: not one input at a time: make it with "
                                "`fleetsim sweep … --sensitivity OUTPUT`")
    mean, _ = sweep.output(output)
    effects = sweep.sensitivity
    swing = effects[f"{output}_swing"].values
    order = [at for at in numpy.argsort(-numpy.nan_to_num(swing, nan=-1)) if swing[at] ==
             swing[at]][:BARS_MAX]
    if not order:
        raise fleetio.FileError(f"{sweep.path}: no input changed {output}")
    base = float(effects[f"{output}_base"].values[order[0]])
    figure, axis = fig.pyplot().subplots(figsize=(8.6, 1.9 + 0.42 * len(order)))
    style_axis(axis, "", "", grid="x")
    names = []
    for row, at in enumerate(order):
        name = str(effects["input"].values[at])
        low, high = (float(effects[f"{output}_{end}"].values[at]) for end in ("low", "high"))
        axis.barh(-row, low - base, 0.62, left=base, color=BLUE)
        axis.barh(-row, high - base, 0.62, left=base, color=ORANGE)
        least, most = ends_of(sweep, output, name)
        for value, text, side in ((low, least, "right"), (high, most, "left")):
            if text and value != base:
                axis.annotate(literal(text, 28), (value, -row), (-4 if side == "right" else 4, 0),
                              textcoords="offset points", ha=side, va="center", fontsize=8)
        names.append(name)
    axis.axvline(base, color=INK, linewidth=1)
    axis.set_yticks([-row for row in range(len(names))], names)
    axis.tick_params(axis="y", length=0)
    axis.margins(x=0.2)
    unit = mean.attrs.get("units", "1")
    axis.set_xlabel(literal(mean.attrs.get("long_name", output) +
                            (f" ({unit})" if unit not in ("", "1") else "")))
    fig.thousands(axis.xaxis)
    free = fig.header(figure, sweep.name, sweep.title, f"one input changed at a time; the line is "
                      f"the base, {base:,.4g}", top=0.98)
    figure.tight_layout(rect=(0, 0, 1, free))
    return figure


def arguments(parser):
    parser.add_argument("-y", dest="output_name", metavar="OUTPUT", default="usd",
                        help="a column of the summary (usd)")


if __name__ == "__main__":
    sys.exit(fig.command(__doc__, "tornado", lambda sweep, options: plot_tornado(
        sweep, options.output_name), arguments, "SWEEP", fleetio.open_sweep))
