"""What the figures have in common: colours, labels, panels, saving, the command line.

A figure's script has a function that takes an opened run or sweep and returns a matplotlib
Figure, and `main` that is one call of `command` below.
"""
import argparse
import sys
from pathlib import Path

import fleetio

# Okabe and Ito's colours, distinguishable with any colour vision; uses differ in lightness or in
# line style too, so that they survive a grey printer.
BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, VERMILION, PURPLE, INK, GREY = "#E69F00", "#D55E00", "#CC79A7", "#222222", "#8A8A8A"
SERIES = [(BLUE, "-", "o"), (VERMILION, "--", "s"), (GREEN, "-.", "^"), (PURPLE, ":", "D"),
          (ORANGE, "-", "v"), (SKY, "--", "P"), (INK, "-.", "X"), (GREY, ":", "*")]
SUFFIXES = (".png", ".svg", ".pdf")
STYLE = {"font.size": 9, "axes.edgecolor": "#666666", "axes.labelcolor": INK, "text.color": INK,
         "xtick.color": INK, "ytick.color": INK, "svg.hashsalt": "fleetsim",
         "font.family": "DejaVu Sans", "figure.dpi": 100}


def pyplot():
    """matplotlib.pyplot, drawing to files, in our style."""
    matplotlib = fleetio.require("matplotlib")
    matplotlib.use("Agg")
    plt = __import__("matplotlib.pyplot").pyplot
    plt.rcParams.update(STYLE)
    return plt


def compact(value, digits=3):
    """1234567 → 1.23 M."""
    for scale, suffix in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= scale:
            return f"{value / (1e3 if suffix == ' k' else scale):.{digits}g}{suffix}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.{digits}g}"


def literal(text, width=None):
    """Text as it stands: a dollar would open a formula. One line, cut at width."""
    if width and len(text) > width:
        text = text[:width - 1].rstrip() + "…"
    return text.replace("$", r"\$")


def duration(value):
    """Seconds with a unit a reader likes."""
    if value != value:
        return "–"
    if 0 < value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s" if value < 600 else f"{value / 60:.3g} min"


def span(seconds):
    """The length of an interval: "hour", "4 h", "5 min"."""
    for unit, one, many in ((86400, "day", "days"), (3600, "hour", "h"), (60, "min", "min")):
        if seconds >= unit:
            return one if seconds == unit else f"{seconds / unit:g} {many}"
    return f"{seconds:g} s"


def percent(share):
    """0.0123 → 1.2 %."""
    share *= 100
    if 0 < share < 0.1:
        return "< 0.1 %"
    return f"{share:,.0f} %" if share >= 99.95 else f"{share:.1f} %"


def attained(share):
    """0.98326 → 98.32 %: never more than was reached, as the program prints it."""
    return f"{int(share * 1e4 + 1e-9) / 100:.2f} %"


def dollars(value):
    """$6,761; $12.30 below a hundred."""
    if value != value:
        return "–"
    return f"${value:,.0f}" if abs(value) >= 100 else f"${value:,.2f}"


def note(axis, text):
    """What a panel says that has nothing to draw."""
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color=GREY)


def style_axis(axis, title, label, grid="y"):
    if title:
        axis.set_title(title, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=7)
    axis.set_ylabel(label)
    axis.grid(axis=grid, color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def legend(axis, handles=None, **options):
    """On the line of the title, at the right."""
    settings = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.995), "frameon": False,
                "fontsize": 8.5, "borderaxespad": 0.2, "handlelength": 1.6, "columnspacing": 1.4}
    handles = handles or axis.get_legend_handles_labels()[0]
    settings["ncol"] = max(1, len(handles))
    settings.update(options)
    if handles:
        axis.legend(handles=handles, **settings)


def log_seconds(axis, which="y"):
    """A logarithmic axis of seconds with labels that read as numbers, at least two of them."""
    ticker = __import__("matplotlib.ticker").ticker
    get, put = (axis.get_ylim, axis.set_ylim) if which == "y" else (axis.get_xlim, axis.set_xlim)
    (axis.set_yscale if which == "y" else axis.set_xscale)("log")
    low, high = get()
    if high < 4 * low:  # a flat day: room for two labelled ticks
        middle = (low * high) ** 0.5
        put(middle / 2, middle * 2)
        low, high = get()
    target = axis.yaxis if which == "y" else axis.xaxis
    target.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 1e3 * low else (1,)))
    target.set_major_formatter(lambda value, _: f"{value:g}")
    target.set_minor_locator(ticker.NullLocator())


def time_axis(axis, low, high):
    """low, high: matplotlib dates, in UTC."""
    dates = __import__("matplotlib.dates").dates
    locator = dates.AutoDateLocator(minticks=6, maxticks=13)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(dates.DateFormatter("%a %d") if high - low > 3.5 else
                                   dates.ConciseDateFormatter(locator, show_offset=False))
    axis.set_xlim(low, high)
    axis.set_xlabel(f"time from {dates.num2date(low):%Y-%m-%d} (UTC)")


