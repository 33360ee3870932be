// Charts over rounds, time and nodes of one run.
PV.kindColours = { control: PV.hue.grey, bootstrap: PV.hue.pink, update: PV.hue.blue, model: PV.hue.sky, handover: PV.hue.orange, share: PV.hue.green, correction: PV.hue.yellow, collect: PV.hue.red };
PV.reasonColours = { budget: PV.hue.pink, offline: PV.hue.grey, declined: PV.hue.purple, crashed: PV.hue.red, "went offline": PV.hue.red, partitioned: PV.hue.orange, rejected: PV.hue.green, lost: PV.hue.sky, late: PV.hue.blue };
PV.faint = (colour, share) => colour + Math.round(share * 255).toString(16).padStart(2, "0");

PV.band = (x, low, high, colour, name) => [
  { x, y: low, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false },
  { x, y: high, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: PV.faint(colour, 0.2), hoverinfo: "skip", name, showlegend: Boolean(name) },
];

// Ticks for nodes: short names, as many as can be read.
PV.nodeTicks = (names, most) => {
  const step = Math.max(1, Math.ceil(names.length / most));
  const isService = i => !/^client /.test(names[i]) && !/^\d/.test(names[i]);
  const first = names.findIndex((_, i) => isService(i)), ends = first < 0 ? names.length : first;
  const chosen = names.map((_, i) => i).filter(i => (i < ends && i % step === 0 && ends - i > step / 2) || isService(i));
  const text = i => names[i].replace("client ", "");
  // Where bars are narrow, the names of services, which stand side by side, are one label.
  const one = step > 1 && first >= 0;
  const shown = one ? chosen.filter(i => i <= first) : chosen;
  return { tickvals: shown, ticktext: shown.map(i => (one && i === first ? names.slice(first).join(",<br>") : text(i))) };
};

PV.bytesAxis = most => {
  const unit = most >= 1e9 ? [1e9, "GB"] : most >= 1e6 ? [1e6, "MB"] : most >= 1e3 ? [1e3, "kB"] : [1, "bytes"];
  return { scale: unit[0], name: unit[1] };
};

