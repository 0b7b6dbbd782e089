#!/usr/bin/env python3
"""Draws the autoscaler's decisions and the backlog around them, from a run's HDF5 file alone.

Four panels over the same time axis: replicas ready and wanted; each decision, by how many replicas;
requests waiting; time to first token with its SLO.

  plot_scaling.py RUN.h5                          writes RUN-scaling.png
  plot_scaling.py RUN.h5 --from 12 --to 21        only these hours, counted from the run's start
  plot_scaling.py RUN.h5 --pool main -o s.svg     one pool of several; PNG, SVG or PDF by the suffix

The backlog is as fine as the run's output.trace_interval. As a function:
plot_scaling(fleetio.open_run("RUN.h5")) returns a matplotlib Figure.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402
import fleetio  # noqa: E402
from figure import BLUE, GREY, INK, ORANGE, SKY, VERMILION, legend, style_axis  # noqa: E402


class Decisions:
    """The scaling group's rows of one pool (None: all), as arrays."""

    def __init__(self, run, pool):
        dates = __import__("matplotlib.dates").dates
        events = run.groups["scaling"]
        if pool is not None:
            events = events.isel(event=(events["pool_name"].values == pool))
        self.pools = events["pool_name"].values
        self.times = dates.date2num(events["time"].values) if len(self.pools) else []
        self.before = events["ready"].values.astype(float) + events["starting"].values
        self.ready = events["ready"].values.astype(float)
        self.target = events["target"].values.astype(float)
        self.change = self.target - self.before


def panel_replicas(page, axis, decisions, only_pool):
    style_axis(axis, "Replicas", "replicas")
    if not len(decisions.times):
        fig.note(axis, "no decision changed the fleet")
    pools = sorted(set(decisions.pools))
    for number, pool in enumerate(pools):
        colour, line, mark = fig.SERIES[number % len(fig.SERIES)]
        mine = decisions.pools == pool
        times = page.np.concatenate(([page.edges[0]], decisions.times[mine], [page.edges[-1]]))
        wanted = page.np.concatenate((decisions.before[mine][:1], decisions.target[mine],
                                      decisions.target[mine][-1:]))
        label = "wanted (ready and starting)" if only_pool or len(pools) == 1 else f"{pool}: wanted"
        axis.step(times, wanted, where="post", color=colour, linestyle=line, linewidth=1.6,
                  label=label)
        axis.plot(decisions.times[mine], decisions.ready[mine], mark, color=colour, markersize=3.5,
                  markerfacecolor="white", markeredgewidth=0.9,
                  label="ready when decided" if len(pools) == 1 else f"{pool}: ready")
    axis.set_ylim(bottom=0)
    legend(axis, ncol=min(4, max(1, 2 * len(pools))))


def panel_changes(page, axis, decisions):
    style_axis(axis, "Decisions", "change, replicas")
    for up, colour, mark, label in ((True, BLUE, "^", "up"), (False, ORANGE, "v", "down")):
        chosen = (decisions.change > 0) if up else (decisions.change < 0)
        if not chosen.any():
            continue
        times = page.np.asarray(decisions.times)[chosen]
        axis.vlines(times, 0, decisions.change[chosen], color=colour, linewidth=1.4)
        axis.plot(times, decisions.change[chosen], mark, color=colour, markersize=5,
                  label=label)
    axis.axhline(0, color=INK, linewidth=0.8)
    axis.margins(y=0.15)
    legend(axis)


def panel_backlog(page, axis):
    style_axis(axis, "Backlog", "requests waiting")
    waiting = page.values("waiting_mean")
    axis.stairs(page.np.nan_to_num(waiting), page.edges, fill=True, color=SKY, alpha=0.35)
    page.stairs(axis, waiting, color=BLUE, linewidth=1.6, label="not in a batch, mean")
    axis.set_ylim(bottom=0)
    legend(axis)


def panel_ttft(page, axis, run):
    style_axis(axis, "Time to first token", "s (log scale)")
    if not page.has("ttft_p99"):
        fig.note(axis, "no first tokens")
        return
    page.stairs(axis, page.values("ttft_p99"), color=VERMILION, linewidth=1.8, label="p99")
    page.stairs(axis, page.values("ttft_p50"), color=BLUE, linewidth=1.8, linestyle="--",
                label="p50")
    for limit in fig.slo_limits(run, "ttft"):
        axis.axhline(limit, color=INK, linewidth=1.1, linestyle=(0, (4, 3)),
                     label=f"SLO {fig.duration(limit)}")
    fig.log_seconds(axis)
    legend(axis)


def plot_scaling(run, pool=None, first=None, last=None):
    """Draws a fleetio.Run; pool: one pool's name, None: all; first, last: hours from the start,
    None: the whole run. Returns a matplotlib Figure."""
    plt = fig.pyplot()
    hours = fig.intervals(run, fig.check_pool(run, pool))
    figure, axes = plt.subplots(4, 1, figsize=(9.2, 9.6), sharex=True,
                                gridspec_kw={"height_ratios": [1.3, 1, 1, 1]})
    page = fig.Page(figure, axes, hours)
    low = page.edges[0] if first is None else page.edges[0] + first / 24
    high = page.edges[-1] if last is None else page.edges[0] + last / 24
    if not page.edges[0] <= low < high <= page.edges[-1] + 1e-9:
        whole = (page.edges[-1] - page.edges[0]) * 24
        raise fleetio.FileError(f"{run.path}: from and to lie within 0 and {whole:g} h")
    decisions = Decisions(run, pool)
    panel_replicas(page, axes[0], decisions, pool)
    panel_changes(page, axes[1], decisions)
    panel_backlog(page, axes[2])
    panel_ttft(page, axes[3], run)
    for axis in axes:
        for time in decisions.times if len(decisions.times) <= 60 else []:
            axis.axvline(time, color=GREY, linewidth=0.5, alpha=0.45, zorder=0)
    fig.time_axis(axes[-1], low, high)
    ups, downs = int((decisions.change > 0).sum()), int((decisions.change < 0).sum())
    free = fig.header(figure, run.name if pool is None else f"{run.name}, pool {pool}", run.title,
                      f"{ups} decisions up, {downs} down  ·  one row per "
                      f"{fig.span(round(page.seconds[0], 3))}")
    figure.align_ylabels(axes)
    figure.tight_layout(rect=(0, 0, 1, free), h_pad=1.3)
    return figure


def arguments(parser):
    fig.add_pool(parser)
    parser.add_argument("--from", type=float, dest="first", metavar="HOURS",
                        help="where the picture begins, from the run's start")
    parser.add_argument("--to", type=float, dest="last", metavar="HOURS", help="where it ends")


if __name__ == "__main__":
    sys.exit(fig.command(__doc__, "scaling", lambda run, options: plot_scaling(
        run, options.pool, options.first, options.last), arguments))
