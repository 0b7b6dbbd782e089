/* The explorer of a sweep: any output over any axis, a line for each value of another, the rest held
 * where the reader puts them. Needs Plotly and the data in #explorer-data. */
"use strict";
function startExplorer(base, axisStyle) {
  const source = document.getElementById("explorer-data");
  if (!source) return;
  const { axes, outputs } = JSON.parse(source.textContent);
  const colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222",
    "#8A8A8A"];
  const dashes = ["solid", "dash", "dashdot", "dot"];
  const marks = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x",
    "star"];
  const controls = document.getElementById("explorer-controls");
  const place = document.getElementById("explorer");
  const strides = axes.map((_, at) => axes.slice(at + 1).reduce((n, a) => n * a.texts.length, 1));
  const titled = (thing) => thing.label + (thing.unit ? ` (${thing.unit})` : "");

  const choice = (label, texts, chosen, changed) => {
    const box = document.createElement("label");
    box.append(label + " ");
    const select = document.createElement("select");
    texts.forEach((text, at) => select.add(new Option(text, at, at === chosen, at === chosen)));
    select.addEventListener("change", () => { changed(Number(select.value)); show(); });
    box.append(select);
    controls.append(box);
    return box;
  };
  const many = axes.map((a, at) => at).filter((at) => axes[at].texts.length > 1);
  const byLength = (list) => [...list].sort((a, b) => axes[b].texts.length - axes[a].texts.length);
  const ordered = byLength(many.filter((at) => axes[at].numbers))
    .concat(byLength(many.filter((at) => !axes[at].numbers)));
  const few = ordered.filter((at) => at !== ordered[0] && axes[at].texts.length <= 8);
  const named = few.filter((at) => !axes[at].numbers); // lines for names, the length for numbers
  const state = { output: 0, x: ordered[0] ?? 0, by: named[0] ?? few[0] ?? ordered[1] ?? -1,
    held: axes.map(() => 0), log: 0 };

  const show = () => {
    if (state.by === state.x) state.by = -1;
    holds.forEach((box, at) => { box.hidden = at === state.x || at === state.by ||
      axes[at].texts.length < 2; });
    const output = outputs[state.output], x = axes[state.x];
    const lines = state.by < 0 ? [0] : axes[state.by].texts.map((_, at) => at);
    const data = lines.map((line) => {
      const at = x.texts.map((_, step) => axes.reduce((sum, _a, k) => sum + strides[k] *
        (k === state.x ? step : k === state.by ? line : state.held[k]), 0));
      return { type: "scatter", mode: x.numbers ? "lines+markers" : "markers",
        name: state.by < 0 ? output.label : `${axes[state.by].name} = ${axes[state.by].texts[line]}`,
        x: x.numbers || x.texts, y: at.map((i) => output.mean[i]),
        error_y: output.half ? { type: "data", array: at.map((i) => output.half[i] || 0),
          thickness: 1, width: 3 } : undefined,
        line: { color: colours[line % 8], dash: dashes[line % 4] },
        marker: { symbol: marks[line % 8], size: 7 } };
    });
    Plotly.react(place, data, { ...base, showlegend: data.length > 1, hovermode: "x unified",
      xaxis: { ...axisStyle, title: { text: titled(x) } },
      yaxis: { ...axisStyle, title: { text: titled(output) },
        type: state.log ? "log" : "linear", rangemode: state.log ? "normal" : "tozero" } },
    { responsive: true, displaylogo: false });
  };
  const names = axes.map((a) => a.name);
  choice("output", outputs.map((o) => titled(o)), 0, (at) => { state.output = at; });
  choice("over", names, state.x, (at) => { state.x = at; });
  choice("lines", ["none", ...names], state.by + 1, (at) => { state.by = at - 1; });
  choice("scale", ["linear", "logarithmic"], 0, (at) => { state.log = at; });
  const holds = axes.map((a, at) => choice(`${a.name} =`, a.texts, 0,
    (value) => { state.held[at] = value; }));
  show();
}
