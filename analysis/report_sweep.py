"""The sweep's part of report.py: an explorer of its outputs on its axes, the frontier of cost
against waiting, what each input does alone, and the table of all points."""
import itertools

import fleetio
from figure import BLUE, GREY, ORANGE, VERMILION
from plot_sweep import frontier, point_text, value_text
from plot_tornado import ends_of
from report_charts import chart, log_axis, numbers

numpy = fleetio.require("numpy")

HEADLINES = ["usd", "usd_per_mtok_total", "ttft_p99", "tpot_p99", "e2e_p99", "slo_attainment",
             "gpu_hours_billed", "gpu_hours_peak", "utilization", "ttft_p50", "ttft_mean",
             "tpot_p50", "queue_p99", "arrived", "completed", "refused", "preemptions",
             "tokens_cached", "tokens_prompt", "tokens_output", "usd_headroom", "usd_cold_start",
             "kv_peak_blocks", "replicas_held_max"]
NUMBERS_MAX = 400_000  # that the page holds
ROWS_MAX = 2000        # of the table


def outputs_of(sweep):
    """The outputs the page shows, the usual first; fewer where there are many points."""
    there = sweep.outputs()
    if len(there) > len(HEADLINES):
        there = [name for name in HEADLINES if name in there]
    else:
        there.sort(key=lambda name: HEADLINES.index(name) if name in HEADLINES else 99)
    there = [name for name in there if not numpy.isnan(sweep.output(name)[0].values).all()]
    points = int(numpy.prod([sweep.data.sizes[axis] for axis in sweep.axes]))
    return there[:max(2, NUMBERS_MAX // max(1, 2 * points))]


def described(array, name):
    unit = array.attrs.get("units", "1")
    return {"label": array.attrs.get("long_name", name), "unit": "" if unit == "1" else unit}


def explorer(sweep, names):
    """What report_sweep.js draws from: axes with their values, outputs on them, the last axis
    fastest."""
    axes, outputs = [], []
    for name in sweep.axes:
        values = sweep.data[name]
        text = values.dtype.kind in "OUS"
        axes.append({"name": name, **described(values, name),
                     "texts": [value_text(values, at) for at in range(len(values))],
                     "numbers": None if text else numbers(values.values)})
    for name in names:
        mean, half = sweep.output(name)
        outputs.append({"name": name, **described(mean, name),
                        "mean": numbers(mean.transpose(*sweep.axes).values.ravel()),
                        "half": None if half is None else
                        numbers(half.transpose(*sweep.axes).values.ravel())})
    return {"axes": axes, "outputs": outputs}


def pareto(sweep, cost="usd", wait="ttft_p99"):
    if not {cost, wait} <= set(sweep.outputs()):
        return None
    costs, waits = (sweep.output(name)[0].transpose(*sweep.axes) for name in (cost, wait))
    x, y = costs.values.ravel(), waits.values.ravel()
    there = numpy.flatnonzero(~numpy.isnan(x) & ~numpy.isnan(y))
    if len(there) < 2:
        return None
    axes = [name for name in sweep.axes if sweep.data.sizes[name] > 1]
    texts = [point_text(sweep, numpy.unravel_index(at, costs.shape), axes) for at in there]
    best = frontier(x[there], y[there])
    hover = "%{text}<br>$%{x:.4g}, %{y:.4g} s<extra></extra>"
    data = [{"type": "scatter", "mode": "markers", "name": "all points", "x": numbers(x[there]),
             "y": numbers(y[there]), "text": texts, "hovertemplate": hover,
             "marker": {"color": GREY, "size": 6, "opacity": 0.65}},
            {"type": "scatter", "mode": "lines+markers", "name": "no other is cheaper and faster",
             "x": numbers(x[there][best]), "y": numbers(y[there][best]),
             "text": [texts[at] for at in best], "hovertemplate": hover,
             "line": {"shape": "hv", "color": VERMILION, "width": 1.3},
             "marker": {"color": BLUE, "size": 9}}]
    return chart("Cost against the p99 of the first token", data,
                 log_axis("time to first token, p99 (s, log scale)", y[there]),
                 "cost ($)")


def tornado(sweep, output):
    effects = sweep.sensitivity
    if effects is None or f"{output}_swing" not in effects:
        return None
    swing = effects[f"{output}_swing"].values
    order = [at for at in numpy.argsort(numpy.nan_to_num(swing, nan=-1)) if swing[at] == swing[at]]
    if not order:
        return None
    base = float(effects[f"{output}_base"].values[order[0]])
    names = [str(effects["input"].values[at]) for at in order]
    data = []
    for number, (end, colour) in enumerate((("low", BLUE), ("high", ORANGE))):
        values = effects[f"{output}_{end}"].values[order]
        texts = [ends_of(sweep, output, name)[number] for name in names]
        data.append({"type": "bar", "orientation": "h", "name": "least" if end == "low" else "most",
                     "y": names, "x": numbers(values - base), "base": base, "text": texts,
                     "textposition": "auto", "hovertext": [f"{name} {text}: {value:,.4g}" for
                                                           name, text, value in
                                                           zip(names, texts, values)],
                     "hoverinfo": "text", "marker": {"color": colour}})
    mean = described(sweep.output(output)[0], output)
    title = f"{mean['label']}: one input changed at a time, from {base:,.4g}"
    return chart(title, data, {"automargin": True},
                 mean["label"] + (f" ({mean['unit']})" if mean["unit"] else ""),
                 barmode="overlay")


def of_sweep(sweep, names):
    """[(section, [chart, …]), …] beside the explorer."""
    alone = [tornado(sweep, name) for name in names[:6]]
    sections = [("What is worth its price", [pareto(sweep)]),
                ("What matters most", alone)]
    sections = [(title, [c for c in charts if c]) for title, charts in sections]
    return [(title, charts) for title, charts in sections if charts]


def rows(sweep, names):
    """The table of all points: head, rows of texts, and how many were left out."""
    axes = [axis for axis in sweep.axes]
    values = [sweep.output(name)[0].transpose(*axes).values for name in names]
    places = itertools.product(*(range(sweep.data.sizes[axis]) for axis in axes))
    made = []
    for place in itertools.islice(places, ROWS_MAX):
        made.append([*(value_text(sweep.data[axis], at) for axis, at in zip(axes, place)),
                     *(value[place] for value in values)])
    total = int(numpy.prod([sweep.data.sizes[axis] for axis in axes]))
    return [*axes, *names], made, total - len(made)
