#!/usr/bin/env python3
"""Draws one run on one page, from its HDF5 file alone.

Five panels over the same time axis: demand; GPUs by state with the need; time to first token with
its SLO; requests in flight and KV occupancy; dollars by hour.

  plot_day.py RUN.h5                 writes RUN.png
  plot_day.py RUN.h5 -o day.svg      PNG, SVG or PDF, by the suffix
  plot_day.py RUN.h5 --pool main     one pool instead of the whole fleet

As a function: plot_day(fleetio.open_run("RUN.h5")) returns a matplotlib Figure.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figure as fig  # noqa: E402
import fleetio  # noqa: E402
from figure import (BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION,  # noqa: E402
                    YELLOW, compact, dollars, duration, legend, note, style_axis)

STATES = [("serving", BLUE), ("idle", SKY), ("draining", GREY), ("loading", ORANGE),
          ("provisioning", YELLOW)]


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


def panel_ttft(page, axis, run):
    style_axis(axis, "Time to first token", "s (log scale)")
    p50, p99 = page.values("ttft_p50"), page.values("ttft_p99")
    if page.np.isnan(p50).all():
        note(axis, "no first tokens")
        return
    page.stairs(axis, p99, color=VERMILION, linewidth=1.8, label="p99")
    page.stairs(axis, p50, color=BLUE, linewidth=1.8, label="p50")
    few = page.values("ttft_count") < 100
    few &= ~page.np.isnan(p99)
    if few.any():
        axis.plot(page.middles[few], p99[few], "x", color=VERMILION, markersize=5,
                  label="p99 of fewer than 100 values")
    for limit in fig.slo_limits(run, "ttft"):
        axis.axhline(limit, color=INK, linewidth=1.1, linestyle=(0, (4, 3)),
                     label=f"SLO {duration(limit)}")
    fig.log_seconds(axis)
    legend(axis)


def hit_rate(page):
    """The share of prompt tokens found in the prefix cache, in %; None without any."""
    cached, prompt = page.values("tokens_cached"), page.values("tokens_prompt")
    if page.np.nansum(cached) == 0:
        return None
    return 100 * page.np.divide(cached, prompt, out=page.np.full(len(prompt), page.np.nan),
                                where=prompt > 0)


def panel_load(page, axis):
    shares = [(values, *style) for values, *style in (
        (100 * page.values("kv_occupancy_mean"), ORANGE, "--", "KV occupancy (right)"),
        (hit_rate(page), GREEN, "-.", "prefix hit rate (right)"))
        if values is not None and not page.np.isnan(values).all()]
    limited = page.has("kv_occupancy_mean")
    style_axis(axis, "In flight, KV memory, prefix cache" if len(shares) == 2 else
               "In flight and KV memory" if limited else "In flight (KV memory unlimited)",
               "requests per ready GPU")
    flight = page.values("in_flight_per_ready_gpu")
    page.stairs(axis, flight, color=BLUE, linewidth=1.8, label="in flight")
    axis.set_ylim(bottom=0)
    handles = axis.get_legend_handles_labels()[0]
    if shares:
        right = axis.twinx()
        for values, colour, line, label in shares:
            page.stairs(right, values, color=colour, linewidth=1.8, linestyle=line, label=label)
        right.set_ylabel("share (%)")
        right.set_ylim(0, 100)
        right.set_yticks([0, 25, 50, 75, 100])
        right.spines["top"].set_visible(False)
        handles += right.get_legend_handles_labels()[0]
    legend(axis, handles)


def panel_dollars(page, axis):
    style_axis(axis, "Dollars", rf"\$ per {fig.span(round(page.seconds[0], 3))}")
    usd, usd_in = page.values("usd"), page.values("usd_input")
    if page.np.isnan(usd).all():
        note(axis, "no price is set")
        return
    width = (page.ends - page.starts) * 0.86
    middles = page.middles
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
        parts.insert(2, f"SLO attained by {fig.attained(attainment)}")
    if usd == usd:
        parts.append(dollars(usd))
        parts.append(f"${total['usd_per_mtok_total'].item():.3g} per million tokens")
    return "  ·  ".join(parts)


def plot_day(run, pool=None):
    """Draws a fleetio.Run; pool: one pool's name, None: the fleet. Returns a matplotlib Figure."""
    plt = fig.pyplot()
    hours = fig.intervals(run, fig.check_pool(run, pool))
    figure, axes = plt.subplots(5, 1, figsize=(9.2, 12.4), sharex=True,
                                gridspec_kw={"height_ratios": [1, 1.35, 1, 1, 1]})
    page = fig.Page(figure, axes, hours)
    panel_demand(page, axes[0])
    panel_gpus(page, axes[1])
    panel_ttft(page, axes[2], run)
    panel_load(page, axes[3])
    panel_dollars(page, axes[4])
    fig.time_axis(axes[-1], page.edges[0], page.edges[-1])
    free = fig.header(figure, run.name if pool is None else f"{run.name}, pool {pool}", run.title,
                      headline(run, pool or "all"))
    figure.align_ylabels(axes)
    figure.tight_layout(rect=(0, 0, 1, free), h_pad=1.3)
    return figure


if __name__ == "__main__":
    sys.exit(fig.command(__doc__, "", lambda run, options: plot_day(run, options.pool),
                         fig.add_pool))
