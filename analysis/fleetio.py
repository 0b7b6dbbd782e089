"""Opens what fleetsim writes, a run's or a sweep's HDF5 file (which is a netCDF-4 file), as xarray
datasets.

    import fleetio
    run = fleetio.open_run("chat-1m.h5")
    run.fleet["ttft_p99"].plot()              # all pools together, by hour
    run.hourly["gpus_ready_mean"].sel(pool="main")
    run.summary["usd"].sel(pool="all").item()

    sweep = fleetio.open_sweep("night")                   # the folder, or its sweep.h5
    sweep.data["usd_rep_mean"].sel(policy="target").plot()

Every variable has `units`, `long_name` and `description`. The file needs nothing of this module:
`xarray.open_dataset(path, group="hourly")` works alone; here the schema version is checked too, and
undefined integers become NaN.
"""
import difflib
import sys
from pathlib import Path

SCHEMA_VERSION = 1
TEXT_GROUPS = ("meta", "scenario")  # scalars and texts: dictionaries of Run
QUANTITIES = ("ttft", "tpot", "itl", "e2e", "queue")  # latency/quantity counts in this order
DEBIAN_PACKAGES = {"h5py": "python3-h5py", "numpy": "python3-numpy", "xarray": "python3-xarray",
                   "netCDF4": "python3-netcdf4", "matplotlib": "python3-matplotlib",
                   "plotly": "python3-plotly"}
EXIT_MISSING = 77


def require(*names):
    """Imports packages by name, or ends the program saying which one is missing and where it is."""
    modules = []
    for name in names:
        try:
            modules.append(__import__(name))
        except ImportError:
            package = DEBIAN_PACKAGES.get(name, name)
            print(f"{Path(sys.argv[0]).name}: the Python package {name} is missing for "
                  f"{sys.executable}.\nOn Debian: apt install {package}, and use /usr/bin/python3.",
                  file=sys.stderr)
            raise SystemExit(EXIT_MISSING) from None
    return modules[0] if len(modules) == 1 else modules


class FileError(Exception):
    """A file that is no run of fleetsim, or of another schema; the message names it."""


class Run:
    """One run. Groups are attributes (hourly, fleet, scaling, summary, classes, latency, audit, and
    what else the file has), each an xarray.Dataset in memory; meta and scenario are
    dictionaries."""

    def __init__(self, path, groups, meta, scenario, title):
        self.path = Path(path)
        self.meta = meta
        self.scenario = scenario
        self.title = title
        self.groups = groups
        hourly = groups.get("hourly")
        if "fleet" not in groups and hourly is not None and hourly.sizes["pool"] == 1:
            groups["fleet"] = hourly.isel(pool=0, drop=True)  # one pool is the fleet
        for name, dataset in groups.items():
            setattr(self, name, dataset)

    @property
    def complete(self):
        """False for the finished hours of a run that was cut short."""
        return bool(self.meta["complete"])

    @property
    def name(self):
        """The scenario's name, or the file's."""
        return str(self.meta.get("name", self.path.stem))

    def hours(self, group="fleet"):
        """The group's intervals before the horizon: without the row of the drain."""
        if group not in self.groups:
            raise FileError(f"{self.path}: it has no group {group}; choose one pool")
        data = self.groups[group]
        drain = data["is_drain"]
        if "pool" in drain.dims:
            drain = drain.isel(pool=0)
        return data.isel(time=(drain.values == 0))

    def distribution(self, quantity):
        """The histogram of a duration over the whole run, all pools together: lower edges, upper
        edges (in seconds) and counts, three arrays; empty ones where the file has none.
        quantity: one of QUANTITIES."""
        numpy = require("numpy")
        if "latency" not in self.groups:
            return numpy.empty(0), numpy.empty(0), numpy.empty(0)
        bins = self.groups["latency"]
        bins = bins.isel(bin=(bins["quantity"].values == QUANTITIES.index(quantity)))
        return bins["low"].values, bins["high"].values, bins["count"].values.astype(float)


def _plain(value):
    """A scalar dataset as a Python value."""
    return value.decode() if isinstance(value, bytes) else value.item()


