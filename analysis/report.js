/* Draws the charts of the page from the data that lies in it. The library was put in as gzip in
 * base64; the page asks no server for anything. */
"use strict";
(async () => {
  const state = (text) => { document.body.dataset.charts = text; };
  const bytes = (id) => {
    const text = atob(document.getElementById(id).textContent.trim());
    return Uint8Array.from(text, (c) => c.charCodeAt(0));
  };
  try {
    const stream = new Blob([bytes("library")]).stream()
      .pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  } catch (reason) {
    state("none");
    document.getElementById("no-charts").hidden = false;
    return;
  }
  const base = {
    font: { family: "system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif", size: 12,
      color: "#222" },
    margin: { l: 62, r: 52, t: 30, b: 44 }, hoverlabel: { align: "left" },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, xanchor: "left",
      traceorder: "normal" },
    modebar: { orientation: "v", bgcolor: "rgba(255,255,255,0)" },
    paper_bgcolor: "#fff", plot_bgcolor: "#fff",
  };
  const axis = { automargin: true, gridcolor: "#e4e4e4", linecolor: "#888", zerolinecolor: "#bbb",
    ticks: "outside", tickcolor: "#888" };
  const shared = [];
  let moving = false;
  const follow = async (from, change) => {
    const range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    const update = range[0] ? { "xaxis.range": range } :
      change["xaxis.autorange"] ? { "xaxis.range": from.startRange.slice() } : null;
    if (moving || !update) return;
    moving = true;
    await Promise.all(shared.map((other) => Plotly.relayout(other, update)));
    moving = false;
  };
  const charts = JSON.parse(document.getElementById("charts").textContent);
  for (const [id, chart] of Object.entries(charts)) {
    const layout = { ...base, ...chart.layout };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis/.test(name)) layout[name] = { ...axis, ...layout[name] };
    }
    layout.showlegend = chart.data.length > 1 || layout.showlegend === true;
    const place = document.getElementById(id);
    await Plotly.newPlot(place, chart.data, layout, { responsive: true, displaylogo: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { format: "svg", filename: id } });
    if (chart.time) {
      place.startRange = layout.xaxis.range;
      shared.push(place);
      place.on("plotly_relayout", (change) => follow(place, change));
    }
  }
  /* On paper everything is open, and charts have the size that the page's style makes room for. */
  const places = Object.keys(charts).map((id) => document.getElementById(id));
  startExplorer(base, axis);
  if (document.getElementById("explorer-data")) places.push(document.getElementById("explorer"));
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
    for (const place of places) Plotly.relayout(place, { width: 510, height: 290 });
  });
  addEventListener("afterprint", () => {
    for (const place of places) Plotly.relayout(place, { width: null, height: null,
      autosize: true });
  });
  state(String(places.length));
})();
