// Curves of attacks: each line has a name, a colour and a dash of its own.
PV.attackCharts = () => {
  for (const curve of PV.data.attacks || []) {
    const lines = Object.entries(curve.lines);
    // Grey is the colour of chance alone.
    const colours = PV.cycle.filter(colour => colour !== PV.hue.grey);
    const tallest = Math.max(...lines.map(([name]) => name.length)) > 24 ? 2 : 3;
    PV.chart(curve.chart, narrow => ({
      traces: lines.map(([name, [x, y]], i) => ({
        x, y, name, mode: x.length > 12 || name === "chance" ? "lines" : "lines+markers",
        line: { color: name === "chance" ? PV.hue.grey : colours[i % colours.length], dash: name === "chance" ? "dash" : PV.dashes[Math.floor(i / colours.length) % PV.dashes.length], width: 2 },
        hovertemplate: `%{x:.3~g}: %{y:.3~g}<extra>${name.replaceAll("<", "&lt;")}</extra>`,
      })),
      // Every row of the legend takes from the curves.
      layout: { height: 300 + 19 * Math.ceil(lines.length / (narrow ? 1 : tallest)), showlegend: true, xaxis: { title: { text: curve.x } }, yaxis: { title: { text: curve.y } } },
      table: { head: ["line", curve.x, curve.y], rows: lines.flatMap(([name, [x, y]]) => x.map((value, i) => [name, PV.digits(value), y[i] == null ? null : PV.digits(PV.number(y[i]))])) },
    }));
  }
};
