"""Draws the graph of one round."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from scenarios.metrics.communication.round_graphs import figure_rows, graph_words, unreached_members
from scenarios.metrics.headline.number_format import bytes_text, count_text
from scenarios.plots.figure import HUES, new_figure
from scenarios.report.data.message_columns import FATES, collect_message_columns
from scenarios.report.data.node_layout import positions
from scenarios.report.data.node_sample import active_nodes, sample_note, shown_nodes
from scenarios.report.data.run_data import RunData
from scenarios.report.data.timeline_data import MOST_DRAWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from topologies.figures import GraphFigures

_ROLE_HUES = {
    "client": "sky",
    "leader": "red",
    "proxy": "orange",
    "server": "pink",
    "relay": "green",
    "reached no node": "red",
}
_FATE_HUES = {"delivered": "blue", "late": "orange", "lost": "red", "rejected": "pink"}
_FATE_HUES |= {"in_flight": "grey", "not_sent": "ink"}
_UNREACHED = "reached no node"
_IDLE = "no data in this round"
_MANY = 600
_MOST_NAMED = 60


def draw_topology(run_data: RunData, round_number: int, figures: GraphFigures, width_in: float = 7.0) -> Figure:
    """Draws the round's data messages: nodes coloured by role, edges by outcome, line width by bytes.

    Every direction in which an edge was used has an arrow; members whose update reached no other node are crossed out.
    """
    from matplotlib.collections import PathCollection

    log = run_data.log
    nodes = shown_nodes(log, run_data.roles, [], most=MOST_DRAWN)
    place = {int(node): number for number, node in enumerate(nodes)}
    x, y = positions(log, run_data.roles, nodes, run_data.protocol, round_number)
    edges = _edges(run_data, nodes, round_number)
    active = {node for pair in edges for node in pair}
    # Proxy and server stand inside the circle: without data they would only cover edges of others.
    drawn = np.array([node < run_data.roles.clients or node in active for node in nodes.tolist()], dtype=np.bool_)
    figure = new_figure(width_in, width_in + 0.4)
    axes = figure.subplots()
    ends = np.array([[place[pair[0]], place[pair[1]]] for pair in edges], dtype=np.int64).reshape(-1, 2)
    _draw_edges(axes, np.stack([x, y], axis=1), ends, list(edges.values()))
    _draw_nodes(axes, run_data, nodes[drawn], x[drawn], y[drawn], round_number, active)
    total = sum(size for size, _ in edges.values())
    note = sample_note(len(nodes), len(active_nodes(log)))
    among = " between the nodes shown" if note else ""
    amount = f"{count_text(len(edges))} edges, {bytes_text(total)}{among}"
    figure.suptitle(f"{run_data.name}, round {round_number}: {amount}", fontsize=10 if width_in > 5 else 7)
    values = ", ".join(f"{name} {text}" for name, text in figure_rows(figures))
    # As many letters of this size as the figure is wide.
    words = fill(f"{graph_words(run_data.protocol)}: {values}", int(17 * width_in))
    axes.set_title(words, fontsize=min(7, 1 + width_in), pad=14)
    axes.set_axis_off()
    axes.set_aspect("equal")
    # Without nodes there is nothing to explain, and matplotlib would warn.
    if axes.get_legend_handles_labels()[0]:
        # Three of the longest labels fit side by side; constrained layout does not keep a wider legend inside.
        legend = {"ncols": 3 if width_in > 5 else 2, "fontsize": 8 if width_in > 5 else 6, "frameon": False}
        # The note stands beside what it explains.
        title = {"title": fill(note, int(17 * width_in)), "title_fontsize": 7 if width_in > 5 else 5} if note else {}
        made = figure.legend(loc="outside lower center", **legend, **title)
        for handle in made.legend_handles:
            # Large markers would overlap in neighbouring rows, small ones could not be told apart.
            if isinstance(handle, PathCollection):
                handle.set_sizes([34])
    return figure


def _edges(run_data: RunData, nodes: NDArray[np.int64], round_number: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Maps (sender, receiver) to (bytes, best outcome) of the round's data messages."""
    # No reduction: a single round is drawn, and it must be complete.
    columns = collect_message_columns(run_data.log, nodes, most=1 << 40).columns
    rank = {
        FATES.index(fate): place
        for place, fate in enumerate(("delivered", "late", "in_flight", "rejected", "lost", "not_sent"))
    }
    # Unused edges have kind 0 for want of a message, hence the second condition.
    data = (columns["kind"] != records.KIND["control"]) | (columns["fate"] == FATES.index("not_sent"))
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for row in np.flatnonzero(data & (columns["round"] == round_number)).tolist():
        pair = int(columns["sender"][row]), int(columns["receiver"][row])
        size, fate = found.get(pair, (0, int(columns["fate"][row])))
        # An edge whose retransmission arrived counts as delivered.
        best = min(fate, int(columns["fate"][row]), key=rank.__getitem__)
        found[pair] = size + int(columns["size_bytes"][row]), best
    return found


