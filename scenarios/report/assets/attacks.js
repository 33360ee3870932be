// Curves of attacks: each line has a name, a colour and a dash of its own.
PV.attackCharts = () => {
  for (const curve of PV.data.attacks || []) {
    const lines = Object.entries(curve.lines);
    PV.chart(curve.chart, () => ({
      traces: lines.map(([name, [x, y]], i) => ({
        x, y, name, mode: x.length > 12 ? "lines" : "lines+markers",
        line: { color: name === "chance" ? PV.hue.grey : PV.cycle[i % PV.cycle.length], dash: name === "chance" ? "dash" : PV.dashes[Math.floor(i / PV.cycle.length) % PV.dashes.length], width: 2 },
        hovertemplate: `%{x:.3~g}: %{y:.3~g}<extra>${name.replaceAll("<", "&lt;")}</extra>`,
      })),
      layout: { height: 380, showlegend: true, xaxis: { title: { text: curve.x } }, yaxis: { title: { text: curve.y } }, margin: { t: 30 } },
      table: { head: ["line", curve.x, curve.y], rows: lines.flatMap(([name, [x, y]]) => x.map((value, i) => [name, PV.digits(value), y[i] == null ? null : PV.digits(PV.number(y[i]))])) },
    }));
  }
};
