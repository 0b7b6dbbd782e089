#!/usr/bin/env python3
"""Checks that a run's file is what it claims to be for readers that know nothing of fleetsim.

    check_trace_file.py FILE.h5 [--incomplete]

h5py reads every dataset; netCDF4 and h5py's dims see the same named dimensions, and each scale
lists the datasets that use it; every variable has a long_name, a description and (unless it is
text) units; xarray opens each group with a decoded time axis; `ncdump -h` agrees.
Prints what is wrong and exits 1; 77 when a package is missing; else one line and 0.
"""
import argparse
import shutil
import subprocess
import sys

try:
    import h5py
    import netCDF4
    import numpy as np
    import xarray as xr
except ImportError as missing:
    print(f"check_trace_file.py needs the Python package {missing.name} "
          f"(Debian: python3-{missing.name.lower()})")
    sys.exit(77)

DIMENSION_ONLY = b"This is a netCDF dimension but not a netCDF variable"
GROUPS = ["hourly", "scaling", "scenario", "meta"]
FINAL_GROUPS = ["summary", "classes"]  # of a run that ended
OPTIONAL = ["fleet", "requests"]
# The dimensions of a group's datasets (but scales and bounds), as every reader must name them.
DIMENSIONS = {"hourly": ("time", "pool"), "fleet": ("time",), "scaling": ("event",),
              "summary": ("pool",), "classes": ("class",), "requests": ("request",),
              "scenario": (), "meta": ()}
HOURLY = ["arrived", "completed", "refused", "ttft_p50", "ttft_p99", "tpot_mean", "itl_p99",
          "e2e_p99", "queue_p99", "tokens_prompt", "tokens_output", "kv_occupancy_mean",
          "gpus_ready_mean", "gpu_hours_billed", "usd", "usd_per_mtok_total", "utilization"]


def check_h5py(path, incomplete, wrong):
    """Reads every dataset; returns how many there are."""
    count = 0
    with h5py.File(path, "r") as file:
        def visit(name, item):
            nonlocal count
            if not isinstance(item, h5py.Dataset):
                return
            count += 1
            item[()]
            if item.attrs.get("NAME", b"").startswith(DIMENSION_ONLY):
                return
            text = h5py.check_string_dtype(item.dtype) is not None
            for attribute in ["long_name", "description"] + ([] if text else ["units"]):
                value = item.attrs.get(attribute, b"")
                value = value.decode() if isinstance(value, bytes) else str(value)
                if not value.strip("\0 "):
                    wrong.append(f"{name} has no {attribute}")
            if item.ndim and "CLASS" not in item.attrs:
                for axis in range(item.ndim):
                    if len(item.dims[axis]) != 1:
                        wrong.append(f"{name}: dimension {axis} has no scale")
        file.visititems(visit)
        for group in GROUPS + ([] if incomplete else FINAL_GROUPS):
            if group not in file:
                wrong.append(f"group {group} is missing")
    return count


def check_scales(path, wrong):
    """Both directions of every scale; returns the dimensions of each dataset by its name."""
    dimensions, users = {}, {}
    with h5py.File(path, "r") as file:
        def visit(name, item):
            if not isinstance(item, h5py.Dataset) or "CLASS" in item.attrs:
                return
            scales = [item.dims[axis][0] for axis in range(item.ndim)]
            for axis, scale in enumerate(scales):
                users.setdefault(scale.name, set()).add((item.name, axis))
                if scale.shape != (item.shape[axis],):
                    wrong.append(f"{name}: dimension {axis} is not as long as its scale")
            dimensions[name] = tuple(scale.name.rsplit("/", 1)[1] for scale in scales)
            group, _, variable = name.partition("/")
            expected = ("time", "nv") if variable == "time_bnds" else DIMENSIONS.get(group)
            if expected is not None and dimensions[name] != expected:
                wrong.append(f"{name} has dimensions {dimensions[name]}, not {expected}")
        file.visititems(visit)
        for scale, used in users.items():
            listed = [(file[reference].name, int(axis))
                      for reference, axis in file[scale].attrs["REFERENCE_LIST"]]
            if len(listed) != len(used) or set(listed) != used:
                wrong.append(f"{scale} does not list the datasets that use it")
    return dimensions