def _draw_edges(axes: Axes, at: NDArray[np.float64], ends: NDArray[np.int64], edges: list[tuple[int, int]]) -> None:
    from matplotlib.collections import LineCollection

    most = max((size for size, _ in edges), default=1) or 1
    crowded = len(edges) > _MANY
    faint = min(0.4, max(0.05, 500 / len(edges))) if crowded else max(0.25, min(0.8, 60 / max(len(edges), 1)))
    for fate, hue in _FATE_HUES.items():
        rows = [row for row, (_, code) in enumerate(edges) if FATES[code] == fate]
        if not rows:
            continue
        widths = [(0.4 + 1.4 * edges[row][0] / most) * (0.5 if crowded else 1.0) for row in rows]
        # The few edges on which something went wrong must stand out among many faint ones.
        strong = fate != "delivered" and len(rows) < _MANY
        lines = LineCollection(
            list(at[ends[rows]]), colors=HUES[hue], linewidths=widths, alpha=0.8 if strong else faint
        )
        axes.add_collection(lines)
        _draw_arrows(axes, at, ends[rows], HUES[hue], alpha=min(1.0, 0.2 + 2 * (0.8 if strong else faint)))
        # An empty line makes the legend entry at full opacity.
        axes.plot([], [], color=HUES[hue], label=f"{fate.replace('_', ' ')} ({len(rows):,})")


def _draw_arrows(axes: Axes, at: NDArray[np.float64], ends: NDArray[np.int64], colour: str, alpha: float) -> None:
    """Draws a small arrowhead on each edge, past its middle: heads hide no nodes, nor those of the way back."""
    if not len(ends):
        return
    start, end = at[ends[:, 0]], at[ends[:, 1]]
    way = end - start
    way /= np.maximum(np.hypot(*way.T), 1e-9)[:, None]
    x, y = (0.38 * start + 0.62 * end).T
    length_in = 0.1 if len(ends) <= _MANY else 0.05
    shaft_in = 0.001
    # All of one length: they show directions, not distances. Head sizes are in widths of the shaft.
    heads: Any = {"headwidth": 0.6 * length_in / shaft_in, "headlength": length_in / shaft_in}
    heads["headaxislength"] = heads["headlength"]
    place: Any = {"angles": "xy", "pivot": "mid", "units": "inches", "width": shaft_in, "zorder": 2}
    axes.quiver(x, y, *way.T, color=colour, alpha=alpha, scale_units="inches", scale=1 / length_in, **place, **heads)


def _draw_nodes(
    axes: Axes,
    run_data: RunData,
    nodes: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    round_number: int,
    active: set[int],
) -> None:
    # A server that leads keeps its own symbol; only clients become `leader`.
    leader: Any = next(
        (record.get("leader") for record in run_data.log.rounds if record["round"] == round_number), None
    )
    roles = [
        "leader" if node == leader and node < run_data.roles.clients else run_data.roles.role(node)
        for node in nodes.tolist()
    ]
    ids = nodes.tolist()
    shapes = {"leader": "*", "proxy": "s", "server": "D", _UNREACHED: "X"}
    unreached = unreached_members(run_data.log, round_number)
    roles = [_UNREACHED if node in unreached else role for node, role in zip(ids, roles, strict=True)]
    # As on the page: clients without data are grey and open; services have their colour, with data or without.
    shown = [_IDLE if role == "client" and node not in active else role for node, role in zip(ids, roles, strict=True)]
    for role in dict.fromkeys(shown):
        rows = [place for place, found in enumerate(shown) if found == role]
        colour = HUES[_ROLE_HUES.get(role, "grey")]
        axes.scatter(
            x[rows],
            y[rows],
            s=min(30.0, 3000 / len(nodes)) if role in ("client", _IDLE) else 90,
            c="white" if role == _IDLE else colour,
            edgecolors=colour,
            marker=shapes.get(role, "o"),
            zorder=3,
            label=role,
        )
    if len(nodes) <= _MOST_NAMED:
        _name_nodes(axes, run_data, nodes, x, y)


def _name_nodes(
    axes: Axes, run_data: RunData, nodes: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> None:
    """Writes each node's number beside its marker, on the side that looks away from the middle."""
    for place, node in enumerate(nodes.tolist()):
        far = max(float(np.hypot(x[place], y[place])), 1e-9)
        # Services stand inside; their names go below their larger markers.
        inside = node >= run_data.roles.clients
        offset = (0.0, -13.0) if inside else (10 * x[place] / far, 10 * y[place] / far)
        axes.annotate(
            run_data.label(node).replace("client ", ""),
            (x[place], y[place]),
            xytext=offset,
            textcoords="offset points",
            fontsize=6,
            ha="center",
            va="center",
        )
