"""Draws rounds as a timeline: one row per node, spans as bars, the critical path as a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from scenarios.metrics.communication.critical_path import CriticalStep, critical_paths
from scenarios.plots.figure import HUES, new_figure
from scenarios.report.data.node_sample import active_nodes, sample_note, shown_nodes
from scenarios.report.data.outages import down_rows, events_of_rounds, happened_s
from scenarios.report.data.run_data import RunData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SPAN_HUES = {
    "invite": HUES["pink"],
    "train": HUES["blue"],
    "share": HUES["yellow"],
    "send": HUES["orange"],
    "wait": "#c3c8cf",
    "aggregate": HUES["green"],
    "broadcast": HUES["sky"],
    "idle": "#e3e5e8",
    "down": "#444444",
}
_THIN = {"send": (-0.45, 0.3), "broadcast": (-0.45, 0.3), "aggregate": (0.15, 0.3)}
"""Offset and height of the spans that may overlap others of their node."""
_MOST_LABELS = 60


def draw_timeline(
    run_data: RunData, rounds: Sequence[int], nodes: NDArray[np.int64] | None = None, width_in: float = 9.0
) -> Figure:
    """Draws the spans of `rounds` for the given nodes, or for all nodes that took part."""
    log = run_data.log
    paths = [
        path for record, path in critical_paths(log, run_data.roles.node("proxy")) if record["round"] in set(rounds)
    ]
    wanted = shown_nodes(log, run_data.roles, paths) if nodes is None else nodes
    spans = _spans(run_data)
    rows = np.flatnonzero(np.isin(spans["round"], rounds) & np.isin(spans["node"], wanted))
    on_path = [node for path in paths for step in path for node in (step.node, step.receiver) if node is not None]
    # Nodes on a critical path get a row even without a span.
    order = np.union1d(spans["node"][rows], np.intersect1d(on_path, wanted)).astype(np.int64)
    row_of = {int(node): number for number, node in enumerate(order)}
    start_s = min((float(record["start_s"]) for record in log.rounds if record["round"] in set(rounds)), default=0.0)
    # In a paper a row is lower, so that the picture fits on a page.
    row_in = 0.11 * min(1.0, 0.3 + 0.7 * width_in / 9)
    figure = new_figure(width_in, float(np.clip(1.6 + len(order) * row_in, 0.33 * width_in, 1.55 * width_in)))
    axes = figure.subplots()
    _draw_spans(axes, spans, rows, row_of, start_s)
    _draw_paths(axes, paths, row_of, start_s)
    _draw_drops(axes, run_data, rounds, row_of, start_s)
    _draw_events(axes, run_data, rounds, row_of, start_s)
    _finish(axes, run_data, order, rounds, sample_note(len(wanted), len(active_nodes(log))) if nodes is None else "")
    return figure


def _spans(run_data: RunData) -> dict[str, NDArray[Any]]:
    """Returns all spans; an outage is in every round that it falls into, cut to it."""
    spans, down = run_data.log.spans, down_rows(run_data)
    kept = spans["name"] != records.SPAN["down"]
    return {name: np.concatenate([spans[name][kept], down[name]]) for name in down}


def _draw_spans(
    axes: Axes, spans: dict[str, NDArray[Any]], rows: NDArray[np.int64], row_of: dict[int, int], start_s: float
) -> None:
    # Thin bars last, so that they are drawn on top.
    for code, name in sorted(enumerate(records.SPANS), key=lambda pair: pair[1] in _THIN):
        own = rows[spans["name"][rows] == code]
        if not len(own):
            continue
        low, height = _THIN.get(name, (-0.45, 0.9))
        middle = np.array([row_of[int(node)] for node in spans["node"][own]]) + low + height / 2
        begin_s = spans["start_s"][own] - start_s
        axes.barh(
            middle,
            spans["end_s"][own] - spans["start_s"][own],
            left=begin_s,
            height=height,
            color=_SPAN_HUES[name],
            label=name,
            linewidth=0,
        )


def _draw_paths(axes: Axes, paths: Sequence[Sequence[CriticalStep]], row_of: dict[int, int], start_s: float) -> None:
    for number, path in enumerate(paths):
        known = [step for step in path if step.node in row_of and (step.receiver is None or step.receiver in row_of)]
        # Two points for each step: its time at the node where it began, and at the one where it ends.
        x = [at_s - start_s for step in known for at_s in (step.start_s, step.end_s)]
        y = [row_of[node] for step in known for node in (step.node, _end(step))]
        # One legend entry for all paths.
        label = None if number else "critical path"
        axes.plot(x, y, color=HUES["red"], linewidth=1.6, marker="o", markersize=2.5, label=label)


def _end(step: CriticalStep) -> int:
    """Returns the node at which a step ends; a lost message does not leave its sender."""
    return step.node if step.receiver is None or step.what == "resend" else step.receiver


def _draw_drops(axes: Axes, run_data: RunData, rounds: Sequence[int], row_of: dict[int, int], start_s: float) -> None:
    table, at_s = run_data.log.dropouts, happened_s(run_data)
    for what, marker in (("dropout", "X"), ("absence", "o")):
        rows = np.flatnonzero((table["what"] == records.WHAT[what]) & np.isin(table["round"], rounds))
        rows = rows[np.isin(table["node"][rows], list(row_of))]
        if len(rows):
            y = [row_of[int(node)] for node in table["node"][rows]]
            # With a light edge or middle, to be seen on the dark bar of a node that is down.
            face, edge = ("black", "white") if what == "dropout" else ("white", "black")
            axes.scatter(
                at_s[rows] - start_s,
                y,
                s=34 if what == "dropout" else 16,
                marker=marker,
                c=face,
                edgecolors=edge,
                linewidths=0.7,
                zorder=5,
                label=what,
            )
    ends_s = [record["end_s"] for record in run_data.log.rounds if record["round"] in set(rounds)]
    for begin_s, end_s, kind, _ in run_data.faults:
        # Only faults that overlap the drawn rounds; a crash is told at its node's row.
        if ends_s and begin_s <= max(ends_s) and end_s >= start_s and kind != "crash":
            axes.axvspan(
                max(0.0, begin_s - start_s),
                min(end_s, max(ends_s)) - start_s,
                color=HUES["red"],
                alpha=0.12,
                linewidth=0,
            )


def _draw_events(axes: Axes, run_data: RunData, rounds: Sequence[int], row_of: dict[int, int], start_s: float) -> None:
    """Labels leaders that go and those elected for them, and ends the axis with the last round."""
    ends_s = [float(record["end_s"]) for record in run_data.log.rounds if record["round"] in set(rounds)]
    last_s = max(ends_s, default=start_s) - start_s
    for number, node, at_s, text in events_of_rounds(run_data):
        if number in rounds and node in row_of:
            left = at_s - start_s > 0.6 * last_s
            axes.annotate(
                text,
                (at_s - start_s, row_of[node]),
                xytext=(-12 if left else 12, 12 if row_of[node] > 1 else -12),
                textcoords="offset points",
                ha="right" if left else "left",
                fontsize=8,
                bbox={"boxstyle": "round,pad=0.2", "fc": "white", "ec": HUES["red"], "lw": 0.8},
                arrowprops={"arrowstyle": "->", "color": HUES["red"]},
                zorder=6,
            )
    if last_s > 0:
        axes.set_xlim(0, last_s * 1.01)


def _finish(axes: Axes, run_data: RunData, order: NDArray[np.int64], rounds: Sequence[int], note: str) -> None:
    step = max(1, -(-len(order) // _MOST_LABELS))
    # Services keep their labels even if clients' labels are thinned out.
    served = [int(node) >= run_data.roles.clients for node in order]
    # A client's label just above that of a service would touch it.
    free = [step == 1 or not any(served[row : row + 3]) for row in range(len(order))]
    shown = [row for row in range(len(order)) if served[row] or (row % step == 0 and free[row])]
    axes.set_yticks(shown, [run_data.label(int(order[row])) for row in shown], fontsize=6)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlabel(f"simulated seconds since round {rounds[0]} began")
    which = f"round {rounds[0]}" if len(rounds) == 1 else f"rounds {rounds[0]} to {rounds[-1]}"
    axes.set_title(f"{run_data.name}, {which}" + (f"\n{note}" if note else ""), fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    wide = axes.figure.get_figwidth() > 5  # type: ignore[union-attr]
    size = 8 if wide else 6
    axes.tick_params(axis="x", labelsize=size)
    axes.xaxis.label.set_fontsize(size)
    axes.figure.legend(loc="outside lower center", ncols=6 if wide else 3, fontsize=size, frameon=False)
