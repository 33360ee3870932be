// The epsilon sandwich of an audit.
PV.auditChart = () => {
  const { hue, chart } = PV;
  const sandwich = PV.data.sandwich;
  chart("epsilon-sandwich", narrow => {
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
      layout: { showlegend: true, height: 120 + 52 * rows.length, xaxis: PV.logAxis([least, ...rows.flatMap(row => [row.measured, row.proved, row.published])], "epsilon (log scale)", { narrow, pad: 0.05 }), yaxis: { type: "category", categoryorder: "array", categoryarray: names.slice().reverse(), automargin: true } },
      table: { head: ["view", "measured, at least", "by", "can reach", "proved, at most", "published", "refuted"], rows: rows.map(row => [row.view, PV.epsilonText(row.measured), row.by, PV.epsilonText(PV.number(row.ceiling)), PV.epsilonText(row.proved), row.published == null || Number.isNaN(row.published) ? "-" : PV.epsilonText(row.published), row.proof_refuted ? "proof" : refuted(row) ? "published" : "no"]) },
    };
  });
};