PV.runCharts = () => {
  const { data, hue, chart } = PV;
  const rounds = data.rounds;
  const accuracyHead = ["round", "ended at (s)", "mean", "worst", "best", "mean before (no noise)"];
  const accuracyRows = () => rounds.round.map((n, i) => [n, PV.digits(rounds.end_s[i]), ...["after_mean", "after_min", "after_max", "before_mean"].map(what => rounds[`accuracy_${what}`][i]?.toFixed(3))]);

  function accuracy(column, axis, unit) {
    // Rounds that were not measured are left out: a line over holes would break, a band would go astray.
    const known = rounds.round.map((_, i) => i).filter(i => rounds.accuracy_after_mean[i] != null);
    if (!known.length) return { empty: "No accuracy was measured in this run." };
    const pick = name => known.map(i => rounds[name][i]);
    const x = pick(column);
    const shapes = data.target == null ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: data.target, y1: data.target, line: { dash: "dash", width: 1, color: PV.style("--soft") } }];
    const annotations = data.target == null ? [] : [{ xref: "paper", x: 0, y: data.target, text: `target ${data.target}`, showarrow: false, yanchor: "bottom", xanchor: "left", font: { size: 11, color: PV.style("--soft") } }];
    return {
      traces: [
        ...PV.band(x, pick("accuracy_after_min"), pick("accuracy_after_max"), hue.blue, "worst to best client"),
        { x, y: pick("accuracy_before_mean"), connectgaps: true, mode: "lines", name: "before aggregation, no clipping, no noise", line: { color: hue.red, dash: "dot", width: 1.5 }, hovertemplate: `before (no noise), ${unit} %{x:.4~g}: %{y:.3f}<extra></extra>` },
        { x, y: pick("accuracy_after_mean"), mode: "lines+markers", name: "mean", line: { color: hue.blue, width: 2.5 }, marker: { size: 5 }, hovertemplate: `mean, ${unit} %{x:.4~g}: %{y:.3f}<extra></extra>` },
      ],
      layout: { xaxis: axis, yaxis: { title: { text: "accuracy (share correct)" }, range: [0, 1] }, shapes, annotations },
      table: { head: accuracyHead, rows: accuracyRows() },
    };
  }
  chart("accuracy-rounds", narrow => accuracy("round", PV.roundsAxis(rounds.round, narrow), "round"));
  chart("accuracy-time", () => accuracy("end_s", { title: { text: "simulated time (s)" } }, "second"));

  // What the rounds waited for, along their critical paths; without paths, their whole length.
  chart("time-rounds", narrow => {
    if (!rounds.round.length) return { empty: "No whole round was held." };
    const sums = new Map();
    rounds.round.forEach((n, i) => {
      const path = (data.pictures.paths || {})[n] || [["round", 0, null, rounds.start_s[i], rounds.end_s[i]]];
      path.forEach(([what, , , start, end]) => { if (!sums.has(what)) sums.set(what, rounds.round.map(() => 0)); sums.get(what)[i] += end - start; });
    });
    const kinds = [...sums.keys()].sort((a, b) => sums.get(b).reduce((x, y) => x + y, 0) - sums.get(a).reduce((x, y) => x + y, 0));
    const colours = { ...PV.kindColours, train: hue.blue, wait: "#c3c8cf", resend: hue.red, update: hue.orange, handover: hue.purple, round: hue.grey };
    const words = { wait: "waiting for a timer", train: "training", resend: "lost and sent again", round: "round" };
    return {
      traces: kinds.map(kind => ({ type: "bar", x: rounds.round, y: sums.get(kind), customdata: sums.get(kind).map(PV.secondsText), name: words[kind] || `${kind} under way`, marker: { color: colours[kind] }, hovertemplate: `round %{x}, ${words[kind] || kind}: %{customdata}<extra></extra>` })),
      layout: { barmode: "stack", xaxis: PV.roundsAxis(rounds.round, narrow), yaxis: { title: { text: "simulated seconds" } } },
      table: { head: ["round", ...kinds, "length (s)"], rows: rounds.round.map((n, i) => [n, ...kinds.map(kind => sums.get(kind)[i].toFixed(3)), (rounds.end_s[i] - rounds.start_s[i]).toFixed(3)]) },
    };
  });

  chart("load-rounds", narrow => {
    const load = data.load;
    if (!load.most.some(Boolean)) return { empty: "No client sent anything in a round." };
    const axis = PV.bytesAxis(Math.max(...load.most));
    const scaled = column => load[column].map(value => (value == null ? null : value / axis.scale));
    return {
      traces: [
        { x: load.round, y: scaled("most"), mode: "lines+markers", name: "busiest client", line: { color: hue.red, width: 2.5 }, customdata: load.who.map((who, i) => [who, PV.bytesText(load.most[i] ?? 0)]), hovertemplate: "round %{x}: client %{customdata[0]} sent %{customdata[1]}<extra></extra>" },
        { x: load.round, y: scaled("median"), mode: "lines", name: "client in the middle", line: { color: hue.blue, width: 2, dash: "dash" }, customdata: load.median.map(value => PV.bytesText(value ?? 0)), hovertemplate: "round %{x}, median: %{customdata}<extra></extra>" },
      ],
      layout: { showlegend: true, xaxis: PV.roundsAxis(rounds.round, narrow), yaxis: { title: { text: `${axis.name} sent by one client` }, rangemode: "tozero" } },
      table: { head: ["round", "busiest client", "it sent (bytes)", "median (bytes)"], rows: load.round.map((n, i) => [n, load.who[i], load.most[i], load.median[i]]) },
    };
  });

  chart("bytes-rounds", narrow => {
    const kinds = Object.keys(rounds.bytes).filter(kind => rounds.bytes[kind].some(Boolean));
    if (!kinds.length) return { empty: "No bytes were sent in whole rounds." };
    const sums = rounds.round.map((_, i) => kinds.reduce((sum, kind) => sum + rounds.bytes[kind][i], 0));
    const axis = PV.bytesAxis(Math.max(...sums));
    return {
      traces: kinds.map(kind => ({ type: "bar", x: rounds.round, y: rounds.bytes[kind].map(value => value / axis.scale), customdata: rounds.bytes[kind].map(PV.bytesText), name: kind, marker: { color: PV.kindColours[kind] }, hovertemplate: `round %{x}, ${kind}: %{customdata}<extra></extra>` })),
      layout: { barmode: "stack", xaxis: PV.roundsAxis(rounds.round, narrow), yaxis: { title: { text: `${axis.name} sent` } } },
      table: { head: ["round", ...kinds.map(kind => `${kind} (bytes)`), "all (bytes)"], rows: rounds.round.map((n, i) => [n, ...kinds.map(kind => rounds.bytes[kind][i]), sums[i]]) },
    };
  });

  chart("bytes-nodes", narrow => {
    const { bars, histogram } = data.traffic;
    if (histogram) {
      const axis = PV.bytesAxis(histogram.to_bytes[histogram.to_bytes.length - 1]);
      const counted = histogram.clients.filter(Boolean), rare = Math.max(...counted) > 40 * Math.min(...counted);
      const ranges = histogram.clients.map((_, i) => `${PV.bytesText(histogram.from_bytes[i])} to ${PV.bytesText(histogram.to_bytes[i])}`);
      return {
        traces: [{ type: "bar", x: histogram.from_bytes.map((low, i) => (low + histogram.to_bytes[i]) / 2 / axis.scale), y: histogram.clients, customdata: ranges, marker: { color: hue.blue }, hovertemplate: "%{customdata}: %{y} clients<extra></extra>" }],
        // A few leaders beside hundreds of members can be seen on a log scale only.
        layout: { bargap: 0.02, xaxis: { title: { text: `${axis.name} sent and received` } }, yaxis: rare ? { ...PV.logAxis([0.6, Math.max(...histogram.clients)], "clients (log scale)", { text: value => (value < 1 ? "" : String(value)), pad: 0.02 }) } : { title: { text: "clients" } } },
        table: { head: ["bytes", "clients"], rows: histogram.clients.map((count, i) => [ranges[i], count]) },
      };
    }
    const axis = PV.bytesAxis(Math.max(1, ...bars.sent.map((value, i) => value + bars.received[i])));
    const bar = (what, colour) => ({ type: "bar", x: bars.name.map((_, i) => i), text: bars.name, textposition: "none", y: bars[what].map(value => value / axis.scale), customdata: bars[what].map(PV.bytesText), name: what, marker: { color: colour }, hovertemplate: `%{text}, ${what}: %{customdata}<extra></extra>` });
    return {
      traces: [bar("sent", hue.blue), bar("received", hue.orange)],
      layout: { barmode: "stack", bargap: 0.1, xaxis: { title: { text: "node (numbers are clients)" }, ...PV.nodeTicks(bars.name, narrow ? 6 : 12), showgrid: false }, yaxis: { title: { text: axis.name } } },
      table: { head: ["node", "sent (bytes)", "received (bytes)"], rows: bars.name.map((name, i) => [name, bars.sent[i], bars.received[i]]) },
    };
  });

  chart("gap", narrow => {
    if (!rounds.spectral_gap.some(value => value != null)) return { empty: "No round has a known spectral gap." };
    return {
      traces: [{ x: rounds.round, y: rounds.spectral_gap, mode: "lines+markers", line: { color: hue.green, width: 2 }, hovertemplate: "round %{x}: gap %{y:.4f}<extra></extra>" }],
      layout: { height: 220, xaxis: PV.roundsAxis(rounds.round, narrow), yaxis: { title: { text: "spectral gap" }, range: [0, 1.05] } },
      table: { head: ["round", "spectral gap"], rows: rounds.round.map((n, i) => [n, rounds.spectral_gap[i]?.toFixed(6)]) },
    };
  });
};