class Page:
    """The axes of a page over time, and the intervals they show."""

    def __init__(self, figure, axes, hours):
        np, dates = fleetio.require("numpy"), __import__("matplotlib.dates").dates
        self.np, self.figure, self.axes = np, figure, axes
        self.hours = hours
        bounds = dates.date2num(hours["time_bnds"].values)
        self.starts, self.ends = bounds[:, 0], bounds[:, 1]
        self.edges = np.append(self.starts, self.ends[-1])
        self.middles = (self.starts + self.ends) / 2
        self.seconds = (self.ends - self.starts) * 86400
        self.covered = hours["covered"].values

    def has(self, name):
        return name in self.hours and not self.np.isnan(self.values(name)).all()

    def values(self, name):
        return self.hours[name].values.astype(float)

    def rate(self, name):
        """A count per second of what the interval covers."""
        with self.np.errstate(divide="ignore", invalid="ignore"):
            return self.values(name) / self.covered

    def stairs(self, axis, values, **style):
        return axis.stairs(values, self.edges, baseline=None, **style)


def intervals(run, pool=None):
    """The run's rows before the horizon: of one pool, or (None) of all together."""
    hours = run.hours() if pool is None else run.hours("hourly").sel(pool=pool)
    if len(hours["time"]) == 0:
        raise fleetio.FileError(f"{run.path}: no interval is finished yet")
    return hours


def thousands(axis):
    """Ticks such as 12,500 on a linear axis (figure.axis.xaxis or .yaxis)."""
    ticker = __import__("matplotlib.ticker").ticker
    axis.set_major_formatter(ticker.FuncFormatter(
        lambda value, _: f"{value:,.0f}" if value == int(value) else f"{value:g}"))


def header(figure, title, *lines, top=0.992):
    """A title and lines below it, at the left; returns the height that is free below."""
    inch = 1 / figure.get_size_inches()[1]
    figure.suptitle(literal(title, 70), x=0.012, y=top, ha="left", va="top", fontsize=15,
                    fontweight="bold")
    at = top - 0.33 * inch
    for number, line in enumerate(lines):
        figure.text(0.012, at, literal(line, 150), ha="left", va="top", fontsize=9.5,
                    color="#555555" if number == 0 else INK)
        at -= 0.21 * inch
    return at + 0.12 * inch


def slo_limits(run, kind):
    """The classes' limits on ttft, tpot or e2e, in seconds, each once."""
    classes = run.groups.get("classes")
    if classes is None:
        return []
    return sorted({float(value) for value in classes[f"slo_{kind}"].values if value == value})


def save(figure, target):
    """PNG, SVG or PDF by suffix; no date inside, so that equal runs give equal pictures. A PNG has
    few colours, so it is kept with a palette: a third of the bytes."""
    suffix = Path(target).suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
    figure.savefig(target, dpi=120, metadata=metadata)
    if suffix == ".png":
        image = __import__("PIL.Image").Image  # matplotlib needs it, too
        with image.open(target) as picture:
            small = picture.convert("RGB").quantize(255, dither=image.Dither.NONE)
        small.save(target, optimize=True)


def command(doc, what, draw, arguments=None, operand="RUN.h5", opener=fleetio.open_run):
    """The main of a figure's script. what: ends the default name, RUN-what.png ("": RUN.png).
    draw(opened, options) returns the figure; arguments(parser) adds options. Returns an exit
    code."""
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar=operand, help="what fleetsim wrote")
    parser.add_argument("-o", "--output", action="append", metavar="PICTURE",
                        help=f"a picture: {', '.join(SUFFIXES)}; may be repeated (default "
                             f"{'RUN-' + what if what else 'RUN'}.png)")
    if arguments:
        arguments(parser)
    options = parser.parse_args()
    source = Path(options.run)
    outputs = options.output or [str(source.parent / (
        source.stem + ("-" + what if what else "") + ".png"))]
    for output in outputs:
        if Path(output).suffix.lower() not in SUFFIXES:
            parser.error(f"the picture's suffix must be one of {', '.join(SUFFIXES)}, not "
                         f"{output!r}")
    try:
        drawn = draw(opener(options.run), options)
        for output in outputs:
            save(drawn, output)
            print(f"wrote {output}")
    except (fleetio.FileError, OSError) as reason:
        print(f"{Path(sys.argv[0]).name}: {reason}", file=sys.stderr)
        return 1
    return 0


def add_pool(parser):
    parser.add_argument("--pool", metavar="NAME", help="one pool (default: all together)")


def check_pool(run, pool):
    if pool is not None and pool not in run.hourly["pool"].values:
        names = ", ".join(run.hourly["pool"].values)
        raise fleetio.FileError(f"no pool {pool!r}; there is {names}")
    return pool
