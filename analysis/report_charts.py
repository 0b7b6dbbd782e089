"""The charts of report.py as data for plotly.js: each a dictionary with data and layout.

Nothing of the Python side of plotly is needed: a chart is what its JavaScript takes. A function
returns None where the run has nothing for it.
"""
import fleetio
from figure import (BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION, YELLOW, percent,
                    span)

numpy = fleetio.require("numpy")

COLOURS = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK, GREY]
EXPERT_PANELS = 6
STATES = [("serving", BLUE), ("idle", SKY), ("draining", GREY), ("loading", ORANGE),
          ("provisioning", YELLOW)]
PARTS = [("usd_work", "work", BLUE), ("usd_headroom", "headroom", SKY),
         ("usd_cold_start", "cold starts", ORANGE), ("usd_drain", "draining", GREY),
         ("usd_rounding", "rounding", YELLOW)]
DURATIONS = [("queue", "to the first step", SKY, "dash"),
             ("ttft", "to the first token", BLUE, "solid"),
             ("itl", "between tokens", ORANGE, "dot"),
             ("tpot", "per output token", VERMILION, "dashdot"),
             ("e2e", "to the last token", INK, "solid")]


def chart(title, data, y, x=None, **layout):
    """y, x: axis titles or whole axes."""
    axes = {"yaxis": y if isinstance(y, dict) else {"title": {"text": y}, "rangemode": "tozero"},
            "xaxis": x if isinstance(x, dict) else {"title": {"text": x}} if x else {}}
    return {"title": title, "data": data, "layout": {**axes, **layout}}


class Times:
    """The run's intervals as plotly takes them."""

    def __init__(self, run, pool=None):
        hours = run.hours() if pool is None else run.hours("hourly").sel(pool=pool)
        bounds = hours["time_bnds"].values.astype("datetime64[ms]")
        self.edges = numpy.append(bounds[:, 0], bounds[-1:, 1]).astype(str).tolist()
        self.middles = (bounds[:, 0] + (bounds[:, 1] - bounds[:, 0]) // 2).astype(str).tolist()
        self.seconds = float((bounds[0, 1] - bounds[0, 0]) / numpy.timedelta64(1, "s"))
        self.hours = hours
        self.covered = hours["covered"].values

    def __contains__(self, name):
        return name in self.hours and not numpy.isnan(self.values(name)).all()

    def values(self, name):
        return self.hours[name].values.astype(float)

    def rate(self, name):
        with numpy.errstate(divide="ignore", invalid="ignore"):
            return self.values(name) / self.covered

    def stairs(self, values, name, colour, **style):
        """A line that holds each interval's value until the next."""
        line = {"color": colour, "width": 2, "shape": "hv", **style.pop("line", {})}
        return {"type": "scatter", "mode": "lines", "name": name, "line": line,
                "x": self.edges, "y": numbers(numpy.append(values, values[-1:])), **style}

    def axis(self):
        return {"title": {"text": "UTC"}, "type": "date",
                "range": [self.edges[0], self.edges[-1]]}


def numbers(values):
    """A list with None for what is not defined."""
    return [float(f"{value:.6g}") if value == value else None for value in
            numpy.asarray(values, dtype=float)]


def over_time(times, title, data, y, **layout):
    made = chart(title, data, y, times.axis(), hovermode="x unified", **layout)
    made["time"] = True
    return made


def limits(run, kind, scale=1):
    """SLO lines and their labels, for a layout."""
    found = []
    classes = run.groups.get("classes")
    if classes is not None:
        found = sorted({float(v) * scale for v in classes[f"slo_{kind}"].values if v == v})
    lines = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at,
              "line": {"color": INK, "width": 1.2, "dash": "dash"}} for at in found]
    return {"shapes": lines}, found


