"""The graph of a round as planned: its members, edges and figures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.log import Log
from p2p.log.records import SPAN, WHAT
from topologies.figures import GraphFigures, graph_figures

Ids = NDArray[np.int64]


def planned_edges(log: Log, round_number: int) -> Ids:
    """Returns the edges of updates that the proxy planned for a round."""
    rows = log.graphs["round"] == round_number
    return np.column_stack([log.graphs[end][rows] for end in ("sender", "receiver")]).astype(np.int64)


def members_of_round(log: Log, round_number: int) -> Ids:
    """Returns who took part: the ends of edges, and members without any, who trained or are logged as dropouts."""
    trained = (log.spans["round"] == round_number) & (log.spans["name"] == SPAN["train"])
    dropped = (log.dropouts["round"] == round_number) & (log.dropouts["what"] == WHAT["dropout"])
    found = [planned_edges(log, round_number).ravel(), log.spans["node"][trained], log.dropouts["node"][dropped]]
    return np.unique(np.concatenate(found)).astype(np.int64)


def unreached_members(log: Log, round_number: int) -> set[int]:
    """Returns the members whose update entered no other node's aggregation, for whatever reason."""
    dropped = (log.dropouts["round"] == round_number) & (log.dropouts["what"] == WHAT["dropout"])
    return set(log.dropouts["node"][dropped].tolist())


def figures_of_round(log: Log, round_number: int, protocol: Mapping[str, Any]) -> GraphFigures:
    """Returns the figures of a round's graph; `protocol` is the section of the resolved scenario."""
    members, edges = members_of_round(log, round_number), planned_edges(log, round_number)
    mixing: Any = protocol.get("mixing", "uniform")
    own = protocol.get("include_own", True) is not False
    found = graph_figures(members, edges, "metropolis" if mixing == "metropolis" else "uniform", own)
    # A leader's or server's mean becomes everyone's model, whatever the edges of updates look like.
    led = protocol.get("kind") in ("rotating_leader", "central")
    return dataclasses.replace(found, gap=1.0) if led else found


def figure_rows(figures: GraphFigures) -> Iterator[tuple[str, str]]:
    """Yields the figures as pairs of a name and a text."""
    yield "nodes", f"{figures.nodes:,}"
    yield "edges", f"{figures.edges:,} {'directed' if figures.directed else 'undirected'}"
    degrees = f"{figures.degree_min} min, {figures.degree_mean:.3g} mean, {figures.degree_max} max"
    yield ("sends to" if figures.directed else "neighbours"), degrees
    yield "parts", f"{figures.parts:,}{_largest(figures)}"
    # Along the direction of edges: a directed graph in one part may still have unreachable nodes.
    longest = "infinite (not every node is reached)" if math.isinf(figures.diameter) else f"{figures.diameter:.0f}"
    yield "diameter", longest if figures.diameter_exact else f"at least {longest}"
    where = " in the largest part" if figures.parts > 1 else ""
    yield "spectral gap", "not computed" if figures.gap is None else f"{figures.gap:.4g}{where}"


def _largest(figures: GraphFigures) -> str:
    if figures.parts < 2:
        return ""
    alone = f", {figures.alone:,} without an edge" if figures.alone else ""
    return f" (largest: {figures.largest:,} nodes{alone})"


def graph_words(protocol: Mapping[str, Any]) -> str:
    """Returns the kind of a run's graphs and their redraw in words."""
    if protocol.get("kind") == "rotating_leader":
        return "members to their leader"
    if protocol.get("kind") == "central":
        return "members to the server"
    words = [_kind(protocol.get("graph", "random_regular")), "redrawn", _kind(protocol.get("redraw", "every_round"))]
    return " ".join(words).replace("_", " ")


def _kind(part: Any) -> str:
    return str(part.get("kind", "?") if isinstance(part, Mapping) else part)
