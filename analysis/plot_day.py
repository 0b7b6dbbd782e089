#!/usr/bin/env python3
"""Draws one run on one page, from its HDF5 file alone.

Five panels over the same time axis: demand; GPUs by state with the need; time to first token with
its SLO; requests in flight and KV occupancy; dollars by hour.

  plot_day.py RUN.h5                 writes RUN.png
  plot_day.py RUN.h5 -o day.pdf      PNG, SVG or PDF, by the suffix
  plot_day.py RUN.h5 --pool main     one pool instead of the whole fleet

As a function: plot_day(fleetio.open_run("RUN.h5")) returns a matplotlib Figure.
"""
import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleetio  # noqa: E402

# Okabe and Ito's colours, distinguishable with any colour vision; states differ in lightness too.
BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, VERMILION, PURPLE, INK, GREY = "#E69F00", "#D55E00", "#CC79A7", "#222222", "#8A8A8A"
STATES = [("serving", BLUE), ("idle", SKY), ("draining", GREY), ("loading", ORANGE),
          ("provisioning", YELLOW)]


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
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s" if value < 600 else f"{value / 60:.3g} min"


class Page:
    """The axes of a page and the intervals they show."""

    def __init__(self, figure, axes, hours):
        np, dates = fleetio.require("numpy"), __import__("matplotlib.dates").dates
        self.np, self.figure, self.axes = np, figure, axes
        self.hours = hours
        bounds = dates.date2num(hours["time_bnds"].values)
        self.starts, self.ends = bounds[:, 0], bounds[:, 1]
        self.edges = np.append(self.starts, self.ends[-1])
        self.seconds = (self.ends - self.starts) * 86400
        self.covered = hours["covered"].values

    def values(self, name):
        return self.hours[name].values.astype(float)

    def rate(self, name):
        """A count per second of what the interval covers."""
        with self.np.errstate(divide="ignore", invalid="ignore"):
            return self.values(name) / self.covered

    def stairs(self, axis, values, **style):
        return axis.stairs(values, self.edges, baseline=None, **style)


def note(axis, text):
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color=GREY)


def style_axis(axis, title, label):
    axis.set_title(title, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=7)
    axis.set_ylabel(label)
    axis.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def legend(axis, handles=None, **options):
    settings = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.995), "frameon": False,
                "fontsize": 8.5, "borderaxespad": 0.2, "handlelength": 1.6, "columnspacing": 1.4}
    settings.update(options)
    handles = handles or axis.get_legend_handles_labels()[0]
    if handles:
        axis.legend(handles=handles, ncol=len(handles), **settings)


def panel_demand(page, axis):
    style_axis(axis, "Demand", "requests / s")
    arrived = page.rate("arrived")
    axis.stairs(arrived, page.edges, fill=True, color=SKY, alpha=0.35)
    page.stairs(axis, arrived, color=BLUE, linewidth=1.6, label="arrived")
    lost = page.rate("refused") + page.rate("unservable") + page.rate("cancelled")
    if page.np.nansum(lost) > 0:
        page.stairs(axis, lost, color=VERMILION, linewidth=1.6, linestyle="--",
                    label="refused, unservable or cancelled")
    expected = page.values("expected_rate")
    if not page.np.isnan(expected).all():
        axis.plot(page.starts, expected, "o", color=INK, markersize=3, label="expected on the hour")
    axis.set_ylim(bottom=0)
    legend(axis)


def panel_gpus(page, axis):
    style_axis(axis, "GPUs by state", "GPUs")
    base = page.np.zeros(len(page.starts))
    for state, colour in STATES:
        mean = page.np.nan_to_num(page.values(f"gpus_{state}_mean"))
        if mean.sum() == 0:
            continue
        axis.stairs(base + mean, page.edges, baseline=base, fill=True, color=colour, label=state,
                    linewidth=0)
        base = base + mean
    need = page.values("need_gpus")
    if not page.np.isnan(need).all():
        page.stairs(axis, need, color=INK, linewidth=1.5, label="need")
    axis.set_ylim(bottom=0)
    legend(axis)