def log_axis(title, values):
    """Logarithmic, over at least a factor of four around the values, with 1-2-5 labels."""
    values = [v for v in values if v is not None and v == v and v > 0]
    low, high = min(values, default=1.0), max(values, default=1.0)
    widen = max(1.15, (4 * low / high) ** 0.5)
    low, high = low / widen, high * widen
    ticks = []
    for steps in (1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8):
        if len(ticks) < 3:
            ticks = [step * 10.0 ** power for power in range(-12, 13) for step in steps]
            ticks = [tick for tick in ticks if low <= tick <= high]
    return {"title": {"text": title}, "type": "log", "tickvals": ticks,
            "ticktext": [f"{tick:g}" for tick in ticks],
            "range": [float(numpy.log10(low)), float(numpy.log10(high))]}


def demand(run, times):
    data = [times.stairs(times.rate("arrived"), "arrived", BLUE, fill="tozeroy",
                         fillcolor="rgba(86,180,233,0.25)")]
    lost = times.rate("refused") + times.rate("unservable") + times.rate("cancelled")
    if numpy.nansum(lost) > 0:
        data.append(times.stairs(lost, "refused, unservable or cancelled", VERMILION,
                                 line={"dash": "dash"}))
    if "expected_rate" in times:
        data.append({"type": "scatter", "mode": "markers", "name": "expected on the hour",
                     "x": times.edges[:-1], "y": numbers(times.values("expected_rate")),
                     "marker": {"color": INK, "size": 5}})
    return over_time(times, "Demand", data, "requests / s")


def gpus(run, times):
    data = []
    for state, colour in STATES:
        mean = numpy.nan_to_num(times.values(f"gpus_{state}_mean"))
        if mean.sum() > 0:
            data.append(times.stairs(mean, state, colour, stackgroup="states", fillcolor=colour,
                                     line={"width": 0}))
    if "need_gpus" in times:
        data.append(times.stairs(times.values("need_gpus"), "need", INK))
    return over_time(times, "GPUs by state", data, "GPUs")


def latency_by_interval(run, times, kind, title):
    if f"{kind}_p50" not in times:
        return None
    scale, unit = (1e3, "ms") if kind == "tpot" else (1, "s")
    data = [times.stairs(scale * times.values(f"{kind}_{name}"), name, colour, line={"dash": dash})
            for name, colour, dash in (("p99", VERMILION, "solid"), ("p95", ORANGE, "dash"),
                                       ("p90", GREEN, "dashdot"), ("p50", BLUE, "solid"))]
    layout, found = limits(run, kind, scale)
    values = [value for trace in data for value in trace["y"]] + found
    if found:
        layout["annotations"] = [{"xref": "paper", "x": 1, "xanchor": "right", "y": numpy.log10(at),
                                  "yanchor": "bottom", "text": f"SLO {at:g} {unit}",
                                  "showarrow": False} for at in found]
    return over_time(times, title, data, log_axis(f"{unit} (log scale)", values), **layout)


def load(run, times):
    data = [times.stairs(times.values("in_flight_per_ready_gpu"), "in flight", BLUE)]
    layout = {}
    shares = []
    if "kv_occupancy_mean" in times:
        shares.append((times.values("kv_occupancy_mean"), "KV occupancy", ORANGE, "dash"))
    cached, prompt = times.values("tokens_cached"), times.values("tokens_prompt")
    if numpy.nansum(cached) > 0:
        with numpy.errstate(divide="ignore", invalid="ignore"):
            shares.append((cached / prompt, "prefix hit rate", GREEN, "dashdot"))
    for values, name, colour, dash in shares:
        data.append(times.stairs(100 * values, name, colour, yaxis="y2", line={"dash": dash}))
    if shares:
        layout["margin"] = {"l": 62, "r": 96, "t": 30, "b": 44}
        layout["yaxis2"] = {"title": {"text": "share (%)"}, "overlaying": "y", "side": "right",
                            "range": [0, 100], "showgrid": False}
    return over_time(times, "In flight, KV memory, prefix cache", data, "requests per ready GPU",
                     **layout)


def backlog(run, times):
    return over_time(times, "Backlog", [times.stairs(
        times.values("waiting_mean"), "not in a batch, mean", BLUE, fill="tozeroy",
        fillcolor="rgba(86,180,233,0.25)")], "requests waiting")


