// The round timeline: rows of nodes, spans as bars, messages as arrows, the critical path as a line.
PV.spanColours = { invite: PV.hue.pink, train: PV.hue.blue, share: PV.hue.yellow, send: PV.hue.orange, wait: "#c3c8cf", aggregate: PV.hue.green, broadcast: PV.hue.sky, idle: "#e3e5e8", down: "#444444" };
PV.fateColours = { delivered: PV.hue.blue, late: PV.hue.orange, lost: PV.hue.red, rejected: PV.hue.pink, in_flight: PV.hue.grey, not_sent: "#222222" };

PV.byRound = packed => {
  let columns = null;
  const unpackAll = () => Object.fromEntries(Object.entries(packed).filter(([, column]) => column.type).map(([name, column]) => [name, PV.unpack(column)]));
  const place = new Map(packed.rounds.map((n, i) => [n, i]));
  return {
    // Unpacked when first asked for: the page is up before its millions of numbers are.
    get columns() { return (columns = columns || unpackAll()); },
    rounds: packed.rounds,
    rows(n) { const i = place.get(n); return i === undefined ? [0, 0] : [packed.starts[i], packed.starts[i + 1]]; },
  };
};

PV.timeline = () => {
  const box = document.getElementById("timeline");
  if (!box) return;
  const { data, hue } = PV;
  const pictures = data.pictures;
  const spans = PV.pictureSpans = PV.byRound(pictures.spans);
  const messages = PV.pictureMessages = PV.pictureMessages || PV.byRound(pictures.messages);
  // Only what belongs to a round, to joining (0), or to the collection after the last round, if that sent anything.
  const numbers = [...new Set([...spans.rounds, ...messages.rounds])].sort((a, b) => a - b);
  const lastRound = Math.max(0, ...data.rounds.round);
  const names = new Map(pictures.nodes.id.map((id, i) => [id, pictures.nodes.name[i]]));
  const control = name => document.getElementById(name);
  const [roundBox, spanBox, orderBox, nodeBox, pathBox] = ["timeline-round", "timeline-span", "timeline-order", "timeline-node", "timeline-path"].map(control);
  numbers.forEach(n => PV.option(roundBox, n, n === 0 ? "joining" : lastRound && n > lastRound ? "collection" : String(n)));
  PV.option(nodeBox, "", "no node");
  pictures.nodes.id.forEach((id, i) => PV.option(nodeBox, id, pictures.nodes.name[i]));
  const first = data.rounds.round[0];
  roundBox.value = data.open_round ?? (numbers.includes(first) ? first : numbers[0]);
  const barHeight = { send: [0.3, -0.45], aggregate: [0.3, 0.15], broadcast: [0.3, -0.45] };
  let rowOf = new Map();
  let shownIds = [];
  let shownEnd = 0;

  function shownRounds() {
    const start = numbers.indexOf(Number(roundBox.value));
    return numbers.slice(start, start + Number(spanBox.value));
  }

  function collectSpans(rounds, base) {
    const found = [];
    for (const n of rounds) {
      const shift = pictures.base_s[n] - base;
      const [from, to] = spans.rows(n);
      const { node, name, start_s, end_s } = spans.columns;
      for (let i = from; i < to; i++) found.push({ round: n, node: node[i], name: pictures.span_names[name[i]], start: start_s[i] + shift, end: end_s[i] + shift });
    }
    return found;
  }

  function collectMessages(rounds, base, chosen) {
    const found = [];
    const { sender, receiver, kind, fate, size_bytes, sent_s, arrived_s } = messages.columns;
    for (const n of rounds) {
      const shift = pictures.base_s[n] - base;
      const [from, to] = messages.rows(n);
      for (let i = from; i < to; i++) {
        if (chosen !== null && sender[i] !== chosen && receiver[i] !== chosen) continue;
        if (!names.has(sender[i]) || !names.has(receiver[i])) continue;
        found.push({ round: n, sender: sender[i], receiver: receiver[i], kind: pictures.kinds[kind[i]], fate: pictures.fates[fate[i]], bytes: size_bytes[i], sent: sent_s[i] + shift, arrived: Number.isNaN(arrived_s[i]) ? null : arrived_s[i] + shift });
      }
    }
    return found.filter(message => message.fate !== "not_sent");
  }

  function order(found, path, arrows, drops) {
    const finish = new Map();
    const touch = (id, end) => { if (names.has(id)) finish.set(id, Math.max(finish.get(id) ?? -Infinity, end)); };
    found.forEach(span => touch(span.node, span.end));
    path.forEach(step => { touch(step.node, 0); if (step.receiver != null) touch(step.receiver, 0); });
    arrows.forEach(message => { touch(message.sender, 0); touch(message.receiver, 0); });
    drops.forEach(drop => touch(drop[1], 0));
    const ids = [...finish.keys()].sort((a, b) => a - b);
    if (orderBox.value === "late") ids.sort((a, b) => finish.get(b) - finish.get(a) || a - b);
    rowOf = new Map(ids.map((id, i) => [id, i]));
    shownIds = ids;
  }

  function bars(found) {
    const used = pictures.span_names.filter(name => found.some(span => span.name === name));
    used.sort((a, b) => (a in barHeight) - (b in barHeight));
    return used.map(name => {
      const own = found.filter(span => span.name === name);
      const [width, offset] = barHeight[name] || [0.9, -0.45];
      return { type: "bar", orientation: "h", name, base: own.map(span => span.start), x: own.map(span => span.end - span.start), y: own.map(span => rowOf.get(span.node)), width, offset, marker: { color: PV.spanColours[name], line: { width: 0 } }, customdata: own.map(span => [names.get(span.node), span.round, PV.secondsText(span.end - span.start), PV.secondsText(span.start)]), hovertemplate: `%{customdata[0]}, round %{customdata[1]}: ${name} for %{customdata[2]} from %{customdata[3]}<extra></extra>` };
    });
  }

  function arrowTraces(arrows) {
    return Object.keys(PV.fateColours).flatMap(fate => {
      const own = arrows.filter(message => message.fate === fate && rowOf.has(message.sender) && rowOf.has(message.receiver));
      if (!own.length) return [];
      const x = [], y = [], sizes = [], told = [];
      own.forEach(message => {
        const text = `${names.get(message.sender)} to ${names.get(message.receiver)}: ${message.kind}, ${PV.bytesText(message.bytes)}, ${fate.replace("_", " ")}${message.arrived == null ? "" : ` after ${PV.secondsText(message.arrived - message.sent)}`}`;
        const from = rowOf.get(message.sender), to = rowOf.get(message.receiver);
        // What never arrived ends half way, between two nodes.
        x.push(message.sent, message.arrived ?? message.sent, null);
        y.push(from, message.arrived == null ? (from + to) / 2 : to, null);
        sizes.push(3, 9, 0);
        told.push(text, text, "");
      });
      const colour = fate === "delivered" ? PV.style("--ink") : PV.fateColours[fate];
      return [{ x, y, text: told, mode: "lines+markers", name: `${own.length} ${fate.replace("_", " ")}`, line: { width: 1, color: colour }, opacity: own.length > 60 ? 0.6 : 0.85, marker: { color: colour, opacity: 1, line: { width: 0 }, size: sizes, symbol: fate === "lost" ? "x" : "arrow", angleref: fate === "lost" ? "up" : "previous" }, hovertemplate: "%{text}<extra></extra>" }];
    });
  }

  function pathTraces(path) {
    const known = path.filter(step => rowOf.has(step.node) && (step.receiver == null || rowOf.has(step.receiver)));
    if (!known.length) return [];
    const x = [], y = [], told = [];
    known.forEach(step => {
      const text = `critical path: ${step.what} ${step.waited != null ? `for ${names.get(step.waited) ?? `node ${step.waited}`} ` : ""}${step.receiver == null ? `at ${names.get(step.node)}` : `${names.get(step.node)} to ${names.get(step.receiver)}`}, ${PV.secondsText(step.end - step.start)}${step.held ? `, held back by ${step.held}` : ""}`;
      const end = step.what === "resend" || step.receiver == null ? step.node : step.receiver;
      x.push(step.start, step.end);
      y.push(rowOf.get(step.node), rowOf.get(end));
      told.push(text, text);
    });
    return [{ x, y, text: told, mode: "lines+markers", name: "critical path", line: { color: PV.style("--critical"), width: 3 }, marker: { size: 6, color: PV.style("--critical"), line: { width: 1, color: PV.style("--bg") } }, hovertemplate: "%{text}<extra></extra>" }];
  }

  function dropTraces(drops, base) {
    return ["absence", "dropout"].flatMap(what => {
      const own = drops.filter(drop => drop[2] === what && rowOf.has(drop[1]));
      if (!own.length) return [];
      return [{ x: own.map(drop => drop[4] - base), y: own.map(drop => rowOf.get(drop[1])), mode: "markers", name: what, // With a light edge or middle, to be seen on the bar of a node that is down.
        marker: { symbol: what === "dropout" ? "x" : "circle", size: what === "dropout" ? 11 : 8, color: PV.style(what === "dropout" ? "--ink" : "--bg"), line: { width: 1.5, color: PV.style(what === "dropout" ? "--bg" : "--ink") } }, customdata: own.map(drop => [names.get(drop[1]), drop[3]]), hovertemplate: `%{customdata[0]}: ${what}, %{customdata[1]}<extra></extra>` }];
    });
  }

  // Labels of leaders that go and of those elected, at their rows.
  function eventLabels(rounds, base, end) {
    return pictures.events.filter(([n, node, at]) => rounds.includes(n) && rowOf.has(node) && at - base <= end).map(([, node, at, text]) => ({ x: at - base, y: rowOf.get(node), text, showarrow: true, arrowhead: 2, ax: at - base > end * 0.6 ? -46 : 46, ay: rowOf.get(node) < 2 ? 22 : -22, bgcolor: PV.style("--bg"), bordercolor: hue.red, borderpad: 2, font: { size: 12, color: PV.style("--ink") } }));
  }

  function faultShapes(base, end) {
    // A crash has its label at its node's row; only faults of many nodes are bands.
    const inside = pictures.faults.filter(fault => fault[1] >= base && fault[0] <= base + end && fault[2] !== "crash");
    const shapes = inside.map(fault => ({ type: "rect", yref: "paper", y0: 0, y1: 1, x0: Math.max(0, fault[0] - base), x1: Math.min(end, fault[1] - base), fillcolor: hue.red, opacity: 0.12, line: { width: 0 }, layer: "below" }));
    const annotations = inside.map(fault => ({ yref: "paper", y: 1, yanchor: "top", x: Math.max(0, fault[0] - base), xanchor: "left", text: `${fault[2]}: ${fault[3]}`.replace(/</g, "&lt;"), showarrow: false, bgcolor: PV.style("--bg"), font: { size: 11, color: hue.red } }));
    return { shapes, annotations };
  }

  const pathOf = (rounds, base) => rounds.flatMap(n => (pictures.paths[n] || []).map(([what, node, receiver, start, end, held, waited]) => ({ what, node, receiver, start: start - base, end: end - base, held, waited })));

  PV.chart("timeline", narrow => {
    const rounds = shownRounds();
    if (!rounds.length) return { empty: "This run has neither spans nor messages." };
    const base = pictures.base_s[rounds[0]];
    const chosen = nodeBox.value === "" ? null : Number(nodeBox.value);
    const found = collectSpans(rounds, base);
    const arrows = chosen === null ? [] : collectMessages(rounds, base, chosen);
    const path = pathBox.checked ? pathOf(rounds, base) : [];
    const drops = pictures.dropouts.filter(drop => rounds.includes(drop[0]) && names.has(drop[1]));
    order(found, path, arrows, drops);
    // The axis ends with the last shown round; what arrives later belongs to no round.
    const closes = pictures.end_s[rounds[rounds.length - 1]];
    const end = closes != null ? closes - base : Math.max(0, ...found.map(span => span.end), ...arrows.map(message => message.arrived ?? message.sent));
    shownEnd = end;
    const { shapes, annotations } = faultShapes(base, end);
    annotations.push(...eventLabels(rounds, base, end));
    rounds.slice(1).forEach(n => shapes.push({ type: "line", yref: "paper", y0: 0, y1: 1, x0: pictures.base_s[n] - base, x1: pictures.base_s[n] - base, line: { width: 1, dash: "dot", color: PV.style("--soft") } }));
    const count = shownIds.length;
    // Rows are high enough for their names while they are few; then names are thinned out.
    const legend = 20 * Math.ceil((new Set(found.map(span => span.name)).size + 3) / (narrow ? 2 : 8));
    const height = Math.min(900, Math.max(300, 110 + legend + count * (count <= 45 ? 13 : 8.5)));
    const step = Math.max(1, Math.ceil(12 * count / (height - 110 - legend)));
    const isService = i => !/^client /.test(names.get(shownIds[i]));
    const ticks = shownIds.map((_, i) => i).filter(i => isService(i) || (i % step === 0 && !(i + 1 < count && step > 1 && isService(i + 1))));
    const pathTime = path.reduce((sums, one) => sums.set(one.what, (sums.get(one.what) || 0) + one.end - one.start), new Map());
    const told = [...pathTime].sort((a, b) => b[1] - a[1]).map(([what, time]) => `${what} ${PV.secondsText(time)}`).join(", ");
    document.getElementById("timeline-status").textContent = `Round${rounds.length > 1 ? `s ${rounds[0]} to ${rounds[rounds.length - 1]}` : ` ${rounds[0]}`}: ${PV.secondsText(end)}, ${count} nodes${told ? `; critical path: ${told}` : ""}${chosen === null ? "" : `; ${arrows.length} messages of ${names.get(chosen)}`}.`;
    return {
      traces: [...bars(found), ...arrowTraces(arrows), ...dropTraces(drops, base), ...pathTraces(path)],
      layout: {
        height, barmode: "overlay", showlegend: true, shapes, annotations, dragmode: "zoom",
        uirevision: `${rounds.join()}|${orderBox.value}`, margin: { l: 70, r: 14, t: 12, b: 44 },
        xaxis: { title: { text: `seconds since round ${rounds[0]} began` }, range: [0, end * 1.01], zeroline: false },
        yaxis: { tickvals: ticks, ticktext: ticks.map(i => names.get(shownIds[i])), range: [count - 0.4, -0.6], zeroline: false, showgrid: false, tickfont: { size: 10 } },
      },
      table: { head: ["node", "round", "span", "start (s)", "end (s)"], rows: found.map(span => [names.get(span.node), span.round, span.name, span.start.toFixed(6), span.end.toFixed(6)]) },
      after: listen,
    };
  });

  let listening = false;
  function listen(place) {
    if (listening) return;
    listening = true;
    place.on("plotly_click", event => {
      const id = shownIds[Math.round(event.points[0].y)];
      if (id !== undefined) { nodeBox.value = String(id); PV.draw("timeline"); }
    });
  }

  function zoom(shrink, shift) {
    const [low, high] = box.layout.xaxis.range.map(Number);
    const middle = (low + high) / 2 + shift * (high - low), half = (high - low) / 2 * shrink;
    Plotly.relayout(box, { "xaxis.range": [middle - half, middle + half] });
  }
  function reset() {
    Plotly.relayout(box, { "xaxis.range": [0, shownEnd * 1.01], "yaxis.range": [shownIds.length - 0.4, -0.6] });
  }
  function move(by) {
    const next = numbers.indexOf(Number(roundBox.value)) + by;
    if (next >= 0 && next < numbers.length) { roundBox.value = numbers[next]; PV.draw("timeline"); }
  }
  const actions = { "zoom-in": () => zoom(0.5, 0), "zoom-out": () => zoom(2, 0), "pan-left": () => zoom(1, -0.25), "pan-right": () => zoom(1, 0.25), "zoom-reset": reset, "round-before": () => move(-1), "round-after": () => move(1) };
  for (const [name, act] of Object.entries(actions)) control(name).addEventListener("click", act);
  const keys = { "+": "zoom-in", "=": "zoom-in", "-": "zoom-out", ArrowLeft: "pan-left", ArrowRight: "pan-right", "0": "zoom-reset", PageUp: "round-before", PageDown: "round-after" };
  box.addEventListener("keydown", event => { const name = keys[event.key]; if (name) { event.preventDefault(); actions[name](); } });
  [roundBox, spanBox, orderBox, nodeBox, pathBox].forEach(one => one.addEventListener("change", () => PV.draw("timeline")));
};