def open_run(path, requests=False):
    """Opens a run's file. Raises FileError where it is not one, or of another schema version.
    requests: reads that group too (it may be large)."""
    h5py, xarray = require("h5py", "xarray")
    require("netCDF4")
    try:
        with h5py.File(path, "r") as file:
            if "meta/schema_version" not in file:
                raise FileError(f"{path}: not a fleetsim run: it has no meta/schema_version")
            meta = {name: _plain(item[()]) for name, item in file["meta"].items()}
            scenario = {name: _plain(item[()]) for name, item in file.get("scenario", {}).items()}
            title = file.attrs.get("title", b"")
            present = [name for name, item in file.items()
                       if isinstance(item, h5py.Group) and name not in TEXT_GROUPS
                       and (requests or name != "requests")]
    except OSError as reason:
        raise FileError(f"{path}: cannot be read: {reason}") from None
    if meta["schema_version"] != SCHEMA_VERSION:
        raise FileError(f"{path}: schema version {meta['schema_version']}, this module reads "
                        f"{SCHEMA_VERSION}")
    groups = {}
    for name in present:
        with xarray.open_dataset(path, group=name) as data:
            groups[name] = data.load()
    title = title.decode() if isinstance(title, bytes) else str(title)
    return Run(path, groups, meta, scenario, title.strip("\0"))


REPLICATION = "replication"


class Sweep:
    """One sweep. data: an xarray.Dataset of all outputs on the sweep's axes; axes: their names
    without the replication; sensitivity: a Dataset by input where the sweep changes one at a time,
    else None; meta and scenario are dictionaries."""

    def __init__(self, path, data, sensitivity, meta, scenario, title):
        self.path, self.data, self.sensitivity = Path(path), data, sensitivity
        self.meta, self.scenario, self.title = meta, scenario, title
        self.axes = [str(name) for name in data["status"].dims if name != REPLICATION]

    @property
    def name(self):
        """The sweep's name, or the file's."""
        return str(self.meta.get("name", self.path.stem))

    @property
    def complete(self):
        """Whether every run is done; the others' outputs are NaN."""
        return bool(self.meta.get("complete", 0))

    def outputs(self):
        """The names of all outputs."""
        return [str(name) for name, value in self.data.data_vars.items()
                if value.dtype.kind == "f" and not name.endswith(("_rep_mean", "_rep_half"))]

    def output(self, name):
        """Its mean over the replications, and half of the 95 % interval of that mean (None without
        replications): two DataArrays on the axes. Raises FileError at an unknown name."""
        if name not in self.outputs():
            near = difflib.get_close_matches(name, self.outputs(), 1)
            raise FileError(f"{self.path}: no output {name!r}" +
                            (f", did you mean {near[0]!r}?" if near else ""))
        mean = self.data[name]
        if f"{name}_rep_mean" not in self.data:
            if REPLICATION in mean.dims:
                mean = mean.isel({REPLICATION: 0}, drop=True)
            return mean, None
        half = self.data[f"{name}_rep_half"]
        averaged = self.data[f"{name}_rep_mean"]
        averaged.attrs["long_name"] = mean.attrs.get("long_name", name)
        return averaged, half


def open_sweep(path):
    """Opens a sweep's folder or its sweep.h5. Raises FileError where it is none."""
    h5py, xarray = require("h5py", "xarray")
    require("netCDF4")
    path = Path(path)
    if path.is_dir():
        path = path / "sweep.h5"
    try:
        with h5py.File(path, "r") as file:
            if "status" not in file or "meta" not in file:
                raise FileError(f"{path}: not a fleetsim sweep: it has no status of its runs")
            meta = {name: _plain(item[()]) for name, item in file["meta"].items()}
            scenario = {name: _plain(item[()]) for name, item in file.get("scenario", {}).items()}
            title = file.attrs.get("title", b"")
            ranked = "sensitivity" in file
    except OSError as reason:
        raise FileError(f"{path}: cannot be read: {reason}") from None
    if meta.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise FileError(f"{path}: schema version {meta['schema_version']}, this module reads "
                        f"{SCHEMA_VERSION}")
    with xarray.open_dataset(path, decode_times=False) as data:
        data = data.load()
    sensitivity = None
    if ranked:
        with xarray.open_dataset(path, group="sensitivity", decode_times=False) as found:
            sensitivity = found.load()
    title = title.decode() if isinstance(title, bytes) else str(title)
    return Sweep(path, data, sensitivity, meta, scenario, title.strip("\0"))


def is_sweep(path):
    """Whether a path is a sweep's folder or file: something to open with open_sweep."""
    path = Path(path)
    if path.is_dir():
        return True
    try:
        with require("h5py").File(path, "r") as file:
            return "status" in file
    except OSError:
        return False
