#!/usr/bin/env python3
"""Writes one HTML page of a run or a sweep that opens anywhere without a network.

Interactive charts, the summary, the audit, the assumptions and how to get the same numbers
again, all in one file.

  report.py RUN.h5                   writes RUN.html
  report.py SWEEP -o report.html     a sweep's folder or sweep.h5 (`fleetsim report` does the same)

As functions: report(fleetio.open_run("RUN.h5")) and sweep_report(fleetio.open_sweep("SWEEP"))
return the page as text.
"""
import argparse
import base64
import gzip
import html
import importlib.util
import json
import os
import sys
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import fleetio  # noqa: E402
import report_charts  # noqa: E402
import report_sweep  # noqa: E402
from figure import attained as share_attained  # noqa: E402
from figure import compact, dollars, duration, percent  # noqa: E402
from plot_sweep import value_text  # noqa: E402

EXIT_BAD_INPUT = 2
# The rows of the short summary: the column tables' own names and definitions come with them.
SUMMARY = ["arrived", "completed", "refused", "unservable", "cancelled", "in_flight",
           "tokens_prompt", "tokens_cached", "tokens_output", "tokens_recomputed", "preemptions",
           "slo_attainment",
           "gpu_hours_billed", "gpu_hours_starting", "gpu_hours_ready", "gpu_hours_draining",
           "gpu_hours_floor", "gpu_hours_ideal", "gpu_hours_peak", "utilization", "busy_share",
           "usd", "usd_low", "usd_high", "usd_per_mtok_total", "usd_per_mtok_input",
           "usd_per_mtok_output", "kv_peak_blocks", "replicas_held_max"]
STATISTICS = ["mean", "p50", "p90", "p95", "p99", "max", "count"]
HOURLY = ["arrived", "completed", "ttft_p50", "ttft_p99", "tpot_p99", "in_flight_mean",
          "waiting_mean", "kv_occupancy_mean", "gpus_held_mean", "gpus_ready_mean", "utilization",
          "gpu_hours_billed", "usd", "usd_per_mtok_total"]
# Nothing but what is in the page: a browser holds it to that.
POLICY = ("default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
          "style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'; base-uri 'none'")


def text(value):
    return html.escape(str(value), quote=True)


def number(value, unit="1"):
    """As a table shows it; – where undefined."""
    value = float(value)
    if value != value:
        return "–"
    if unit == "$":
        return dollars(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.4g}" if abs(value) < 1e4 else \
        f"{value:,.1f}"


def table(head, rows, kinds, numeric=()):
    """head: texts; rows: lists of texts; numeric: which columns are numbers; all escaped here."""
    def cells(row, tag):
        return "".join(f'<{tag}{" class=n" if at in numeric else kinds.get(at, "")}>{text(cell)}'
                       f"</{tag}>" for at, cell in enumerate(row))
    top = cells(head, "th").replace("_", "_<wbr>")  # where a long name may break
    body = "".join(f"<tr>{cells(row, 'td')}</tr>\n" for row in rows)
    return (f"<div class=scroll><table><thead><tr>{top}</tr></thead>\n<tbody>{body}"
            "</tbody></table></div>\n")


def cards(run):
    total = run.summary.sel(pool="all")
    get = lambda name: float(total[name].item())
    shown = [("requests", compact(get("arrived")), ""),
             ("time to first token, p99", duration(get("ttft_p99")), ""),
             ("time per output token, p99", duration(get("tpot_p99")), "")]
    attained, met = get("slo_attainment"), get("slo_met")
    stated = [run.classes[name].values for name in ("slo_ttft", "slo_tpot", "slo_e2e")]
    if attained == attained and any((limit == limit).any() for limit in stated):
        word = {1: ", met", 0: ", not met"}.get(met, "")
        shown.append((f"attained the SLO{word}", share_attained(attained),
                      {1: " good", 0: " bad"}.get(met, "")))
    shown.append(("GPU hours billed", number(get("gpu_hours_billed")), ""))
    if get("usd") == get("usd"):
        low, high = get("usd_low"), get("usd_high")
        spread = f" ({dollars(low)} to {dollars(high)})" if high > low else ""
        shown.append(("the bill" + spread, dollars(get("usd")), ""))
        shown.append(("per million tokens", f"${get('usd_per_mtok_total'):.3g}", ""))
    if get("usd_peak") > 0:
        saved = 1 - get("usd") / get("usd_peak")
        shown.append(("below the peak's bill" if saved >= 0 else "above the peak's bill",
                      percent(abs(saved)), ""))
    return "<div class=cards>" + "".join(
        f"<div class='card{kind}'><b>{text(value)}</b><span>{text(label)}</span></div>"
        for label, value, kind in shown) + "</div>\n"


