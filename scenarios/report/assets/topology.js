// The graph of any round: nodes that stay where they are, edges by bytes or outcome, or the same as a matrix.
PV.roleColours = { client: PV.hue.sky, leader: PV.hue.red, proxy: PV.hue.orange, standby: PV.hue.yellow, tracker: PV.hue.grey, server: PV.hue.pink, relay: PV.hue.green, intruder: "#444444", absent: "#c3c8cf", unreached: PV.hue.red };

PV.topology = () => {
  const box = document.getElementById("topology");
  if (!box) return;
  const MANY = 600;
  const { data, hue } = PV;
  const pictures = data.pictures;
  const nodes = pictures.drawn;
  const messages = PV.pictureMessages = PV.pictureMessages || PV.byRound(pictures.messages);
  const numbers = messages.rounds;
  const place = new Map(nodes.id.map((id, i) => [id, i]));
  const control = name => document.getElementById(name);
  const [slider, shown, view, colour, edgesBy, nodeBox, withControl] = ["topology-round", "topology-number", "topology-view", "topology-colour", "topology-edges", "topology-node", "topology-control"].map(control);
  slider.max = String(Math.max(0, numbers.length - 1));
  const opened = numbers.indexOf(data.open_round ?? data.rounds.round[0]);
  slider.value = String(Math.max(0, opened));
  PV.option(nodeBox, "", "all");
  nodes.id.forEach((id, i) => PV.option(nodeBox, id, nodes.name[i]));
  const figures = control("topology-figures");
  const badness = ["not_sent", "lost", "rejected", "in_flight", "late", "delivered"];

  function collect(n) {
    const edges = new Map();
    const { sender, receiver, kind, fate, size_bytes } = messages.columns;
    const [from, to] = messages.rows(n);
    for (let i = from; i < to; i++) {
      const isControl = pictures.kinds[kind[i]] === "control";
      const what = pictures.fates[fate[i]];
      if (isControl && what !== "not_sent" && !withControl.checked) continue;
      const key = sender[i] * 4294967296 + receiver[i];
      let edge = edges.get(key);
      if (!edge) { edge = { sender: sender[i], receiver: receiver[i], bytes: 0, messages: 0, kinds: new Set(), fates: new Set() }; edges.set(key, edge); }
      edge.bytes += size_bytes[i];
      edge.messages += what === "not_sent" ? 0 : (messages.columns.count ? messages.columns.count[i] : 1);
      if (what !== "not_sent") edge.kinds.add(pictures.kinds[kind[i]]);
      edge.fates.add(what);
    }
    // An edge that lost a try and delivered the next has delivered: the best outcome speaks, late before lost.
    return [...edges.values()].map(edge => ({ ...edge, fate: ["delivered", "late", "in_flight", "rejected", "lost", "not_sent"].find(what => edge.fates.has(what)), tries: edge.fates }));
  }

  // The newest value of each node up to a round, from columns sorted by round.
  function latest(n, columns, which) {
    const found = new Map();
    const { round, node } = columns;
    for (let i = 0; i < round.length && round[i] <= n; i++) found.set(node[i], PV.number(columns[which][i]));
    return found;
  }
  const epsilons = (n, which) => latest(n, pictures.budget, which);

  const count = value => value.toLocaleString("en-US");
  const edgeText = edge => `${nodes.name[place.get(edge.sender)]} to ${nodes.name[place.get(edge.receiver)]}: ${PV.bytesText(edge.bytes)} in ${edge.messages} message${edge.messages === 1 ? "" : "s"} (${[...edge.kinds].join(", ") || "nothing"}), ${edge.fate.replace("_", " ")}${edge.tries.has("lost") && edge.fate !== "lost" ? " after a loss" : ""}`;

  function lines(edges, style) {
    const x = [], y = [];
    edges.forEach(edge => {
      const a = place.get(edge.sender), b = place.get(edge.receiver);
      x.push(nodes.x[a], nodes.x[b], null);
      y.push(nodes.y[a], nodes.y[b], null);
    });
    return { x, y, mode: "lines", hoverinfo: "skip", ...style };
  }

  function edgeGroups(edges) {
    if (edgesBy.value === "fate") {
      return badness.slice().reverse().map(fate => ({ name: fate.replace("_", " "), colour: PV.fateColours[fate], width: fate === "delivered" ? 1 : 1.8, edges: edges.filter(edge => edge.fate === fate) })).filter(group => group.edges.length);
    }
    const most = edges.reduce((sum, edge) => Math.max(sum, edge.bytes), 1);
    const shades = PV.isDark() ? ["#2a6f97", "#4a9fdc", "#d6f1ff"] : [hue.sky, hue.blue, "#003f66"];
    return [[0, 0.34, 0.8], [0.34, 0.67, 1.6], [0.67, 1.01, 2.8]].map(([low, high, width], i) => {
      const own = edges.filter(edge => edge.bytes / most >= low && edge.bytes / most < high);
      const ends = [...new Set([own.reduce((sum, edge) => Math.min(sum, edge.bytes), Infinity), own.reduce((sum, edge) => Math.max(sum, edge.bytes), 0)].map(PV.bytesText))];
      return { name: ends.join(" to "), colour: shades[i], width, edges: own };
    }).filter(group => group.edges.length);
  }

  function edgeTraces(all, chosen) {
    const own = chosen === null ? all : all.filter(edge => edge.sender === chosen || edge.receiver === chosen);
    const many = own.length > MANY;
    const opacity = many ? Math.max(0.1, Math.min(0.5, 600 / own.length)) : Math.max(0.25, Math.min(0.9, 120 / own.length));
    const traces = edgeGroups(own).map(group => lines(group.edges, { name: group.name, opacity: many && group.edges.length < 200 ? 0.6 : opacity, line: { width: many ? 0.7 : group.width, color: group.colour }, showlegend: false }));
    // The legend gets lines of its own: faint ones could not be seen there.
    edgeGroups(own).forEach(group => traces.push({ x: [null], y: [null], mode: "lines", name: `${count(group.edges.length)} edge${group.edges.length === 1 ? "" : "s"}: ${group.name}`, line: { width: group.width, color: group.colour }, showlegend: true }));
    if (!many) {
      const ends = { x: [], y: [], text: [], angle: [] };
      own.forEach(edge => {
        const a = place.get(edge.sender), b = place.get(edge.receiver);
        // Two thirds of the way to the receiver, so that both directions can be pointed at.
        ends.x.push(nodes.x[a] / 3 + 2 * nodes.x[b] / 3);
        ends.y.push(nodes.y[a] / 3 + 2 * nodes.y[b] / 3);
        ends.text.push(edgeText(edge));
        // Clockwise from the top, as plotly turns symbols.
        ends.angle.push(Math.atan2(nodes.x[b] - nodes.x[a], nodes.y[b] - nodes.y[a]) * 180 / Math.PI);
      });
      traces.push({ x: ends.x, y: ends.y, text: ends.text, mode: "markers", marker: { symbol: "arrow", angle: ends.angle, size: own.length > 250 ? 6 : own.length > 120 ? 8 : 13, color: PV.style("--soft"), opacity: own.length > 250 ? 0.3 : own.length > 120 ? 0.5 : 0.9 }, hovertemplate: "%{text}<extra></extra>", showlegend: false });
    }
    return traces;
  }

  function nodeTraces(n, edges, chosen) {
    const traffic = new Map();
    edges.forEach(edge => { for (const id of [edge.sender, edge.receiver]) traffic.set(id, (traffic.get(id) || 0) + edge.bytes); });
    const row = data.rounds.round.indexOf(n);
    const leader = row < 0 ? null : data.rounds.leader[row];
    const unreached = new Map(pictures.dropouts.filter(drop => drop[0] === n && drop[2] === "dropout").map(drop => [drop[1], drop[3]]));
    const role = nodes.id.map((id, i) => (unreached.has(id) ? "unreached" : id === leader && nodes.role[i] === "client" ? "leader" : nodes.role[i] === "client" && !traffic.has(id) ? "absent" : nodes.role[i]));
    const published = epsilons(n, "published"), rigorous = epsilons(n, "rigorous");
    const accuracy = latest(n, pictures.accuracy, "accuracy");
    const told = nodes.id.map((id, i) => `${nodes.name[i]}${role[i] === nodes.role[i] ? "" : ` (${role[i] === "absent" ? "no data in this round" : unreached.has(id) ? `reached no node: ${unreached.get(id)}` : role[i]})`}<br>${PV.bytesText(traffic.get(id) || 0)} in this round${pictures.drawn_note ? " with shown nodes" : ""}${accuracy.get(id) == null ? "" : `<br>accuracy ${accuracy.get(id).toFixed(3)}`}${published.get(id) == null ? "" : `<br>epsilon published ${PV.epsilonText(published.get(id))}`}${rigorous.get(id) == null ? "" : `<br>epsilon rigorous (local) ${PV.epsilonText(rigorous.get(id))}`}`);
    const size = i => (nodes.id[i] === chosen ? 17 : nodes.role[i] === "client" && role[i] !== "leader" ? (nodes.id.length > 400 ? 4 : nodes.id.length > 120 ? 7 : 10) : 15);
    const make = (rows, marker, name) => ({ x: rows.map(i => nodes.x[i]), y: rows.map(i => nodes.y[i]), customdata: rows.map(i => nodes.id[i]), text: rows.map(i => told[i]), mode: "markers", name, marker: { opacity: 1, size: rows.map(size), line: { width: rows.map(i => (nodes.id[i] === chosen ? 3 : 1)), color: PV.style("--bg") }, ...marker }, hovertemplate: "%{text}<extra></extra>", showlegend: Boolean(name) });
    // Proxy and server stand inside the circle: without data they would only cover edges of others.
    const every = nodes.id.map((_, i) => i).filter(i => nodes.role[i] === "client" || traffic.has(nodes.id[i]) || nodes.id[i] === chosen);
    const symbols = { client: "circle", leader: "star", proxy: "square", server: "diamond", absent: "circle-open", unreached: "x" };
    if (colour.value === "role") {
      return [...new Set(every.map(i => role[i]))].map(one => make(every.filter(i => role[i] === one), { color: PV.roleColours[one], symbol: symbols[one] || "hexagon" }, ({ absent: "no data in this round", unreached: "reached no node" })[one] || one));
    }
    const source = { traffic, published, rigorous, accuracy }[colour.value];
    const known = every.filter(i => Number.isFinite(source.get(nodes.id[i])));
    const values = known.map(i => source.get(nodes.id[i]));
    const title = { traffic: "bytes", accuracy: "accuracy" }[colour.value] || "epsilon";
    const rest = make(every.filter(i => !known.includes(i)), { color: PV.style("--line"), symbol: "circle-open" }, "none");
    return [rest, make(known, { color: values, ...(colour.value === "accuracy" ? { cmin: 0, cmax: 1 } : {}), colorscale: "Cividis", symbol: known.map(i => symbols[role[i]] === "circle-open" ? "circle" : symbols[role[i]] || "hexagon"), showscale: true, colorbar: { title: { text: title }, thickness: 12, len: 0.8, exponentformat: "SI" } }, "")];
  }

  function matrix(edges, ticks) {
    const involved = new Set(edges.flatMap(edge => [edge.sender, edge.receiver]));
    const ids = nodes.id.filter(id => involved.has(id));
    const at = new Map(ids.map((id, i) => [id, i]));
    const fates = badness.slice().reverse();
    const z = ids.map(() => new Array(ids.length).fill(null));
    const told = ids.map(() => new Array(ids.length).fill(""));
    edges.forEach(edge => { const r = at.get(edge.receiver), s = at.get(edge.sender); z[r][s] = edgesBy.value === "fate" ? fates.indexOf(edge.fate) : edge.bytes; told[r][s] = edgeText(edge); });
    const names = ids.map(id => nodes.name[place.get(id)]);
    const indices = ids.map((_, i) => i);
    const steps = fates.flatMap((fate, i) => [[i / fates.length, PV.fateColours[fate]], [(i + 1) / fates.length, PV.fateColours[fate]]]);
    const scale = edgesBy.value === "fate" ? { colorscale: steps, zmin: -0.5, zmax: fates.length - 0.5, colorbar: { tickvals: fates.map((_, i) => i), ticktext: fates.map(fate => fate.replace("_", " ")), thickness: 12 } } : { colorscale: PV.isDark() ? [[0, "#1d3a52"], [1, "#9fd8ff"]] : [[0, "#dcebf6"], [1, "#003f66"]], zmin: 0, colorbar: { title: { text: "bytes" }, thickness: 12, exponentformat: "SI" } };
    return { traces: [{ type: "heatmap", x: indices, y: indices, z, text: told, hoverongaps: false, hovertemplate: "%{text}<extra></extra>", ...scale }], axes: { xaxis: { title: { text: "sender (numbers are clients)" }, ...PV.nodeTicks(names, ticks), showgrid: false, zeroline: false }, yaxis: { title: { text: "receiver" }, ...PV.nodeTicks(names, 20), autorange: "reversed", showgrid: false, zeroline: false } } };
  }

  PV.chart("topology", narrow => {
    if (!numbers.length) return { empty: "This run has no messages." };
    const n = numbers[Number(slider.value)];
    shown.textContent = String(n);
    slider.setAttribute("aria-valuetext", `round ${n}`);
    const edges = collect(n);
    begin(edges);
    const row = data.rounds.round.indexOf(n);
    figures.textContent = row < 0 ? "" : data.rounds.graph[row] || "";
    const chosen = nodeBox.value === "" ? null : Number(nodeBox.value);
    const counts = badness.map(fate => [fate, edges.filter(edge => edge.fate === fate).length]).filter(pair => pair[1]).reverse();
    const own = chosen === null || view.value === "matrix" ? "" : ` Drawn: the ${count(edges.filter(edge => edge.sender === chosen || edge.receiver === chosen).length)} edges of ${nodes.name[place.get(chosen)]}.`;
    const many = chosen === null && edges.length > MANY && view.value === "graph" ? " So many edges are drawn faintly: choose a node or the matrix to tell them apart." : "";
    document.getElementById("topology-status").textContent = `Round ${n}${pictures.drawn_note ? `, between the ${nodes.id.length} shown nodes` : ""}: ${count(edges.length)} edges, ${PV.bytesText(edges.reduce((sum, edge) => sum + edge.bytes, 0))}; ${counts.map(([fate, number]) => `${count(number)} ${fate.replace("_", " ")}`).join(", ") || "no data was sent"}.${own}${many}`;
    const rows = (chosen === null ? edges : edges.filter(edge => edge.sender === chosen || edge.receiver === chosen)).map(edge => [nodes.name[place.get(edge.sender)], nodes.name[place.get(edge.receiver)], edge.bytes, edge.messages, edge.fate.replace("_", " ")]);
    const table = { head: ["sender", "receiver", "bytes", "messages", "outcome"], rows };
    if (view.value === "matrix") { const made = matrix(edges, narrow ? 6 : 20); return { traces: made.traces, layout: { height: narrow ? 480 : 620, ...made.axes }, table, after: listen }; }
    const hidden = { visible: false, range: [-1.12, 1.12], fixedrange: false };
    return { traces: [...edgeTraces(edges, chosen), ...nodeTraces(n, edges, chosen)], layout: { height: narrow ? 520 : 620, showlegend: true, uirevision: "stay", dragmode: "pan", margin: { l: 10, r: 10, t: 12, b: 10 }, xaxis: hidden, yaxis: { ...hidden, range: [-1.22, 1.12], scaleanchor: "x" } }, table, after: listen };
  });

  // Thousands of edges at once say nothing: begin with those of the busiest client.
  let begun = false;
  function begin(edges) {
    // A sparse graph that stays has places that suit it, and can be seen as a whole.
    if (begun || edges.length <= (pictures.stays ? 10 * nodes.id.length : MANY)) return;
    begun = true;
    const sums = new Map();
    edges.forEach(edge => { for (const id of [edge.sender, edge.receiver]) sums.set(id, (sums.get(id) || 0) + edge.bytes); });
    nodeBox.value = String([...sums.keys()].filter(id => nodes.role[place.get(id)] === "client").sort((a, b) => sums.get(b) - sums.get(a) || a - b)[0] ?? "");
  }

  let listening = false;
  function listen(made) {
    if (listening) return;
    listening = true;
    made.on("plotly_click", event => {
      const id = event.points[0].customdata;
      if (typeof id === "number") { nodeBox.value = nodeBox.value === String(id) ? "" : String(id); PV.draw("topology"); }
    });
  }
  slider.addEventListener("input", () => PV.draw("topology"));
  [view, colour, edgesBy, nodeBox, withControl].forEach(one => one.addEventListener("change", () => PV.draw("topology")));
  box.addEventListener("keydown", event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) { event.preventDefault(); slider.value = String(Number(slider.value) + by); PV.draw("topology"); }
  });
};