def scaling(run, times):
    events = run.groups.get("scaling")
    if events is None or not events.sizes["event"]:
        return None
    data = []
    stamps = events["time"].values.astype("datetime64[ms]").astype(str)
    pools = events["pool_name"].values
    for number, pool in enumerate(sorted(set(pools))):
        mine = pools == pool
        target = events["target"].values[mine].astype(float)
        before = (events["ready"].values + events["starting"].values)[mine].astype(float)
        texts = [f"{int(b)} → {int(t)}: {reason}" for b, t, reason in
                 zip(before, target, events["reason"].values[mine])]
        data.append({"type": "scatter", "mode": "lines+markers", "name": str(pool),
                     "x": [times.edges[0], *stamps[mine], times.edges[-1]],
                     "y": [before[0], *target, target[-1]],
                     "text": ["at the start", *texts, ""], "hovertemplate": "%{text}",
                     "line": {"shape": "hv", "color": COLOURS[number % len(COLOURS)]},
                     "marker": {"size": 5}})
    return over_time(times, "Scaling decisions", data, "replicas wanted")


def dollars_by_interval(run, times):
    if "usd" not in times:
        return None
    usd, usd_in, usd_out = (times.values(name) for name in ("usd", "usd_input", "usd_output"))
    rest = usd - numpy.nan_to_num(usd_in) - numpy.nan_to_num(usd_out)
    data = []
    for values, name, colour in ((usd_in, "input", GREEN), (usd_out, "output", PURPLE),
                                 (rest, "nothing ran", GREY)):
        if numpy.nansum(values) > 1e-9 * numpy.nansum(usd):
            data.append({"type": "bar", "name": name, "x": times.middles, "y": numbers(values),
                         "marker": {"color": colour}})
    made = over_time(times, "Dollars", data, f"$ per {span(round(times.seconds, 3))}")
    made["layout"].update(barmode="stack", bargap=0.14)
    return made


def waterfall(run):
    total = run.summary.sel(pool="all")
    usd = float(total["usd"].item())
    if not usd > 0:
        return None
    rows = [(label, float(total[name].item())) for name, label, _ in PARTS]
    rows = [(label, part) for label, part in rows if part == part]
    texts = [f"${part:,.2f} ({percent(part / usd)})" for _, part in rows] + [f"${usd:,.2f}"]
    data = [{"type": "waterfall", "orientation": "h",
             "y": [label for label, _ in rows] + ["billed"],
             "x": numbers([part for _, part in rows] + [0]), "text": texts,
             "textposition": "outside", "hoverinfo": "y+text", "cliponaxis": False,
             "measure": ["relative"] * len(rows) + ["total"], "base": 0,
             "increasing": {"marker": {"color": SKY}}, "totals": {"marker": {"color": GREEN}},
             "connector": {"line": {"color": GREY, "width": 1}}}]
    return chart("Where the bill went", data, {"autorange": "reversed"},
                 {"title": {"text": "$"}, "range": [0, 1.4 * usd]})


def references(run):
    total = run.summary.sel(pool="all")
    hours = float(total["gpu_hours_ideal"].item())
    price = float(total["usd_ideal"].item()) / hours if hours > 0 else float("nan")
    rows = [("floor", price * float(total["gpu_hours_floor"].item()), SKY),
            ("ideal", float(total["usd_ideal"].item()), BLUE),
            ("billed", float(total["usd"].item()), GREEN),
            ("peak", float(total["usd_peak"].item()), PURPLE)]
    rows = [row for row in rows if row[1] == row[1]]
    if len(rows) < 2:
        return None
    data = [{"type": "bar", "x": [row[0] for row in rows], "y": numbers([row[1] for row in rows]),
             "text": [f"${row[1]:,.0f}" for row in rows], "textposition": "outside",
             "cliponaxis": False, "marker": {"color": [row[2] for row in rows]},
             "hoverinfo": "text"}]
    return chart("Between the work alone (floor) and the largest need all the time (peak)", data,
                 {"title": {"text": "$"}, "range": [0, 1.14 * max(row[1] for row in rows)]})


