#!/usr/bin/env python3
"""Levers on the cost per token: each alone, all together, and all but one. For each the smallest
fleet that meets the SLO, by `fleetsim size`, and what its tokens cost.

  measure.py [FLEETSIM] [-o PICTURE]     FLEETSIM: the program, `fleetsim` unless given
"""
import argparse
import json
import math
import os
import subprocess
import sys

SCENARIO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scenario.yaml")
POOL = "fleet.pools[0]"
LEVERS = {
    "8-bit weights and KV": [f"{POOL}.precision={{weights: fp8, kv: fp8}}"],
    "prefix cache, routed to": [f"{POOL}.engine.enable_prefix_caching=true",
                                "fleet.router.policy=prefix_aware"],
    "bigger batches": [f"{POOL}.engine.max_num_seqs=256",
                       f"{POOL}.engine.max_num_batched_tokens=4096"],
    "price": [f"{POOL}.price.usd_per_gpu_hour=2.20"],
}


def size(program, names):
    """(replicas, $ per million tokens) of the smallest fleet with these levers pulled."""
    command = [program, "size", SCENARIO, "--json", "--quiet"]
    for name in names:
        for change in LEVERS[name]:
            command += ["--set", change]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found["replicas"], found["usd_per_mtok_total"]


def draw(path, costs):
    """A bar for each of costs, {what was done: $ per million tokens}."""
    sys.path.insert(0, os.path.join(os.path.dirname(SCENARIO), "..", "..", "analysis"))
    import figure
    plt = figure.pyplot()
    picture, axes = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    names = list(costs)
    colours = [figure.GREY] + [figure.BLUE] * (len(names) - 3) + [figure.ORANGE, figure.GREEN]
    bars = axes.barh(names, list(costs.values()), color=colours, height=0.65)
    axes.bar_label(bars, [f"{cost:.4f}" for cost in costs.values()], padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(costs.values()))
    axes.set_xlabel(r"\$ per million tokens, smallest fleet that meets the SLO")
    axes.spines[["top", "right"]].set_visible(False)
    picture.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="fleetsim")
    parser.add_argument("-o", "--output", help="a picture: .png, .svg or .pdf")
    options = parser.parse_args()
    program = options.program
    base = size(program, [])
    alone = {name: size(program, [name]) for name in LEVERS}
    joint = size(program, list(LEVERS))
    but = {name: size(program, [other for other in LEVERS if other != name]) for name in LEVERS}
    product = math.prod(base[1] / cost for _, cost in alone.values())

    print("| levers | replicas | $ per million tokens | gain |")
    print("| --- | ---: | ---: | ---: |")
    print(f"| none | {base[0]} | {base[1]:.4f} | 1 |")
    for name, (replicas, cost) in alone.items():
        print(f"| {name} | {replicas} | {cost:.4f} | {base[1] / cost:.2f} |")
    print(f"| product of these gains | | {base[1] / product:.4f} | {product:.2f} |")
    print(f"| all, run together | {joint[0]} | {joint[1]:.4f} | {base[1] / joint[1]:.2f} |")
    print("\n| all but | replicas | $ per million tokens | the lever's gain on top of the others |")
    print("| --- | ---: | ---: | ---: |")
    for name, (replicas, cost) in but.items():
        print(f"| {name} | {replicas} | {cost:.4f} | {cost / joint[1]:.2f} |")
    if options.output:
        draw(options.output, {"none": base[1], **{name: cost for name, (_, cost) in alone.items()},
                              "product of the gains": base[1] / product, "all together": joint[1]})


if __name__ == "__main__":
    main()