def slo_lines(page, axis, run):
    """The classes' limits on time to first token, each once."""
    classes = run.groups.get("classes")
    limits = [] if classes is None else sorted({float(v) for v in classes["slo_ttft"].values
                                                if v == v})
    for limit in limits:
        axis.axhline(limit, color=INK, linewidth=1.1, linestyle=(0, (4, 3)),
                     label=f"SLO {duration(limit)}")


def panel_ttft(page, axis, run):
    style_axis(axis, "Time to first token", "s (log scale)")
    p50, p99 = page.values("ttft_p50"), page.values("ttft_p99")
    if page.np.isnan(p50).all():
        note(axis, "no first tokens")
        return
    axis.set_yscale("log")
    page.stairs(axis, p99, color=VERMILION, linewidth=1.8, label="p99")
    page.stairs(axis, p50, color=BLUE, linewidth=1.8, label="p50")
    few = page.values("ttft_count") < 100
    few &= ~page.np.isnan(p99)
    if few.any():
        middles = (page.starts + page.ends) / 2
        axis.plot(middles[few], p99[few], "x", color=VERMILION, markersize=5,
                  label="p99 of fewer than 100 values")
    slo_lines(page, axis, run)
    low, high = axis.get_ylim()
    if high < 4 * low:  # a flat day: room for two labelled ticks
        middle = (low * high) ** 0.5
        axis.set_ylim(middle / 2, middle * 2)
    ticker = __import__("matplotlib.ticker").ticker
    decades = page.np.log10(axis.get_ylim()[1] / axis.get_ylim()[0])
    axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if decades < 3 else (1,)))
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(lambda value, _: "")
    legend(axis)


def panel_load(page, axis):
    occupancy = 100 * page.values("kv_occupancy_mean")
    limited = not page.np.isnan(occupancy).all()
    style_axis(axis, "Requests in flight and KV occupancy" if limited else
               "Requests in flight (KV memory unlimited)", "requests per ready GPU")
    flight = page.values("in_flight_per_ready_gpu")
    page.stairs(axis, flight, color=BLUE, linewidth=1.8, label="in flight (running or waiting)")
    axis.set_ylim(bottom=0)
    handles = axis.get_legend_handles_labels()[0]
    if limited:
        right = axis.twinx()
        page.stairs(right, occupancy, color=ORANGE, linewidth=1.8, linestyle="--",
                    label="KV occupancy (right)")
        right.set_ylabel("KV occupancy (%)")
        right.set_ylim(0, 100)
        right.set_yticks([0, 25, 50, 75, 100])
        right.spines["top"].set_visible(False)
        handles += right.get_legend_handles_labels()[0]
    legend(axis, handles)


def panel_dollars(page, axis, hours_each):
    unit = "$ per hour" if hours_each == 1 else f"$ per {hours_each:g} h interval"
    style_axis(axis, "Dollars", unit)
    usd, usd_in = page.values("usd"), page.values("usd_input")
    if page.np.isnan(usd).all():
        note(axis, "no price is set")
        return
    width = (page.ends - page.starts) * 0.86
    middles = (page.starts + page.ends) / 2
    usd_in = page.np.where(page.np.isnan(usd_in), 0, usd_in)
    split = page.values("usd_output")
    split = page.np.where(page.np.isnan(split), 0, split)
    plain = usd - usd_in - split  # nothing ran: no ratio to split by
    bottom = page.np.zeros(len(usd))
    for part, colour, label in ((usd_in, GREEN, "input"), (split, PURPLE, "output"),
                                (plain, GREY, "nothing ran")):
        if page.np.nansum(part) > 1e-9 * page.np.nansum(usd):
            axis.bar(middles, part, width, bottom=bottom, color=colour, label=label)
            bottom = bottom + part
    low, high = page.values("usd_low"), page.values("usd_high")
    if not page.np.isnan(low + high).all():
        axis.errorbar(middles, usd, yerr=[usd - low, high - usd], fmt="none", ecolor=INK,
                      elinewidth=0.9, capsize=2.2, label="low to high price")
    axis.set_ylim(bottom=0)
    legend(axis)


