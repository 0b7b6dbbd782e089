"""Opens what fleetsim writes: a run's HDF5 file (which is a netCDF-4 file) as xarray datasets.

    import fleetio
    run = fleetio.open_run("chat-1m.h5")
    run.fleet["ttft_p99"].plot()              # all pools together, by hour
    run.hourly["gpus_ready_mean"].sel(pool="main")
    run.summary["usd"].sel(pool="all").item()

Every variable has `units`, `long_name` and `description`. The file needs nothing of this module:
`xarray.open_dataset(path, group="hourly")` works alone; here the schema version is checked too, and
undefined integers become NaN.
"""
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