PV.dropoutCharts = () => {
  const { data, chart } = PV;
  const select = document.getElementById("dropouts-what");
  if (!select) return;
  const first = ["dropout", "missing", "absence"].find(what => Object.keys(data.dropouts.counts[what]).length);
  if (first) select.value = first;
  chart("dropouts-rounds", narrow => {
    const counts = data.dropouts.counts[select.value];
    const reasons = Object.keys(counts);
    const numbers = data.rounds.round;
    const most = Math.max(...numbers.map(n => reasons.reduce((sum, reason) => sum + (counts[reason][n] || 0), 0)));
    return {
      traces: reasons.map(reason => ({ type: "bar", name: reason, x: numbers, y: numbers.map(n => counts[reason][n] || 0), marker: { color: PV.reasonColours[reason] }, hovertemplate: `round %{x}, ${reason}: %{y}<extra></extra>` })),
      layout: { barmode: "stack", showlegend: true, xaxis: PV.roundsAxis(numbers, narrow), yaxis: PV.countAxis(most, select.selectedOptions[0].textContent) },
      table: { head: ["round", ...reasons], rows: numbers.map(n => [n, ...reasons.map(reason => counts[reason][n] || 0)]) },
    };
  });
  chart("dropouts-moments", () => {
    const all = data.dropouts.moments;
    const rows = all.what.map((what, i) => i).filter(i => all.what[i] === select.value && all.after_s[i] != null);
    const reasons = [...new Set(rows.map(i => all.reason[i]))];
    return {
      traces: reasons.map((reason, place) => {
        const own = rows.filter(i => all.reason[i] === reason);
        const spread = own.map((i, k) => place + ((k * 0.618034) % 1 - 0.5) * 0.6);
        return { x: own.map(i => all.after_s[i]), y: spread, customdata: own.map(i => [all.round[i], all.node[i]]), mode: "markers", name: reason, marker: { color: PV.reasonColours[reason], size: 6, opacity: 0.7 }, hovertemplate: `node %{customdata[1]}, round %{customdata[0]}: ${reason} after %{x:.3~g} s<extra></extra>` };
      }),
      layout: { showlegend: false, xaxis: { title: { text: "seconds since the round began" }, rangemode: "tozero" }, yaxis: { tickvals: reasons.map((_, i) => i), ticktext: reasons, range: [-0.6, Math.max(reasons.length, 1) - 0.4] } },
      table: { head: ["round", "node", "reason", "after (s)"], rows: rows.map(i => [all.round[i], all.node[i], all.reason[i], all.after_s[i]]) },
    };
  });
  select.addEventListener("change", () => { PV.draw("dropouts-rounds"); PV.draw("dropouts-moments"); });
};