def summary_tables(run):
    summary = run.summary
    pools = [str(name) for name in summary["pool"].values]
    if len(pools) == 2:
        pools = pools[:1]  # one pool is the fleet
    rows = []
    for name in SUMMARY:
        if name not in summary:
            continue
        column = summary[name]
        unit = column.attrs.get("units", "")
        values = [number(column.sel(pool=pool).item(), unit) for pool in pools]
        rows.append([column.attrs.get("long_name", name), "" if unit == "1" else unit, *values,
                     name, column.attrs.get("description", "")])
    page = table(["", "unit", *pools, "column", "definition"], rows,
                 {3 + len(pools): " class=wide"}, range(2, 2 + len(pools)))
    rows = []
    for quantity, name, *_ in report_charts.DURATIONS:
        total = summary.sel(pool="all")
        rows.append([f"{quantity.upper() if quantity != 'queue' else 'queue'}: {name}",
                     *(number(total[f"{quantity}_{what}"].item()) for what in STATISTICS)])
    return table(["in seconds", *STATISTICS], rows, {}, range(1, 8)) + page


def class_table(run):
    classes = run.groups.get("classes")
    if classes is None:
        return ""
    wanted = ["arrived", "completed", "ttft_p50", "ttft_p99", "slo_ttft", "tpot_p99", "slo_tpot",
              "e2e_p99", "slo_e2e", "slo_attainment", "slo_attainment_wanted"]
    rows = [[str(name), *(number(classes[column].sel({"class": name}).item())
                          for column in wanted)] for name in classes["class"].values]
    return table(["class", *wanted], rows, {}, range(1, 1 + len(wanted)))


def hourly_table(run):
    hours = run.groups["fleet"]
    wanted = [name for name in HOURLY if name in hours]
    rows = []
    for at, stamp in enumerate(hours["time"].values.astype("datetime64[s]").astype(str)):
        label = "drain" if hours["is_drain"].values[at] else stamp[5:16].replace("T", " ")
        rows.append([label, *(number(hours[name].values[at], hours[name].attrs.get("units", ""))
                              for name in wanted)])
    return table(["UTC", *wanted], rows, {}, range(1, 1 + len(wanted)))


def audit_part(run):
    if "audit" not in run.groups:
        return "<p>This file holds no audit.</p>"
    audit = run.groups["audit"]
    names, holds, details = (audit[name].values for name in ("name", "ok", "detail"))
    failed = int((holds != 1).sum())
    says = (f"<p>All {len(names)} checks hold: every request, token, KV block and GPU second is "
            "accounted for.</p>" if not failed else
            f"<p class=failed>{failed} of {len(names)} checks FAILED.</p>")
    rows = [[name, "yes" if ok == 1 else "NO", detail] for name, ok, detail in
            zip(names, holds, details)]
    return says + table(["check", "holds", "numbers"], rows, {})


def link(name, content):
    data = base64.b64encode(content.encode()).decode()
    return (f'<a download="{text(name)}" href="data:application/yaml;base64,{data}">{text(name)}'
            "</a>")


