#!/usr/bin/env python3
"""The figures of analysis/ over small runs: each is drawn, says what its axes are, and has no text
on top of another or outside the picture.

FLEETSIM_BIN names the program. Prints SKIP: and returns 77 where a package is missing.
"""
import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "analysis"))
BIN = os.environ.get("FLEETSIM_BIN", str(ROOT / "build/release/fleetsim"))
try:
    import h5py
    import matplotlib.pyplot
    import numpy
    import xarray  # noqa: F401
except ImportError as reason:
    print(f"SKIP: {reason}")
    sys.exit(77)

import figure as fig  # noqa: E402
import fleetio  # noqa: E402
import plot_compare  # noqa: E402
import plot_cost  # noqa: E402
import plot_day  # noqa: E402
import plot_experts  # noqa: E402
import plot_latency  # noqa: E402
import plot_scaling  # noqa: E402
import plot_sweep  # noqa: E402
import plot_tornado  # noqa: E402

FOLDER = tempfile.mkdtemp(prefix="fleetsim-figures-")
SMALL = ROOT / "tests/cli/small.yaml"
# Runs that differ in what there is to draw.
RUNS = {
    "small": [],
    "day": ["horizon=24h", "workload[0].arrivals={process: poisson, rate: 0.2/s, curve: "
            "{shape: evening_peak, peak_hour: 20, peak_factor: 3}}", "output.trace_interval=1h",
            "name=A day with a rather long name, as people give them"],
    "unlimited": ["fleet.pools[0].engine.num_gpu_blocks_override=unlimited"],
    "free": ["fleet.pools[0].price={}", "fleet.pools[0].autoscaler={policy: static, replicas: 1}"],
    "crowded": ["fleet.pools[0].max_queue=0", "fleet.pools[0].autoscaler.max_replicas=1",
                "workload[0].arrivals.rate=40/s", "fleet.pools[0].price.billing_increment=1h"],
    "experts": ["fleet.pools[0].step_time={model: roofline, experts: {popularity: {dist: "
                "lognormal, sigma: 1.15}, layer_groups: 2, epoch: 2 min, drift_time: 4 min}}",
                "fleet.pools[0].model=deepseek-v3", "fleet.pools[0].gpu=h200-sxm",
                "fleet.pools[0].parallel={tensor: 1, attention_data: 16, expert: 16}",
                "fleet.pools[0].autoscaler={policy: static, replicas: 1}"],
    "empty": ["workload[0].arrivals.rate=0.0001/s", "fleet.pools[0].autoscaler.min_replicas=0"],
}


SWEEP = """
name: night
description: Cold starts against load, under two policies
base: {base}
replications: 2
outputs: [usd, ttft_p99, slo_attainment]
axes:
  - {{name: cold, long_name: provisioning, key: 'fleet.pools[0].cold_start.provision',
     list: [0 s, 60 s, 2 min], unit: min}}
  - name: policy
    key: fleet.pools[0].autoscaler
    labels: [static, target]
    list:
      - {{policy: static, replicas: 1}}
      - {{policy: target, metric: concurrency, target: 4, min_replicas: 1, max_replicas: 8}}
  - {{name: rate, key: 'workload[0].arrivals.rate', range: {{from: 1 /s, to: 5 /s, count: 3}}}}
"""