def check_netcdf(path, wrong):
    dimensions = check_scales(path, wrong)
    with netCDF4.Dataset(path) as data:
        for group_name, group in data.groups.items():
            for name, variable in group.variables.items():
                for dimension in variable.dimensions:
                    if dimension.startswith("phony_dim"):
                        wrong.append(f"{group_name}/{name}: a dimension without a name")
                if variable.dimensions != dimensions.get(f"{group_name}/{name}",
                                                         variable.dimensions):
                    wrong.append(f"{group_name}/{name}: netCDF4 and h5py differ in dimensions")
                variable[...]
        hourly = data.groups["hourly"]
        if hourly.variables["arrived"].dimensions != ("time", "pool"):
            wrong.append("hourly/arrived is not time × pool")
        if hourly.variables["time"].bounds != "time_bnds":
            wrong.append("hourly/time does not name its bounds")


def check_xarray(path, wrong):
    with h5py.File(path, "r") as file:
        groups = GROUPS + [name for name in FINAL_GROUPS + OPTIONAL if name in file]
    for group in groups:
        with xr.open_dataset(path, group=group) as data:
            data.load()
    with xr.open_dataset(path, group="hourly") as hourly:
        if not np.issubdtype(hourly.time.dtype, np.datetime64):
            wrong.append("hourly/time is not decoded to calendar times")
        for name in HOURLY:
            if name not in hourly:
                wrong.append(f"hourly/{name} is missing")
            elif hourly[name].dtype.kind not in "fiu":
                wrong.append(f"hourly/{name} is read as {hourly[name].dtype}")
        bounds = hourly["time_bnds"].values
        if len(hourly.time) and not (bounds[:, 0] == hourly.time.values).all():
            wrong.append("hourly/time_bnds do not begin at time")
        if len(hourly.time) > 1 and not (bounds[1:, 0] == bounds[:-1, 1]).all():
            wrong.append("hourly/time_bnds leave a gap")
    if "fleet" in groups:
        check_fleet(path, wrong)


def check_fleet(path, wrong):
    """The pools add up to the fleet (which also has the requests that never got a pool)."""
    with xr.open_dataset(path, group="hourly") as hourly, \
            xr.open_dataset(path, group="fleet") as fleet:
        if not (hourly["completed"].sum("pool").values == fleet["completed"].values).all():
            wrong.append("the pools' completed requests do not add up to the fleet's")
        if not np.allclose(hourly["gpu_hours_held"].sum("pool").values,
                           fleet["gpu_hours_held"].values):
            wrong.append("the pools' GPU hours do not add up to the fleet's")


def check_ncdump(path, wrong):
    if not shutil.which("ncdump"):
        print("SKIP: ncdump absent")
        return
    result = subprocess.run(["ncdump", "-h", path], capture_output=True, text=True, check=False)
    if result.returncode != 0 or "group: hourly" not in result.stdout:
        wrong.append(f"ncdump -h fails: {result.stderr.strip()}")


def check_complete(path, incomplete, wrong):
    with h5py.File(path, "r") as file:
        if bool(file["meta/complete"][()]) == incomplete:
            wrong.append(f"meta/complete is {file['meta/complete'][()]}")
        if not file["scenario/given"].asstr()[()] and not incomplete:
            wrong.append("scenario/given is empty")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file")
    parser.add_argument("--incomplete", action="store_true",
                        help="expect the finished hours of a run that was cut short")
    arguments = parser.parse_args()
    wrong = []
    count = check_h5py(arguments.file, arguments.incomplete, wrong)
    if not wrong:
        check_netcdf(arguments.file, wrong)
        check_xarray(arguments.file, wrong)
        check_ncdump(arguments.file, wrong)
        check_complete(arguments.file, arguments.incomplete, wrong)
    for line in wrong:
        print(f"{arguments.file}: {line}")
    if not wrong:
        print(f"{arguments.file}: {count} datasets read by h5py, netCDF4 and xarray")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