def reproduce_part(run):
    meta, scenario = run.meta, run.scenario
    file = f"{run.name}.yaml"
    rows = [[name, str(meta[name])] for name in
            ("version", "git", "compiler", "flags", "seed", "replication", "digest",
             "schema_version") if name in meta]
    command = f"fleetsim run {file}"
    return (f"<p>Save {link(file, scenario.get('resolved', ''))} (the scenario with every value as "
            "applied; traces and models it names by path have to be where it says) and run</p>\n"
            f"<pre>{text(command)}</pre>\n<p>The same version prints the same digest.</p>\n"
            + table(["", "this run"], rows, {}))


def assumptions_part(run):
    resolved, given = run.scenario.get("resolved", ""), run.scenario.get("given", "")
    return ("<details><summary>Every value as applied, defaults and overrides included</summary>"
            f"<pre>{text(resolved)}</pre></details>\n"
            f"<details><summary>The scenario as it was given</summary><pre>{text(given)}</pre>"
            "</details>\n")


def library():
    """plotly.js as gzip in base64, without a stamp."""
    packed = gzip.compress(plotly_js(), 6, mtime=0)
    return base64.encodebytes(packed).decode()


def plotly_js():
    """The bytes of plotly.js: Debian's, or what came with the package; importing that takes longer
    than all the rest, so its own function is asked last."""
    package = importlib.util.find_spec("plotly")
    if package is None:
        fleetio.require("plotly")
    for path in ("/usr/share/python3-plotly/plotly.js",
                 Path(package.origin).parent / "package_data/plotly.min.js"):
        if Path(path).is_file():
            return Path(path).read_bytes()
    from plotly.offline import get_plotlyjs
    return get_plotlyjs().encode()


def read(name):
    return Path(HERE, name).read_text(encoding="utf-8")


def embedded(name, data):
    """JSON in a script of its own; a "</" in it would end the script."""
    data = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = data.replace("</", "<\\/")
    return f'<script type="application/json" id="{name}">{data}</script>\n'


def page(title, description, body, charts):
    """The whole page. charts: {id: chart}."""
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{text(title)}: fleetsim report</title>
<style>
{read("report.css")}</style></head>
<body><main>
<h1>{text(title)}</h1>
<p class=soft>{text(description)}</p>
<p id="no-charts" class=failed hidden>The charts need a browser of 2023 or later.</p>
<noscript><p class=failed>The charts need JavaScript; the tables do not.</p></noscript>
{body}</main>
{embedded("charts", charts)}<script type="text/plain" id="library">
{library()}</script>
<script>
{read("report_sweep.js")}{read("report.js")}</script>
</body></html>
"""


def charts_part(sections):
    """The sections' HTML, and their charts by id."""
    parts, charts = [], {}
    for title, made in sections:
        if not made:
            continue
        parts.append(f"<h2>{text(title)}</h2>\n<div class=charts>\n")
        for chart in made:
            name = f"chart-{len(charts) + 1}"
            caption = chart.pop("title")
            charts[name] = chart
            parts.append(f"<figure><figcaption>{text(caption)}</figcaption>"
                         f'<div class=chart id="{name}"></div></figure>\n')
        parts.append("</div>\n")
    return "".join(parts), charts


def report(run):
    """The page of a fleetio.Run."""
    if not len(run.hours()["time"]):
        raise fleetio.FileError(f"{run.path}: no interval is finished yet")
    drawn, charts = charts_part(report_charts.of_run(run))
    start = run.meta.get("start", "")
    parts = [f"<p class=soft>from {text(start)} · seed {text(run.meta['seed'])} · fleetsim "
             f"{text(run.meta['version'])}</p>\n"]
    if run.complete:
        parts.append(cards(run))
    else:
        parts.append("<p class=failed>An unfinished run: the intervals so far.</p>")
    parts.append(drawn)
    if run.complete:
        parts += ["<h2>Summary</h2>\n", summary_tables(run), "<h2>Classes of requests</h2>\n",
                  class_table(run)]
    parts += ["<h2>By interval</h2>\n<details class=dense><summary>The table</summary>",
              hourly_table(run),
              "</details>\n", "<h2>Audit</h2>\n", audit_part(run), "<h2>Assumptions</h2>\n",
              assumptions_part(run), "<h2>The same numbers again</h2>\n", reproduce_part(run)]
    return page(run.name, run.title, "".join(parts), charts)