def sweep_made(name, *options):
    """A sweep's folder, opened; made when it is first asked for."""
    if not Path(FOLDER, name).exists():
        Path(FOLDER, "sweep.yaml").write_text(SWEEP.format(base=SMALL), encoding="utf-8")
        done = subprocess.run([BIN, "sweep", f"{FOLDER}/sweep.yaml", "-o", f"{FOLDER}/{name}",
                               "--quiet", *options], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
    return fleetio.open_sweep(f"{FOLDER}/{name}")


def setUpModule():
    for name, sets in RUNS.items():
        command = [BIN, "run", str(SMALL), "--quiet", "-o", f"{FOLDER}/{name}.h5"]
        for value in sets:
            command += ["--set", value]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def tearDownModule():
    shutil.rmtree(FOLDER)


@functools.lru_cache(maxsize=None)
def opened(name):
    return fleetio.open_run(f"{FOLDER}/{name}.h5")


def texts(figure):
    """Every visible text of the figure with its box in pixels."""
    renderer = figure.canvas.get_renderer()
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent(renderer)
            if box.width > 0 and box.height > 0:
                yield text, box
    # ticks beyond an axis' limits keep their labels, undrawn


def drawn_texts(figure):
    figure.canvas.draw()
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            shown = axis._update_ticks() if axes.axison else []
            wanted = {id(label) for tick in shown for label in (tick.label1, tick.label2)}
            for tick in itertools.chain(axis.majorTicks, axis.minorTicks):
                hidden |= {id(tick.label1), id(tick.label2)} - wanted
    return [(text, box) for text, box in texts(figure) if id(text) not in hidden]


class Figures(unittest.TestCase):
    def tearDown(self):
        matplotlib.pyplot.close("all")

    def check(self, figure):
        """No overlap, nothing outside, a label on every axis."""
        found = drawn_texts(figure)
        for (one, a), (other, b) in itertools.combinations(found, 2):
            overlap = (min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and
                       min(a.y1, b.y1) - max(a.y0, b.y0) > 1)
            self.assertFalse(overlap, f"{one.get_text()!r} lies on {other.get_text()!r}")
        for text, box in found:
            inside = (box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.width + 1 and
                      box.y1 <= figure.bbox.height + 1)
            self.assertTrue(inside, f"{text.get_text()!r} leaves the picture: {box}")
        for axes in filter(lambda axes: axes.axison, figure.axes):
            self.assertTrue(axes.get_ylabel() or axes.get_xlabel(), axes.get_title(loc="left"))
            if len(axes.lines) + len(axes.patches) > 0 and axes.get_xaxis().get_visible():
                labels = [label for label in axes.get_yticklabels() if label.get_text()]
                self.assertGreaterEqual(len(labels), 2, axes.get_title(loc="left"))

    def check_files(self, figure, name):
        """Small, and the same bytes when drawn again; SVG with its texts."""
        for suffix in (".png", ".svg"):
            target = Path(FOLDER, name + suffix)
            fig.save(figure, target)
            first = target.read_bytes()
            self.assertLess(len(first), 300_000, target.name)
            fig.save(figure, target)
            self.assertEqual(first, target.read_bytes(), target.name)

    def test_day(self):
        for name in ("small", "day", "unlimited", "free", "crowded", "empty"):
            with self.subTest(run=name):
                self.check(plot_day.plot_day(opened(name)))
        figure = plot_day.plot_day(opened("day"), pool="main")
        self.check(figure)
        self.check_files(figure, "day")
        with self.assertRaisesRegex(fleetio.FileError, "no pool 'maim'; there is main"):
            plot_day.plot_day(opened("day"), pool="maim")

    def test_scaling(self):
        for name in ("small", "free", "empty"):
            with self.subTest(run=name):
                self.check(plot_scaling.plot_scaling(opened(name)))
        figure = plot_scaling.plot_scaling(opened("day"), first=15, last=21)
        self.check(figure)
        low, high = figure.axes[-1].get_xlim()
        self.assertAlmostEqual((high - low) * 24, 6)
        with self.assertRaisesRegex(fleetio.FileError, "within 0 and 24 h"):
            plot_scaling.plot_scaling(opened("day"), first=20, last=25)

    def test_cost(self):
        for name in ("small", "crowded"):
            with self.subTest(run=name):
                run = opened(name)
                figure = plot_cost.plot_cost(run)
                self.check(figure)
                bars = [patch.get_width() for patch in figure.axes[0].patches]
                self.assertAlmostEqual(sum(bars[:-1]), bars[-1], places=9)
                self.assertAlmostEqual(bars[-1], run.summary["usd"].sel(pool="all").item())
        self.assertGreater(opened("crowded").summary["usd_rounding"].sel(pool="all").item(), 0)
        with self.assertRaisesRegex(fleetio.FileError, "price"):
            plot_cost.plot_cost(opened("free"))

    def test_latency(self):
        for name in ("day", "crowded", "empty"):
            with self.subTest(run=name):
                self.check(plot_latency.plot_latency(opened(name)))

    def test_experts(self):
        run = opened("experts")
        figure = plot_experts.plot_experts(run)
        self.check(figure)
        drawn = figure.axes[1].collections[0].get_array().compressed()
        wanted = run.gpu["load"].isel(time=slice(0, 10), gpu=slice(0, 16)).values
        self.assertAlmostEqual(numpy.nanmean(wanted), 1, places=2)
        self.assertTrue(numpy.allclose(numpy.sort(drawn), numpy.sort(wanted.ravel())))
        self.check(plot_experts.plot_experts(run, layers=[1]))
        with self.assertRaisesRegex(fleetio.FileError, "no group of layers 7; there is 0 to 1"):
            plot_experts.plot_experts(run, layers=[7])
        with self.assertRaisesRegex(fleetio.FileError, "step_time.experts"):
            plot_experts.plot_experts(opened("day"))

    def test_sweep(self):
        sweep = sweep_made("night")
        self.assertEqual(sweep.axes, ["cold", "policy", "rate"])
        figure = plot_sweep.plot_sweep(sweep, "ttft_p99", by="cold", at={"policy": "target"})
        self.check(figure)
        drawn = figure.axes[0].containers[1].lines[0].get_ydata()  # the second of cold
        values = sweep.data["ttft_p99"].sel(cold=1, policy="target").mean("replication").values
        self.assertTrue(numpy.allclose(drawn, values))
        self.assertIn("2 replications", " ".join(text.get_text() for text in figure.texts))
        self.check(plot_sweep.plot_sweep(sweep, x="policy", by="rate", log=True))
        figure = plot_sweep.plot_map(sweep, "usd", x="rate", by="cold", at={"policy": "target"})
        self.check(figure)
        cells = [float(text.get_text()) for text in figure.axes[0].texts]
        shown = sweep.output("usd")[0].sel(policy="target").transpose("cold", "rate").values
        self.assertTrue(numpy.allclose(cells, shown.ravel(), rtol=5e-3))
        self.check(plot_sweep.plot_pareto(sweep))
        for wrong, says in (({"output": "usdd"}, "did you mean 'usd'"), ({"x": "hot"}, "no axis"),
                            ({"at": {"cold": "9"}}, "no value '9'; it has 0 min, 1 min, 2 min")):
            with self.assertRaisesRegex(fleetio.FileError, says):
                plot_sweep.plot_sweep(sweep, **{"x": "rate", "by": "policy", **wrong})

    def test_frontier(self):
        costs, waits = numpy.array([3, 1, 2, 2, 5]), numpy.array([1, 9, 4, 3, 1])
        self.assertEqual(plot_sweep.frontier(costs, waits), [1, 3, 0])

    def test_tornado(self):
        sweep = sweep_made("alone", "--sensitivity", "usd")
        figure = plot_tornado.plot_tornado(sweep, "usd")
        self.check(figure)
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        order = sweep.sensitivity.sortby("usd_swing", ascending=False)["input"].values
        self.assertEqual(names, list(order))
        self.check(plot_tornado.plot_tornado(sweep, "ttft_p99"))
        with self.assertRaisesRegex(fleetio.FileError, "--sensitivity"):
            plot_tornado.plot_tornado(sweep_made("night"))

    def test_compare(self):
        command = [BIN, "compare", str(SMALL), "--json", "--quiet", "--variant", "spares-0:",
                   "--variant", "spares-2:fleet.pools[0].autoscaler.min_replicas=2,"
                   "fleet.pools[0].initial_replicas=2"]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        result = [variant["result"] for variant in json.loads(out)["variants"]]
        one = {"": [(0, result[0]), (2, result[1])]}
        two = {"first": [(0, result[0]), (9, result[1])],
               "second": [(0, result[1]), (9, result[0])]}
        self.check(plot_compare.plot_compare(one, "replicas at least", 1.0))
        self.check(plot_compare.plot_compare(two, "provisioning (s)"))

    def test_colours(self):
        """Every line is of the palette that any eye can tell apart."""
        palette = {matplotlib.colors.to_rgb(colour) for colour in (
            fig.BLUE, fig.SKY, fig.GREEN, fig.YELLOW, fig.ORANGE, fig.VERMILION, fig.PURPLE,
            fig.INK, fig.GREY)}
        for draw in (plot_day.plot_day, plot_scaling.plot_scaling, plot_latency.plot_latency):
            for axes in draw(opened("day")).axes:
                used = {matplotlib.colors.to_rgb(line.get_color()) for line in axes.lines}
                self.assertLessEqual(used, palette)


class Files(unittest.TestCase):
    def test_histograms_are_the_summary(self):
        run = opened("small")
        total = run.summary.sel(pool="all")
        for quantity in fleetio.QUANTITIES:
            low, high, count = run.distribution(quantity)
            self.assertEqual(count.sum(), total[f"{quantity}_count"].item())
            self.assertTrue((high > low).all() and (low[1:] >= high[:-1]).all())
            for name, q in (("p50", 0.5), ("p99", 0.99)):
                at = numpy.searchsorted(numpy.cumsum(count), numpy.ceil(q * count.sum()))
                value = total[f"{quantity}_{name}"].item()
                self.assertTrue(low[at] <= value <= high[at], (quantity, name))

    def test_the_audit_is_in_the_file(self):
        audit = opened("small").audit
        self.assertGreaterEqual(audit.sizes["check"], 10)
        self.assertTrue((audit["ok"].values == 1).all())
        self.assertTrue(all(audit["detail"].values))

    def test_what_is_no_run_is_refused_by_name(self):
        Path(FOLDER, "text.h5").write_text("no HDF5\n")
        with h5py.File(f"{FOLDER}/other.h5", "w") as file:
            file["x"] = 1
        shutil.copy(f"{FOLDER}/small.h5", f"{FOLDER}/later.h5")
        with h5py.File(f"{FOLDER}/later.h5", "r+") as file:
            file["meta/schema_version"][()] = fleetio.SCHEMA_VERSION + 1
        for name, says in (("text", "cannot be read"), ("other", "not a fleetsim run"),
                           ("later", f"schema version {fleetio.SCHEMA_VERSION + 1}"),
                           ("absent", "cannot be read")):
            with self.assertRaisesRegex(fleetio.FileError, f"{name}.h5: .*{says}"):
                opened(name)


if __name__ == "__main__":
    unittest.main()
