// What an adversary learns: the epsilon sandwich of an audit, and the curves of attacks.
PV.adversaryCharts = () => {
  const { data, hue, chart, cycle } = PV;
  const { sandwich, attacks } = data.adversaries;
  chart("epsilon-sandwich", () => {
    const rows = sandwich.map(row => ({ ...row, measured: PV.number(row.measured), proved: PV.number(row.proved), published: PV.number(row.published) }));
    const shown = value => Number.isFinite(value) && value > 0;
    const least = Math.min(1, ...rows.flatMap(row => [row.measured, row.proved, row.published]).filter(shown)) / 2;
    // A measured 0 stands at the left edge of the log scale.
    const at = value => (shown(value) ? value : least);
    const names = rows.map(row => row.view);
    const dots = (name, key, colour, symbol, wanted) => {
      const some = rows.filter(wanted);
      return { x: some.map(row => at(row[key])), y: some.map(row => row.view), mode: "markers", name, marker: { color: colour, size: 13, symbol }, text: some.map(row => PV.epsilonText(row[key])), hovertemplate: `${name}, %{y}: %{text}<extra></extra>` };
    };
    const bars = rows.filter(row => Number.isFinite(row.proved)).map(row => ({ x: [at(row.measured), at(row.proved)], y: [row.view, row.view], mode: "lines", line: { color: PV.faint(hue.blue, 0.35), width: 12 }, showlegend: false, hoverinfo: "skip" }));
    const refuted = row => row.published_refuted;
    return {
      traces: [
        ...bars,
        dots("measured, at least", "measured", hue.green, "triangle-right", () => true),
        dots("proved, at most", "proved", hue.blue, "triangle-left", row => Number.isFinite(row.proved)),
        dots("published claim", "published", hue.orange, "diamond", row => shown(row.published) && !refuted(row)),
        dots("published claim, REFUTED", "published", hue.red, "x", row => shown(row.published) && refuted(row)),
      ].filter(trace => trace.x.length),
      layout: { showlegend: true, height: 120 + 52 * rows.length, xaxis: { type: "log", title: { text: "epsilon (log scale)" }, exponentformat: "power" }, yaxis: { type: "category", categoryorder: "array", categoryarray: names.slice().reverse(), automargin: true } },
      table: { head: ["view", "measured, at least", "by", "can reach", "proved, at most", "published", "refuted"], rows: rows.map(row => [row.view, PV.epsilonText(row.measured), row.by, PV.epsilonText(PV.number(row.ceiling)), PV.epsilonText(row.proved), row.published == null || Number.isNaN(row.published) ? "-" : PV.epsilonText(row.published), row.proof_refuted ? "proof" : refuted(row) ? "published" : "no"]) },
    };
  });
  for (const attack of attacks) for (const curve of attack.curves) chart(curve.id, () => {
    const names = Object.keys(curve.lines);
    const points = names.flatMap(name => curve.lines[name][0].map((x, i) => [name, x, curve.lines[name][1][i]]));
    return {
      traces: names.map((name, i) => ({ x: curve.lines[name][0], y: curve.lines[name][1], mode: curve.lines[name][0].length > 60 ? "lines" : "lines+markers", name, line: { color: name === "chance" ? hue.grey : cycle[i % cycle.length], width: 2, dash: name === "chance" ? "dash" : i >= cycle.length ? "dot" : "solid" }, marker: { size: 5 }, hovertemplate: `${name}: %{x:.4~g}, %{y:.3f}<extra></extra>` })),
      layout: { showlegend: true, height: 380, xaxis: { title: { text: curve.x } }, yaxis: { title: { text: curve.y }, rangemode: "tozero" }, legend: { orientation: "h", y: -0.25 } },
      table: { head: ["line", curve.x, curve.y], rows: points },
    };
  });
};