def sweep_report(sweep):
    """The page of a fleetio.Sweep."""
    names = report_sweep.outputs_of(sweep)
    if not names:
        raise fleetio.FileError(f"{sweep.path}: no run of it is done")
    drawn, charts = charts_part(report_sweep.of_sweep(sweep, names))
    head, rows, more = report_sweep.rows(sweep, names[:8])
    rows = [[*row[:len(sweep.axes)], *(number(value) for value in row[len(sweep.axes):])]
            for row in rows]
    runs, done = (int(sweep.meta.get(name, 0)) for name in ("runs", "runs_done"))
    replications = sweep.data.sizes.get(fleetio.REPLICATION, 1)
    say = f"{done:,} of {runs:,} runs are done" if done < runs else f"{runs:,} runs"
    if replications > 1:
        say += f", {replications} replications of each point; bars are 95 % intervals"
    axes = [[axis, report_sweep.described(sweep.data[axis], axis)["label"],
             str(sweep.data[axis].attrs.get("key", "")),
             ", ".join(value_text(sweep.data[axis], at) for at in range(sweep.data.sizes[axis]))]
            for axis in sweep.axes]
    meanings = [[name, sweep.data[name].attrs.get("long_name", name),
                 sweep.data[name].attrs.get("units", ""),
                 sweep.data[name].attrs.get("description", "")] for name in names]
    parts = [f"<p class={'soft' if done == runs else 'failed'}>{text(say)}</p>\n",
             "<h2>Any output over any axis</h2>\n<figure><div class=controls "
             "id=explorer-controls></div><div class='chart tall' id=explorer></div></figure>\n",
             embedded("explorer-data", report_sweep.explorer(sweep, names)), drawn,
             "<h2>Axes</h2>\n", table(["axis", "meaning", "key", "values"], axes, {}),
             "<h2>What the outputs mean</h2>\n",
             table(["output", "", "unit", "definition"], meanings, {}),
             "<h2>All points</h2>\n<details class=dense><summary>The table</summary>",
             table(head, rows, {}, range(len(sweep.axes), len(head))),
             f"<p>{more:,} more are in sweep.h5.</p>" if more else "", "</details>\n",
             "<h2>The same numbers again</h2>\n", sweep_again(sweep)]
    return page(sweep.name, sweep.title, "".join(parts), charts)


def sweep_again(sweep):
    return (f"<p>Save {link('sweep.yaml', sweep.scenario.get('sweep', ''))} and the base scenario, "
            f"{link('scenario.yaml', sweep.scenario.get('base', ''))}, as it names it, "
            "and run</p>\n"
            f"<pre>fleetsim sweep sweep.yaml -o {text(sweep.name)}</pre>\n"
            f"<p>Made by fleetsim {text(sweep.meta.get('version', ''))}.</p>\n"
            "<details><summary>The sweep's file</summary><pre>"
            f"{text(sweep.scenario.get('sweep', ''))}</pre></details>\n"
            "<details><summary>The base scenario</summary><pre>"
            f"{text(sweep.scenario.get('base', ''))}</pre></details>\n")


def write(target, content):
    """Beside its name and renamed: the page is whole or absent."""
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(temporary, target)
    except OSError:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN.h5|SWEEP", help="a run's file, or a sweep's folder")
    parser.add_argument("-o", "--output", metavar="FILE.html",
                        help="the page (default: the operand's name with .html)")
    options = parser.parse_args()
    output = options.output or str(Path(options.run).with_suffix(".html"))
    try:
        if fleetio.is_sweep(options.run):
            content = sweep_report(fleetio.open_sweep(options.run))
        else:
            content = report(fleetio.open_run(options.run))
    except fleetio.FileError as reason:
        print(f"fleetsim report: {reason}", file=sys.stderr)
        return EXIT_BAD_INPUT
    try:
        write(output, content)
    except OSError as reason:
        print(f"fleetsim report: {reason}", file=sys.stderr)
        return 1
    print(f"written: {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
