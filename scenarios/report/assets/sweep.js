// The page of a sweep: figures over axes, parallel coordinates, the Pareto front.
PV.sweep = () => {
  const { data, chart } = PV;
  const escape = text => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");
  // Long values would leave no room for the chart; hovering shows them in full.
  const label = text => escape(String(text).length > 24 ? `${String(text).slice(0, 23)}…` : text);
  const chosen = id => document.getElementById(id).value;
  // Axes that move together are one, with both names.
  const short = names => names.split(", ").map(name => name.slice(name.lastIndexOf(".") + 1)).join(", ");
  const figure = () => data.figures.find(one => one.name === chosen("figure"));
  const texts = { bytes: PV.bytesText, seconds: PV.secondsText, epsilon: PV.epsilonText };
  const told = (unit, value) => (value == null ? "-" : value === Infinity ? "inf" : (texts[unit] || PV.digits)(value));
  const mean = (one, name) => { const value = PV.number(one.figures[name]?.mean); return value === undefined ? null : value; };
  // A run without a page has a row that says so.
  const open = one => {
    const run = one?.runs.find(run => run.page) || one?.runs[0];
    if (run?.page) window.open(run.page, "_blank", "noopener");
    else if (run) location.hash = run.row;
  };
  const words = one => one.axes.map(escape).join(", ");

  // The combination at these places of the two axes; all other axes are held, where its base has them.
  const at = (across, x, down, y) => {
    const fits = (one, loose) => data.axes.every((axis, k) => {
      const wanted = k === across ? x : k === down ? y : axis.values[Number(chosen(`hold-${k}`))];
      return one.axes[k] === wanted || (loose && k !== across && k !== down && one.axes[k] === "-");
    });
    return data.combinations.find(one => fits(one, false)) || data.combinations.find(one => fits(one, true));
  };
  const two = () => {
    const across = Number(chosen("across"));
    let down = Number(chosen("down"));
    if (down === across) down = data.axes.length > 1 ? (across + 1) % data.axes.length : across;
    return [across, down];
  };
  const numeric = values => values.every(value => value !== "" && Number.isFinite(Number(value)));
  const onClick = (place, find) => { place.removeAllListeners?.("plotly_click"); place.on("plotly_click", event => open(find(event.points[0]))); };

  chart("heat", () => {
    const [across, down] = two();
    const one = figure();
    const all = down === across ? [""] : data.axes[down].values;
    const found = (x, y) => at(across, x, down, down === across ? x : y);
    // Values that no combination has at what is held would be empty rows and columns.
    const xs = data.axes[across].values.filter(x => all.some(y => found(x, y)));
    const ys = all.filter(y => xs.some(x => found(x, y)));
    if (!xs.length) return { empty: "No finished cell has the values that are held above." };
    const cells = ys.map(y => xs.map(x => found(x, y)));
    const values = cells.map(row => row.map(cell => (cell ? mean(cell, one.name) : null)));
    return {
      traces: [{ type: "heatmap", x: xs.map((_, i) => i), y: ys.map((_, j) => j), customdata: ys.map(y => xs.map(x => `${escape(x)}, ${escape(y)}`)), z: values.map(row => row.map(value => (Number.isFinite(value) ? value : null))), text: values.map(row => row.map(value => told(one.unit, value))), texttemplate: "%{text}", hovertemplate: "%{customdata}: %{text}<extra></extra>", colorscale: "Cividis", colorbar: { thickness: 12 }, xgap: 1, ygap: 1 }],
      layout: { height: Math.max(240, 110 + ys.length * 36), xaxis: { tickvals: xs.map((_, i) => i), ticktext: xs.map(label), title: { text: escape(data.axes[across].name) } }, yaxis: { tickvals: ys.map((_, j) => j), ticktext: ys.map(label), title: { text: down === across ? "" : escape(short(data.axes[down].name)), standoff: 12 } } },
      table: { head: [data.axes[across].name, down === across ? "" : data.axes[down].name, one.label], rows: ys.flatMap((y, j) => xs.map((x, i) => [x, y, told(one.unit, values[j][i])])) },
      after: place => onClick(place, point => cells[point.y]?.[point.x]),
    };
  });

  chart("lines", () => {
    const [across, down] = two();
    const one = figure();
    const xs = data.axes[across].values, numbers = numeric(xs);
    const groups = down === across ? [null] : data.axes[down].values;
    const rows = [], drawn = [];
    let infinite = 0;
    const traces = groups.map((y, i) => {
      const found = xs.map(x => at(across, x, down, y === null ? x : y));
      const known = found.map((cell, k) => [xs[k], cell && cell.figures[one.name], cell]).filter(([, part]) => part && part.mean != null);
      known.forEach(([x, part]) => rows.push([x, y, told(one.unit, PV.number(part.mean)), told(one.unit, part.low), told(one.unit, part.high), part.n]));
      // An infinite mean has no place on the axis, so the chart says how many there are and the table lists them.
      const points = known.filter(([, part]) => Number.isFinite(PV.number(part.mean)));
      infinite += known.length - points.length;
      if (points.length) drawn.push(points.map(([, , cell]) => cell));
      return {
        name: y === null ? escape(one.label) : label(`${short(data.axes[down].name)} ${y}`), mode: "lines+markers",
        x: points.map(([x]) => (numbers ? Number(x) : label(x))), y: points.map(([, part]) => part.mean),
        error_y: { type: "data", symmetric: false, array: points.map(([, part]) => (part.high == null ? 0 : part.high - part.mean)), arrayminus: points.map(([, part]) => (part.low == null ? 0 : part.mean - part.low)), thickness: 1.2, width: 4 },
        line: { color: PV.cycle[i % PV.cycle.length], dash: PV.dashes[Math.floor(i / PV.cycle.length) % 4], width: 2.2 }, marker: { size: 6, symbol: i % 8 },
        customdata: points.map(([, part]) => told(one.unit, part.mean)), hovertemplate: "%{x}: %{customdata}<extra>%{fullData.name}</extra>",
      };
    });
    if (!rows.length) return { empty: "No finished cell has this figure at the values that are held above." };
    if (!drawn.length) return { empty: "Every finished cell has an infinite value here, so there is no line." };
    const left = infinite ? [{ text: `not drawn: ${infinite} infinite value${infinite > 1 ? "s" : ""}`, xref: "paper", yref: "paper", x: 0, y: 1.08, showarrow: false }] : [];
    return {
      traces: traces.filter(trace => trace.x.length),
      layout: { annotations: left, showlegend: true, xaxis: { title: { text: escape(data.axes[across].name) }, type: numbers ? "linear" : "category" }, yaxis: { title: { text: escape(`${one.label}${one.unit === "share" ? " (share)" : ` (${one.unit})`}`) } } },
      table: { head: [data.axes[across].name, down === across ? "" : data.axes[down].name, one.label, "low", "high", "seeds"], rows },
      after: place => onClick(place, point => drawn[point.curveNumber]?.[point.pointNumber]),
    };
  });

  // Drawn as ordinary lines: Plotly's own parallel coordinates need WebGL, which many browsers lack.
  chart("coordinates", narrow => {
    const shown = data.figures.slice(0, 5);
    const columns = data.axes.map((axis, k) => ({ label: short(axis.name), values: data.combinations.map(one => (axis.values.length > 1 ? axis.values.indexOf(one.axes[k]) / (axis.values.length - 1) : 0.5)), low: label(axis.values[0]), high: label(axis.values[axis.values.length - 1]) }));
    shown.forEach(one => {
      const values = data.combinations.map(cell => mean(cell, one.name));
      const finite = values.filter(value => value != null && Number.isFinite(value));
      if (!finite.length) return;
      const low = Math.min(...finite), span = Math.max(...finite) - low || 1;
      // What is infinite stands above all finite ones.
      columns.push({ label: one.label, values: values.map(value => (value == null ? null : Number.isFinite(value) ? (value - low) / span : 1.12)), low: told(one.unit, low), high: told(one.unit, low + (span === 1 && Math.max(...finite) === low ? 0 : span)) });
    });
    const first = data.combinations.map(one => mean(one, shown[0].name));
    const order = first.map((value, place) => place).sort((p, q) => (first[p] ?? -1) - (first[q] ?? -1));
    const shade = place => { const rank = order.indexOf(place) / Math.max(1, order.length - 1); return `rgb(${Math.round(30 + 215 * rank)},${Math.round(70 + 130 * rank)},${Math.round(140 - 90 * rank)})`; };
    // On a narrow page labels stand upright, and need room below and above the lines: 205 pixels are one unit.
    const room = (least, texts) => (narrow ? Math.max(least, Math.max(...texts.map(text => text.length)) * 7 / 205) : least);
    const below = room(narrow ? 0.3 : 0.12, columns.map(column => column.low)), above = room(narrow ? 0.4 : 0.22, columns.map(column => column.high));
    const note = (x, y, text, anchor) => ({ x, y, text, showarrow: false, yanchor: anchor, textangle: narrow ? -90 : 0, font: { size: 11, color: PV.style("--ink") } });
    return {
      traces: data.combinations.map((one, place) => ({ mode: "lines+markers", x: columns.map((_, k) => k), y: columns.map(column => column.values[place]), connectgaps: true, showlegend: false, line: { color: shade(place), width: 1.6 }, marker: { size: 4 }, text: columns.map(() => `${words(one)}<br>${escape(shown[0].label)} ${told(shown[0].unit, first[place])}`), hovertemplate: "%{text}<extra></extra>" })),
      layout: { height: narrow ? 172 + 205 * (1 + below + above) : 420, margin: narrow ? { l: 10, r: 10, t: 12, b: 160 } : { l: 90, r: 60, t: 12, b: 110 }, xaxis: { tickvals: columns.map((_, k) => k), ticktext: columns.map(column => escape(column.label)), tickangle: narrow ? -90 : -20, range: [-0.3, columns.length - 0.7], showgrid: true }, yaxis: { visible: false, range: [-below, 1 + above] }, annotations: columns.flatMap((column, k) => [note(k, -0.02, column.low, "top"), note(k, 1.02, column.high, "bottom")]) },
      table: { head: [...data.axes.map(axis => axis.name), ...shown.map(one => one.label)], rows: data.combinations.map(one => [...one.axes, ...shown.map(part => told(part.unit, mean(one, part.name)))]) },
      after: place => onClick(place, point => data.combinations[point.curveNumber]),
    };
  });

  chart("pareto", narrow => {
    const view = chosen("view"), front = new Set(data.fronts[view]);
    const points = data.combinations.map((one, place) => ({ one, place, x: mean(one, view), y: mean(one, "accuracy") })).filter(point => point.x != null && point.y != null);
    if (!points.length) return { empty: "No combination has both an accuracy and an epsilon of this view." };
    const finite = points.map(point => point.x).filter(value => Number.isFinite(value) && value > 0);
    const edge = (finite.length ? Math.max(...finite) : 1) * 10;
    const part = inside => points.filter(point => front.has(point.place) === inside);
    const trace = (inside, name, symbol) => ({
      name, mode: "markers", x: part(inside).map(point => (Number.isFinite(point.x) && point.x > 0 ? point.x : edge)), y: part(inside).map(point => point.y),
      text: part(inside).map(point => `${words(point.one)}<br>epsilon ${told("epsilon", point.x)}, ${told("bytes", mean(point.one, "client_median"))} per client, ${told("seconds", mean(point.one, "simulated_s"))}`),
      marker: { size: inside ? 11 : 9, symbol, color: inside ? PV.hue.blue : PV.hue.grey }, hovertemplate: "%{text}, accuracy %{y:.3f}<extra></extra>",
    });
    return {
      traces: [trace(true, "on the front", "circle"), trace(false, "beaten", "circle-open")],
      layout: { height: 380, showlegend: true, xaxis: PV.logAxis([...finite, ...(points.some(point => !Number.isFinite(point.x) || point.x <= 0) ? [edge] : [])], `epsilon, ${data.views[view]} (log scale)`, { narrow, pad: 0.05 }), yaxis: { title: { text: "accuracy (share correct)" }, range: [0, 1.02] } },
      table: { head: [...data.axes.map(axis => axis.name), "on the front", "accuracy", "epsilon", "bytes per client", "simulated time"], rows: points.map(point => [...point.one.axes, front.has(point.place) ? "yes" : "no", point.y.toFixed(3), told("epsilon", point.x), told("bytes", mean(point.one, "client_median")), told("seconds", mean(point.one, "simulated_s"))]) },
      after: place => onClick(place, point => part(point.curveNumber === 0)[point.pointNumber]?.one),
    };
  });

  // Only axes that are not drawn are held at a value.
  const hide = () => { const [across, down] = two(); data.axes.forEach((_, k) => { document.getElementById(`hold-${k}`).closest("label").hidden = k === across || k === down; }); };
  const redraw = () => { hide(); PV.draw("heat"); PV.draw("lines"); };
  hide();
  ["figure", "across", "down", ...data.axes.map((_, k) => `hold-${k}`)].forEach(id => document.getElementById(id).addEventListener("change", redraw));
  document.getElementById("view").addEventListener("change", () => PV.draw("pareto"));
};
