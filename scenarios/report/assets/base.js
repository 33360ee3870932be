"use strict";
// The ground the charts stand on: data, colours, themes, number texts, and the tables behind the folds.
const PV = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Okabe and Ito's palette: told apart with any colour vision.
  const hue = { orange: "#e69f00", sky: "#56b4e9", green: "#009e73", yellow: "#f0e442", blue: "#0072b2", red: "#d55e00", pink: "#cc79a7", grey: "#999999", purple: "#8a5fd0" };
  // Not its yellow: a thin line of it cannot be seen on a light ground.
  const cycle = [hue.blue, hue.red, hue.green, hue.pink, hue.orange, hue.sky, hue.grey, "#222222"];
  const dashes = ["solid", "dash", "dot", "dashdot"];
  const types = { i1: Int8Array, i2: Int16Array, i4: Int32Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

  function unpack(column) {
    if (Uint8Array.fromBase64) return new types[column.type](Uint8Array.fromBase64(column.data).buffer);
    const text = atob(column.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return new types[column.type](bytes.buffer);
  }

  const number = value => (value === "inf" ? Infinity : value);

  function digits(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
    return size >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
  }

  function bytesText(value) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (Math.abs(value) >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
    return `${Number(value.toPrecision(3))} ${units[unit]}`;
  }

  function secondsText(value) {
    if (value !== 0 && Math.abs(value) < 0.9995) return `${Number((value * 1000).toPrecision(3))} ms`;
    if (Math.abs(value) < 119.5) return `${Number(value.toPrecision(3))} s`;
    if (Math.abs(value) < 7200) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
    return `${Number((value / 3600).toPrecision(3))} h`;
  }

  // As the summary's table tells it: three digits, two and a power of ten from a thousand on.
  function epsilonText(value) {
    if (value == null) return "-";
    if (value === Infinity || value === "inf") return "inf";
    return Math.abs(value) < 999.5 ? String(Number(value.toPrecision(3))) : value.toExponential(1).replace("e+", "e").replace(".0e", "e");
  }
  // Steps of 1, 2 or 5 times a power of ten.
  function niceStep(raw) {
    const power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].find(one => one * power >= raw * (1 - 1e-9)) * power;
  }

  // Rounds and counts are whole: no ticks at 1.5.
  function roundsAxis(numbers, narrow) {
    const step = Math.max(1, niceStep(Math.max(1, numbers.length) / (narrow ? 6 : 12)));
    return { title: { text: "round" }, tick0: step > 1 ? 0 : numbers[0] ?? 1, dtick: step };
  }
  function countAxis(most, name) {
    return { title: { text: name }, rangemode: "tozero", tick0: 0, dtick: Math.max(1, niceStep(most / 6)) };
  }
  function countBar(most, name) {
    const step = Math.max(1, niceStep(most / 6));
    return { zmin: 0, zmax: Math.max(1, most), colorbar: { title: { text: name, side: "right" }, thickness: 12, tick0: 0, dtick: step } };
  }

  // A log axis whose every label is a whole number: 2 and 5 are written out where decades are few.
  function logAxis(values, title, { narrow = false, text = epsilonText, pad = 0.12 } = {}) {
    const known = values.filter(value => Number.isFinite(value) && value > 0).map(Math.log10);
    const spread = Math.max(...known) - Math.min(...known), more = Math.max(0.15, (0.8 - spread) / 2, pad * spread);
    const low = Math.min(...known) - more, high = Math.max(...known) + more;
    const few = high - low < (narrow ? 2 : 3), step = Math.ceil((high - low) / (narrow ? 4 : 9));
    const ticks = [];
    for (let power = Math.floor(low); power <= Math.ceil(high); power++) {
      if (few || power % step === 0) ticks.push(...(few ? [1, 2, 5] : [1]).map(digit => digit * 10 ** power));
    }
    return { type: "log", title: { text: title }, range: [low, high], tickvals: ticks, ticktext: ticks.map(value => text(Number(value.toPrecision(3)))) };
  }
  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function layout(extra) {
    const axis = { gridcolor: style("--grid"), zerolinecolor: style("--grid"), linecolor: style("--line"), automargin: true };
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: style("--ink"), size: 12, family: "system-ui, sans-serif" },
      margin: { l: 56, r: 14, t: 12, b: 44 }, height: 320, hovermode: "closest",
      hoverlabel: { bgcolor: style("--bg"), bordercolor: style("--line"), font: { color: style("--ink") } },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
    };
    const full = { ...base, ...extra };
    for (const name of Object.keys(full).filter(key => /^[xy]axis/.test(key))) full[name] = { ...axis, ...full[name] };
    full.xaxis = full.xaxis || axis;
    full.yaxis = full.yaxis || axis;
    return full;
  }

  // Without a pointer that hovers the buttons would always be there, on top of the legend.
  const config = { displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false, displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const charts = new Map();
  const tables = new Map();
  const waiting = [];

  // Draws a chart now or when its turn comes; `build` gives {traces, layout, table}, is told whether the
  // place is narrow, and is asked again on every change.
  function chart(name, build) {
    const place = document.getElementById(name);
    if (!place) return;
    charts.set(name, build);
    const fold = place.parentElement.querySelector("details.data");
    fold.addEventListener("toggle", () => { if (fold.open) fillTable(name, fold); });
    waiting.push(name);
  }

  function draw(name) {
    const place = document.getElementById(name);
    const built = charts.get(name)(place.clientWidth < 480);
    if (built.empty) { Plotly.purge(place); delete place.dataset.drawn; place.textContent = built.empty; place.style.minHeight = "0"; tables.delete(name); return; }
    const made = layout(built.layout || {});
    if (isDark()) built.traces.forEach(lighten);
    made.width = undefined;
    place.style.minHeight = `${made.height}px`;
    // A sentence stands where a chart was empty before.
    if (!place.dataset.drawn) place.textContent = "";
    Plotly.react(place, built.traces, made, { ...config, ...(built.config || {}) });
    place.dataset.drawn = "yes";
    tables.set(name, built.table);
    const fold = place.parentElement.querySelector("details.data");
    if (fold.open) fillTable(name, fold);
    if (built.after) built.after(place);
  }

  // On a dark ground the palette's blue is too dark, and the greys of waiting too bright; sky must stay unlike that blue, and unlike white.
  const inTheDark = { "#0072b2": "#4a9fdc", "#56b4e9": "#7fe3ea", "#c3c8cf": "#5b636e", "#e3e5e8": "#333942", "#444444": "#8a8f96", "#222222": "#e8eaed" };
  function lighten(trace) {
    const lighter = colour => (typeof colour === "string" ? (inTheDark[colour.slice(0, 7)] || colour.slice(0, 7)) + colour.slice(7) : Array.isArray(colour) ? colour.map(lighter) : colour);
    for (const part of [trace.line, trace.marker]) if (part && part.color) part.color = lighter(part.color);
    if (trace.fillcolor) trace.fillcolor = lighter(trace.fillcolor);
  }

  function drawWaiting() {
    const name = waiting.shift();
    if (name === undefined) { document.body.dataset.ready = "yes"; return; }
    draw(name);
    next(drawWaiting);
  }

  // One chart at a time, whenever the reader leaves the browser a moment.
  function next(act) {
    if (window.requestIdleCallback) requestIdleCallback(act, { timeout: 300 });
    else setTimeout(act, 0);
  }

  function drawRest() { while (waiting.length) draw(waiting.shift()); }
  function redrawAll() { for (const name of charts.keys()) if (!waiting.includes(name)) draw(name); }

  function table(head, rows, most = 500) {
    const made = document.createElement("table");
    made.className = "figures";
    const line = (cells, tag, body) => {
      const row = body.insertRow();
      cells.forEach(cell => { const one = document.createElement(tag); one.textContent = cell == null ? "-" : String(cell); row.append(one); });
    };
    line(head, "th", made.createTHead());
    const body = made.createTBody();
    rows.slice(0, most).forEach(cells => line(cells, "td", body));
    if (rows.length > most) line([`${rows.length - most} more rows are in the run's tables`], "td", body);
    return made;
  }

  function fillTable(name, fold) {
    const told = tables.get(name);
    fold.querySelector(".scroll").replaceChildren(told ? table(told.head, told.rows) : document.createTextNode("Nothing to list."));
  }

  function option(select, value, text) {
    const one = document.createElement("option");
    one.value = value;
    one.textContent = text;
    select.append(one);
  }

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function themes() {
    const button = document.getElementById("theme");
    const tell = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-pressed", String(isDark())); button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
    button.addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; tell(); redrawAll(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { tell(); redrawAll(); });
    let before = null;
    addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme || ""; document.documentElement.dataset.theme = "light"; drawRest(); redrawAll(); });
    addEventListener("afterprint", () => { if (before) document.documentElement.dataset.theme = before; else delete document.documentElement.dataset.theme; redrawAll(); });
    tell();
  }

  return { data, hue, cycle, dashes, unpack, number, digits, bytesText, secondsText, epsilonText, style, niceStep, roundsAxis, countAxis, countBar, logAxis, chart, draw, drawWaiting, next, table, option, themes, isDark, inTheDark };
})();