def headline(run, pool):
    """The numbers a reader wants first."""
    total = run.summary.sel(pool=pool) if "summary" in run.groups and run.complete else None
    if total is None:
        return "unfinished run: the hours so far"
    parts = [f"{compact(total['arrived'].item())} requests",
             f"TTFT p99 {duration(total['ttft_p99'].item())}",
             f"{compact(total['gpu_hours_billed'].item(), 4)} GPU hours billed"]
    attainment, usd = total["slo_attainment"].item(), total["usd"].item()
    if attainment == attainment:
        parts.insert(2, f"SLO attained by {100 * attainment:.4g} %")
    if usd == usd:
        parts.append(f"${usd:,.0f}")
        parts.append(f"${total['usd_per_mtok_total'].item():.3g} per million tokens")
    return "   ·   ".join(parts)


def time_axis(page, axis):
    dates = __import__("matplotlib.dates").dates
    locator = dates.AutoDateLocator(minticks=6, maxticks=13)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, show_offset=False))
    axis.set_xlim(page.edges[0], page.edges[-1])
    axis.set_xlabel(f"time from {dates.num2date(page.edges[0]):%Y-%m-%d} (UTC)")


def plot_day(run, pool=None):
    """Draws a fleetio.Run; pool: one pool's name, None: the fleet. Returns a matplotlib Figure."""
    matplotlib = fleetio.require("matplotlib")
    matplotlib.use("Agg")
    plt = __import__("matplotlib.pyplot").pyplot
    hours = run.hours() if pool is None else run.hours("hourly").sel(pool=pool)
    if len(hours["time"]) == 0:
        raise fleetio.FileError(f"{run.path}: no interval is finished yet")
    style = {"font.size": 9, "axes.edgecolor": "#666666", "axes.labelcolor": INK,
             "text.color": INK, "xtick.color": INK, "ytick.color": INK, "svg.hashsalt": "fleetsim",
             "font.family": "DejaVu Sans"}
    with plt.rc_context(style):
        figure, axes = plt.subplots(5, 1, figsize=(9.2, 12.4), sharex=True,
                                    gridspec_kw={"height_ratios": [1, 1.35, 1, 1, 1]})
        page = Page(figure, axes, hours)
        panel_demand(page, axes[0])
        panel_gpus(page, axes[1])
        panel_ttft(page, axes[2], run)
        panel_load(page, axes[3])
        panel_dollars(page, axes[4], round(page.seconds[0] / 3600, 6))
        time_axis(page, axes[-1])
        name = run.name if pool is None else f"{run.name}, pool {pool}"
        figure.suptitle(literal(name, 70), x=0.012, y=0.992, ha="left", va="top", fontsize=15,
                        fontweight="bold")
        figure.text(0.012, 0.966, literal(run.title, 130), ha="left", va="top", fontsize=9.5,
                    color="#555555")
        figure.text(0.012, 0.949, literal(headline(run, pool or "all")), ha="left", va="top",
                    fontsize=9.5)
        figure.align_ylabels(axes)
        figure.tight_layout(rect=(0, 0, 1, 0.945), h_pad=1.3)
    return figure


def save(figure, target):
    """PNG, SVG or PDF by suffix; no date inside, so that equal runs give equal pictures."""
    suffix = Path(target).suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
    figure.savefig(target, dpi=150, metadata=metadata)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.
                                     RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run's HDF5 file")
    parser.add_argument("-o", "--output", help="the picture: .png, .svg or .pdf (default RUN.png)")
    parser.add_argument("--pool", help="one pool (default: all together)")
    arguments = parser.parse_args()
    output = arguments.output or str(Path(arguments.run).with_suffix(".png"))
    if Path(output).suffix.lower() not in (".png", ".svg", ".pdf"):
        parser.error(f"the picture's suffix must be .png, .svg or .pdf, not {output!r}")
    try:
        run = fleetio.open_run(arguments.run)
        if arguments.pool and arguments.pool not in run.hourly["pool"].values:
            names = ", ".join(run.hourly["pool"].values)
            raise fleetio.FileError(f"no pool {arguments.pool!r}; there is {names}")
        save(plot_day(run, arguments.pool), output)
    except (fleetio.FileError, OSError) as reason:
        print(f"plot_day.py: {reason}", file=sys.stderr)
        return 1
    print(f"wrote {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