def distributions(run):
    data = []
    for quantity, label, colour, dash in DURATIONS:
        low, high, count = run.distribution(quantity)
        if not len(count):
            continue
        share = 100 * numpy.append(0, numpy.cumsum(count) / count.sum())
        seconds = numpy.append(low[:1], high).clip(min=1e-4)
        if len(seconds) > 400:  # a picture has no more pixels: keep the tail's corners
            chosen = numpy.unique(numpy.append(numpy.linspace(0, len(seconds) - 1, 400).astype(int),
                                               numpy.searchsorted(share, [50, 90, 95, 99, 99.9])
                                               .clip(max=len(seconds) - 1)))
            seconds, share = seconds[chosen], share[chosen]
        data.append({"type": "scatter", "mode": "lines", "name": label, "x": numbers(seconds),
                     "y": numbers(share), "line": {"color": colour, "dash": dash, "width": 2},
                     "hovertemplate": "%{y:.4g} % within %{x:.4g} s"})
    if not data:
        return None
    seconds = [value for trace in data for value in trace["x"]]
    return chart("How long: the whole run", data, "share at or below (%)",
                 log_axis("s (log scale)", seconds))


def balance(run, times):
    """The busiest GPU over the mean, by group of layers and in a step."""
    data = run.groups.get("experts")
    if data is None:
        return None
    rows, traces = len(times.middles), []
    for at, name in enumerate(data["series"].values):
        if at < EXPERT_PANELS:
            traces.append(times.stairs(data["max_over_mean"].values[:rows, at], str(name),
                                       COLOURS[at % len(COLOURS)], line={"width": 1.5}))
    traces.append(times.stairs(data["step_max_over_mean"].values[:rows, 0], "in a step, mean", INK))
    return over_time(times, "Busiest GPU over the mean", traces,
                     {"title": {"text": "ratio (1: even)"}})


def expert_maps(run, times):
    """GPU × time, one map for each of the first pools' groups of layers."""
    data = run.groups.get("gpu")
    if data is None:
        return []
    rows, by_series = len(times.middles), {}
    for at, name in enumerate(data["gpu"].values):
        by_series.setdefault(str(name).rpartition("/")[0], []).append(at)
    load = data["load"].values[:rows].astype(float)
    if numpy.isnan(load).all():
        return []
    maps = []
    for name, columns in list(by_series.items())[:EXPERT_PANELS]:
        trace = {"type": "heatmap", "x": times.edges, "y": list(range(len(columns))),
                 "z": [numbers(load[:, column]) for column in columns], "colorscale": "Cividis",
                 "zmin": float(min(1, numpy.nanmin(load))),
                 "zmax": float(max(1, numpy.nanmax(load))),
                 "colorbar": {"title": {"text": "over mean", "side": "right"}, "thickness": 12},
                 "hovertemplate": "rank %{y}, %{x}: %{z:.3g}<extra></extra>"}
        made = over_time(times, f"Load by GPU: {name} (pool/group of layers)", [trace],
                         {"title": {"text": "rank"}, "autorange": "reversed"},
                         margin={"l": 62, "r": 96, "t": 30, "b": 44})
        made["layout"]["hovermode"] = "closest"
        maps.append(made)
    return maps


def of_run(run):
    """[(section, [chart, …]), …] of a fleetio.Run, in the order of the page."""
    times = Times(run)
    sections = [
        ("The day", [demand(run, times), gpus(run, times), load(run, times),
                     dollars_by_interval(run, times)]),
        ("What users notice", [
            latency_by_interval(run, times, "ttft", "Time to first token"),
            latency_by_interval(run, times, "tpot", "Time per output token"),
            latency_by_interval(run, times, "e2e", "Arrival to last token"),
            distributions(run)]),
        ("Experts", [balance(run, times), *expert_maps(run, times)]),
        ("How the fleet followed", [scaling(run, times), backlog(run, times)]),
        ("The bill", [waterfall(run), references(run)] if run.complete else []),
    ]
    sections = [(title, [c for c in charts if c]) for title, charts in sections]
    return [(title, charts) for title, charts in sections if charts]
