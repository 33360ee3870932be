"""The interactive charts of a page: the round timeline and the topology of any round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.report import html
from scenarios.report.sections.alt_text import gap_alternative


def timeline(data: Mapping[str, Any]) -> str:
    """Returns the round timeline with its controls."""
    controls = html.controls(
        html.button("round-before", "◀", "Earlier round"),
        '<label>Round <select id="timeline-round"></select></label>',
        html.button("round-after", "▶", "Later round"),
        html.choice("timeline-span", "Show", [("1", "1 round"), ("2", "2 rounds"), ("5", "5 rounds")]),
        html.choice("timeline-order", "Order", [("id", "by node"), ("late", "last to finish first")]),
        '<label>Messages of <select id="timeline-node"></select></label>',
        '<label><input type="checkbox" id="timeline-path" checked> critical path</label>',
        '<span class="group">',
        html.button("zoom-in", "+", "Zoom in"),
        html.button("zoom-out", "-", "Zoom out"),
        html.button("pan-left", "←", "Earlier"),
        html.button("pan-right", "→", "Later"),
        html.button("zoom-reset", "All", "Show all"),
        "</span>",
    )
    chart = html.figure(
        "timeline",
        "What each node did, in simulated seconds since the first shown round began. Thick bars: joining, training, "
        "waiting, down (offline or crashed); thin bars: sending (upper) and aggregating (lower). Orange line: the "
        "critical path, the chain of training, transfers and waits that made the round as long as it was. Crosses: "
        "dropouts; open circles: absences. Drag to zoom, double-click to see all; choose a node (or click its row) to "
        "see its messages as arrows. Keys: + - and arrows.",
        "Timeline of one round: one row per node, spans coloured by name. The fold below lists every span shown.",
        controls,
    )
    hints = _hints(data)
    status = '<p id="timeline-status" class="status" aria-live="polite"></p>'
    return html.section("timeline-section", "Round timeline", hints, chart, status)


def topology(data: Mapping[str, Any]) -> str:
    """Returns the graph of any round with its controls, and the spectral gap."""
    controls = html.controls(
        '<label class="wide">Round <input type="range" id="topology-round" min="0" max="0" step="1" value="0">'
        ' <output id="topology-number"></output></label>',
        html.choice("topology-view", "View", [("graph", "graph"), ("matrix", "matrix")]),
        html.choice(
            "topology-colour",
            "Nodes by",
            [
                ("role", "role"),
                ("traffic", "bytes in this round"),
                ("accuracy", "accuracy when last measured"),
                ("published", "epsilon, published"),
                ("rigorous", "epsilon, rigorous (local)"),
            ],
        ),
        html.choice("topology-edges", "Edges by", [("fate", "outcome"), ("bytes", "bytes")]),
        '<label>Edges of <select id="topology-node"></select></label>',
        '<label><input type="checkbox" id="topology-control"> control messages too</label>',
    )
    chart = html.figure(
        "topology",
        "Who sent data to whom in one round; arrowheads show the direction, width and shade the bytes. Nodes keep "
        "their places from round to round: as suits a graph that stays (a grid for a torus, clusters apart), else "
        "clients by id, clockwise from the top, or near those they talk to where few edges join all of them. Crosses: "
        "members whose update reached no other node. Graphs with many edges are drawn faintly; choose a node (or click "
        "it) to see its own. Bytes are those handed over; arrow keys move the slider.",
        "Graph of one round: an edge where one node sent data to another. The fold below lists them.",
        controls,
    )
    gap = html.figure(
        "gap",
        "Spectral gap of the mixing matrix that each round's aggregations really applied to the largest part of its "
        "cohort that they joined: "
        "1 is instant agreement, 0 is none. Disagreement shrinks by the factor 1 - gap per round in the long run. One "
        "member that was heard and heard nothing is enough for a gap near 0: all others come to agree with it, slowly.",
        gap_alternative(data["rounds"]),
    )
    status = (
        '<p id="topology-status" class="status" aria-live="polite"></p>'
        '<p id="topology-figures" class="status" aria-live="polite"></p>'
    )
    return html.section("topology-section", "Topology", _hints(data, "drawn_note"), chart, status, gap)


def _hints(data: Mapping[str, Any], which: str = "note") -> str:
    pictures = data["pictures"]
    # Both charts are drawn from the same reduced messages, so both carry that note.
    return html.notes(line for line in (pictures[which], pictures["message_note"]) if line)
