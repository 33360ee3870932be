// Several runs on the same axes; and the start of everything.
PV.comparison = () => {
  const { data, chart } = PV;
  const runs = data.runs;
  const longest = runs.map(run => run.rounds.round).reduce((most, one) => (one.length > most.length ? one : most), []);
  // Earlier lines are wider: where runs agree to the last digit, all of them are seen.
  const line = (run, i, x) => ({ x, y: run.rounds.accuracy_after_mean, connectgaps: true, name: run.label.replace(/</g, "&lt;"), mode: "lines+markers", line: { color: PV.cycle[i % PV.cycle.length], dash: PV.dashes[Math.floor(i / PV.cycle.length) % 4], width: 2 + Math.min(3, runs.length - 1 - i) }, marker: { size: 5 + 1.5 * Math.min(3, runs.length - 1 - i), symbol: i % 8 } });
  const over = (name, column, title, text) => chart(name, narrow => {
    const isBytes = column === "bytes_so_far";
    const known = runs.map((run, i) => [run, i]).filter(([run]) => run.rounds.accuracy_after_mean.some(value => value != null));
    if (!known.length) return { empty: "None of these runs measured accuracy." };
    const ends = known.map(([run]) => run.rounds[column][run.rounds[column].length - 1]);
    const axis = isBytes ? PV.bytesAxis(Math.max(...ends)) : { scale: 1, name: title };
    // Runs whose costs lie far apart need a log scale to be seen at all.
    const log = isBytes && Math.max(...ends) > 8 * Math.min(...ends);
    return {
      traces: known.map(([run, i]) => ({ ...line(run, i, run.rounds[column].map(value => value / axis.scale)), customdata: run.rounds[column].map(text), hovertemplate: "%{fullData.name}, %{customdata}: %{y:.3f}<extra></extra>" })),
      layout: { showlegend: true, xaxis: log ? PV.logAxis(known.flatMap(([run]) => run.rounds[column].map(value => value / axis.scale)), `${axis.name} sent by all nodes (log scale)`, { narrow, text: PV.digits, pad: 0.05 }) : column === "round" ? PV.roundsAxis(longest, narrow) : { title: { text: isBytes ? `${axis.name} sent by all nodes` : title } }, yaxis: { title: { text: "accuracy (share correct)" }, range: [0, 1] } },
      table: { head: ["run", title, "mean accuracy"], rows: known.flatMap(([run]) => run.rounds[column].map((x, k) => [run.label, x, run.rounds.accuracy_after_mean[k]?.toFixed(3)])) },
    };
  });
  over("compare-rounds", "round", "round", value => `round ${value}`);
  over("compare-time", "end_s", "simulated time (s)", PV.secondsText);
  over("compare-bytes", "bytes_so_far", "bytes sent by all nodes", PV.bytesText);

  const perRound = (name, title, value, text) => chart(name, narrow => ({
    traces: runs.map((run, i) => ({ ...line(run, i, run.rounds.round), y: run.rounds.round.map((_, k) => value(run, k)), customdata: run.rounds.round.map((_, k) => text(value(run, k))), hovertemplate: "%{fullData.name}, round %{x}: %{customdata}<extra></extra>" })),
    layout: { showlegend: true, xaxis: PV.roundsAxis(longest, narrow), yaxis: { title: { text: title }, rangemode: "tozero" } },
    table: { head: ["run", "round", title], rows: runs.flatMap(run => run.rounds.round.map((n, k) => [run.label, n, value(run, k)])) },
  }));
  const sent = (run, k) => Object.values(run.rounds.bytes).reduce((sum, kind) => sum + kind[k], 0);
  const bytes = PV.bytesAxis(Math.max(1, ...runs.flatMap(run => run.rounds.round.map((_, k) => sent(run, k)))));
  perRound("compare-round-bytes", `${bytes.name} sent by all nodes`, (run, k) => sent(run, k) / bytes.scale, value => PV.bytesText(value * bytes.scale));
  perRound("compare-round-seconds", "simulated seconds", (run, k) => run.rounds.end_s[k] - run.rounds.start_s[k], PV.secondsText);

  const slider = document.getElementById("cost-target");
  if (!slider) return;
  const reached = run => {
    const target = Number(slider.value);
    const i = run.rounds.accuracy_after_mean.findIndex(value => value != null && value >= target);
    return i < 0 ? null : { round: run.rounds.round[i], bytes: run.rounds.bytes_so_far[i], time: run.rounds.end_s[i] };
  };
  const cost = (name, column, scale, unit, text) => chart(name, () => {
    const found = runs.map(reached);
    const most = Math.max(1, ...found.map(one => (one ? one[column] : 0)));
    const axis = scale ? PV.bytesAxis(most) : { scale: 1, name: unit };
    return {
      traces: [{ type: "bar", orientation: "h", y: runs.map(run => run.label.replace(/</g, "&lt;")), x: found.map(one => (one ? one[column] / axis.scale : null)), text: found.map(one => (one ? text(one[column]) : "not reached")), textposition: "auto", ...(PV.isDark() ? { insidetextfont: { color: "#101418" } } : {}), cliponaxis: false, marker: { color: runs.map((_, i) => PV.cycle[i % PV.cycle.length]) }, hovertemplate: "%{y}: %{text}<extra></extra>" }],
      layout: { height: Math.max(180, 90 + runs.length * 42), xaxis: { title: { text: axis.name }, rangemode: "tozero" }, yaxis: { type: "category", autorange: "reversed" } },
      table: { head: ["run", "round", scale ? "bytes" : "seconds"], rows: runs.map((run, i) => [run.label, found[i]?.round, found[i]?.[column]]) },
    };
  });
  cost("cost-bytes", "bytes", true, "bytes", PV.bytesText);
  cost("cost-time", "time", false, "simulated seconds", PV.secondsText);
  const tell = () => {
    document.getElementById("cost-value").textContent = Number(slider.value).toFixed(2);
    const rows = runs.map(run => { const one = reached(run); return one ? [run.label, one.round, PV.secondsText(one.time), PV.bytesText(one.bytes)] : [run.label, "not reached", "-", "-"]; });
    document.getElementById("cost-table").replaceChildren(PV.table(["run", "round", "simulated time", "bytes of all nodes"], rows));
  };
  slider.addEventListener("input", () => { tell(); PV.draw("cost-bytes"); PV.draw("cost-time"); });
  tell();

  const against = (name, key) => chart(name, narrow => {
    const values = runs.map(run => PV.number(run.epsilon[key]));
    const finite = values.filter(value => value != null && Number.isFinite(value) && value > 0);
    if (!finite.length) return { empty: `None of these runs has a finite ${key === "published" ? "published" : "proved"} epsilon.` };
    const edge = Math.max(...finite) * 10;
    const rows = runs.map((run, i) => [run, i, values[i]]).filter(([run, , value]) => value != null && run.accuracy != null);
    return {
      traces: rows.map(([run, i, value]) => ({ x: [Number.isFinite(value) ? value : edge], y: [run.accuracy], name: run.label.replace(/</g, "&lt;"), mode: "markers+text", text: [Number.isFinite(value) ? PV.epsilonText(value) : "no guarantee"], // Neighbours in the list are labelled above and below in turn: alternatives often lie close together.
        textposition: i % 2 ? "bottom center" : "top center", cliponaxis: false, marker: { size: 12, color: PV.cycle[i % PV.cycle.length], symbol: Number.isFinite(value) ? i % 8 : "triangle-right-open" }, hovertemplate: "%{fullData.name}: accuracy %{y:.3f}, epsilon %{text}<extra></extra>" })),
      layout: { showlegend: true, xaxis: PV.logAxis(values.some(value => value === Infinity) ? [...finite, edge] : finite, "epsilon (log scale)", { narrow, pad: 0.3 }), yaxis: { title: { text: "accuracy (share correct)" }, range: [-0.08, 1.12], tickvals: [0, 0.2, 0.4, 0.6, 0.8, 1] } },
      table: { head: ["run", "epsilon", "accuracy"], rows: runs.map((run, i) => [run.label, PV.epsilonText(values[i]), run.accuracy?.toFixed(3)]) },
    };
  });
  against("compare-published", "published");
  against("compare-rigorous", "rigorous_worst_peer");
};

PV.themes();
if (PV.data.page === "comparison") PV.comparison();
else if (PV.data.page === "sweep") PV.sweep();
else { PV.runCharts(); PV.timeline(); PV.topology(); PV.dropoutCharts(); PV.privacyCharts(); PV.attackCharts(); PV.auditChart(); }
PV.next(PV.drawWaiting);
