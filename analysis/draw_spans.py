#!/usr/bin/env python3
"""Draws the picture of docs/engine.md: one replica, its iterations, and the spans they form.

    draw_spans.py [-o docs/spans.png]

A toy of its own: two decodes, a prompt that arrives among them and is computed in chunks, blocks of
four tokens. Nothing is read; the numbers are made here so that every rule is seen once.
"""
import argparse
import sys

try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("draw_spans.py: needs matplotlib (Debian: python3-matplotlib)")

BLOCK, BUDGET = 4, 12
COLOURS = {"A": "#4477aa", "B": "#228833", "C": "#cc6644"}
ARRIVAL_IN, GAUGE_IN, LAST = 3, 8, 13  # iterations


def blocks(tokens):
    return -(-tokens // BLOCK)


def step_ms(decode_kv, chunk):
    return 5 + 0.16 * decode_kv + 0.35 * chunk


def simulate():
    """The iterations: (start, end, {sequence: tokens it computes}, blocks in use, span)."""
    stored, target = {"A": 9, "B": 6}, 26
    b_left, t, span, iterations = 11, 0.0, 0, []
    composition = None
    for i in range(LAST):
        if i == ARRIVAL_IN + 1:
            stored["C"] = 0
        taken = {name: 1 for name in stored}
        prefills = "C" in stored and stored["C"] < target
        if prefills:
            taken["C"] = min(target - stored["C"], BUDGET - len(stored) + 1)
        decodes = [n for n in stored if not (n == "C" and prefills)]
        now = (tuple(stored), taken.get("C"))
        span += now != composition
        composition = now
        used = sum(blocks(stored[n] + taken[n]) for n in stored)
        lasts = step_ms(sum(stored[n] for n in decodes), taken["C"] if prefills else 0)
        iterations.append((t, t + lasts, taken, used, span, prefills))
        t += lasts
        for name in taken:
            stored[name] += taken[name]
        b_left -= 1
        if b_left == 0:
            del stored["B"]
    return iterations


def draw_sequences(axis, iterations):
    for row, name in enumerate("ABC"):
        for start, end, taken, _, _, prefills in iterations:
            if name not in taken:
                continue
            chunk = name == "C" and prefills
            axis.broken_barh([(start, end - start)], (-row - 0.36, 0.72), facecolor=COLOURS[name],
                             alpha=0.9 if chunk else 0.45, edgecolor="white", linewidth=1.2)
            axis.text((start + end) / 2, -row, taken[name] if chunk else "1", ha="center",
                      va="center", fontsize=8, color="white" if chunk else "black")
    axis.set_yticks([0, -1, -2], ["A", "B", "C"])


def draw_spans(axis, iterations):
    names = {1: "span 1: cut by the arrival", 2: "span 2: whole chunks", 3: "3: last\nchunk",
             4: "span 4: until B finishes", 5: "span 5 …"}
    for number in sorted({i[4] for i in iterations}):
        part = [i for i in iterations if i[4] == number]
        start, end = part[0][0], part[-1][1]
        axis.annotate("", (start, 0.75), (end, 0.75),
                      arrowprops={"arrowstyle": "|-|,widthA=0.35,widthB=0.35", "color": "black",
                                  "shrinkA": 0.5, "shrinkB": 0.5})
        axis.text((start + end) / 2, 0.9, names[number], ha="center", va="bottom", fontsize=8.5)


def draw_events(axis, iterations):
    inside = iterations[ARRIVAL_IN]
    arrival = inside[0] + 0.4 * (inside[1] - inside[0])
    gauge = iterations[GAUGE_IN][0] + 0.6 * (iterations[GAUGE_IN][1] - iterations[GAUGE_IN][0])
    settled = iterations[GAUGE_IN][0]
    for x, text in ((arrival, "C arrives"), (gauge, "a gauge looks")):
        axis.axvline(x, ymin=0.15, ymax=0.8, color="#aa3377", linestyle="--", linewidth=1.2)
        axis.text(x, -2.85, text, ha="center", va="top", fontsize=8.5, color="#aa3377")
    axis.annotate("settled up to here:\nthe span goes on", (settled, -2.4), (settled - 6, -2.95),
                  fontsize=8, ha="right", va="center", color="#555555",
                  arrowprops={"arrowstyle": "->", "color": "#555555"})
    axis.annotate("cut at the first\nboundary at or\nafter it", (inside[1], -2.0),
                  (inside[1] - 14, -2.0),
                  fontsize=8, ha="right", va="center", color="#555555",
                  arrowprops={"arrowstyle": "->", "color": "#555555"})
    return gauge


def main():
    parser = argparse.ArgumentParser(description="The picture of spans in docs/engine.md")
    parser.add_argument("-o", "--output", default="docs/spans.png")
    options = parser.parse_args()
    iterations = simulate()
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(9.6, 4.6), sharex=True,
                                         gridspec_kw={"height_ratios": [3.1, 1]})
    draw_sequences(top, iterations)
    draw_spans(top, iterations)
    gauge = draw_events(top, iterations)
    top.set_ylim(-3.45, 1.45)
    times = [i[0] for i in iterations] + [iterations[-1][1]]
    used = [i[3] for i in iterations]
    bottom.stairs(used, times, color="#333333", fill=True, alpha=0.25)
    bottom.stairs(used, times, color="#333333", baseline=None)
    bottom.plot([gauge], [used[GAUGE_IN]], "o", color="#aa3377")
    bottom.annotate("with those of the iteration in flight", (gauge, used[GAUGE_IN]),
                    (gauge - 8, used[GAUGE_IN] + 4.5), fontsize=8, ha="right", color="#aa3377",
                    arrowprops={"arrowstyle": "->", "color": "#aa3377"})
    bottom.set_ylabel("KV blocks\nin use", fontsize=9)
    bottom.set_ylim(0, max(used) + 6)
    bottom.set_xlabel("time in ms. A box is one iteration of one sequence; its number, "
                      "the tokens it computes: 1 decodes, more is a chunk")
    for axis in (top, bottom):
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    top.spines["left"].set_visible(False)
    top.tick_params(axis="y", length=0)
    top.tick_params(axis="x", length=0)
    top.spines["bottom"].set_visible(False)
    bottom.set_xlim(0, times[-1])
    figure.tight_layout(h_pad=0.2)
    figure.savefig(options.output, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