PV.privacyCharts = () => {
  const { data, hue, chart } = PV;
  const { views, published, spent, budget, seen } = data.privacy;
  chart("epsilon-views", narrow => {
    const known = Object.entries(views).map(([view, value]) => [view, PV.number(value)]);
    const finite = known.filter(([, value]) => Number.isFinite(value) && value > 0);
    const claim = PV.number(published);
    if (!finite.length && !(claim > 0 && Number.isFinite(claim))) return { empty: "No view has a finite epsilon: nothing is proven." };
    const dot = (rows, name, colour, symbol) => ({ x: rows.map(row => row[1]), y: rows.map(row => row[0]), mode: "markers+text", text: rows.map(row => PV.epsilonText(row[1])), textposition: "top center", cliponaxis: false, name, marker: { color: colour, size: 13, symbol }, hovertemplate: `${name}, %{y}: %{x:.3~g}<extra></extra>` });
    const names = known.map(([view]) => view);
    const claims = Number.isFinite(claim) && claim > 0 ? [["claim", claim]] : [];
    return {
      traces: [dot(finite, "rigorous", hue.blue, "circle"), ...(claims.length ? [dot(claims, "published", hue.orange, "diamond")] : [])],
      layout: { showlegend: true, xaxis: PV.logAxis([...finite, ...claims].map(row => row[1]), "epsilon (log scale)", { narrow }), yaxis: { type: "category", categoryorder: "array", categoryarray: [...names.slice().reverse(), ...claims.map(row => row[0])], range: [-0.5, names.length + claims.length - 0.35] } },
      table: { head: ["view", "epsilon", "kind"], rows: [["claim", PV.epsilonText(claim), "published"], ...known.map(([view, value]) => [view, PV.epsilonText(value), "rigorous"])] },
    };
  });

  const burn = (name, colour, log) => chart(`spent-${name}`, narrow => {
    const columns = ["min", "median", "max"].map(what => spent[name][what].map(value => { const one = PV.number(value); return Number.isFinite(one) && (!log || one > 0) ? one : null; }));
    if (!columns[1].some(value => value != null)) return { empty: `No finite ${name} epsilon was charged.` };
    const limit = name === "published" && budget != null;
    const shapes = limit ? [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: budget, y1: budget, line: { dash: "dash", width: 1.5, color: PV.style("--soft") } }] : [];
    const annotations = limit ? [{ xref: "paper", x: 0, y: budget, text: `allowed: ${PV.epsilonText(budget)}`, showarrow: false, xanchor: "left", yanchor: "top", font: { size: 11, color: PV.style("--soft") } }] : [];
    return {
      traces: [...PV.band(spent.round, columns[0], columns[2], colour, "least to most"), { x: spent.round, y: columns[1], mode: "lines+markers", name: "median", line: { color: colour, width: 2.5 }, marker: { size: 5 }, hovertemplate: `round %{x}: median %{y:.3~g} ${name}<extra></extra>` }],
      layout: { shapes, annotations, xaxis: PV.roundsAxis(spent.round, narrow), yaxis: log ? PV.logAxis(columns.flat(), `epsilon, ${name} (log scale)`) : { title: { text: `epsilon, ${name}` }, rangemode: "tozero" } },
      table: { head: ["round", "least", "median", "most"], rows: spent.round.map((n, i) => [n, ...["min", "median", "max"].map(what => PV.epsilonText(PV.number(spent[name][what][i])))]) },
    };
  });
  burn("published", hue.orange, false);
  burn("rigorous", hue.blue, true);
  if (spent.record) burn("record", hue.blue, false);

  chart("seen", narrow => {
    if (!seen.names.length) return { empty: "No update reached another node." };
    return {
      traces: [{ type: "heatmap", x: seen.names.map((_, i) => i), y: seen.names.map((_, i) => i), text: seen.counts.map((row, r) => row.map((count, s) => `${seen.names[r]} received ${count} of ${seen.names[s]}`)), z: seen.counts.map(row => row.map(count => count || null)), colorscale: PV.isDark() ? [[0, "#1d3a52"], [1, "#9fd8ff"]] : [[0, "#dcebf6"], [1, "#003f66"]], hoverongaps: false, ...PV.countBar(Math.max(...seen.counts.flat()), "updates"), hovertemplate: "%{text}<extra></extra>" }],
      layout: { height: 420, xaxis: { title: { text: "sender (numbers are clients)" }, ...PV.nodeTicks(seen.names, narrow ? 5 : 12), showgrid: false, zeroline: false }, yaxis: { title: { text: "receiver" }, ...PV.nodeTicks(seen.names, 12), autorange: "reversed", showgrid: false, zeroline: false } },
      table: { head: ["receiver", "updates received", "distinct senders"], rows: seen.names.map((name, i) => [name, seen.counts[i].reduce((a, b) => a + b, 0), seen.counts[i].filter(Boolean).length]).filter(row => row[1]) },
    };
  });
};
