"""Figures of a graph: size, degrees, parts, diameter and spectral gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from topologies.edge_arrays import Edges, Ids, is_symmetric, ordered
from topologies.mixing import metropolis_weights, spectral_gap, uniform_weights

MOST_SEARCHES, FEW_SEARCHES = 2000, 20
"""Up to this many nodes a search starts at each; in a larger part at few, and its diameter is bounded from below."""
MOST_FOR_GAP = 20_000
"""The spectral gap of a larger part is not computed: the iteration may take minutes where a graph mixes slowly."""


@dataclass(frozen=True, slots=True)
class GraphFigures:
    """Figures of one graph.

    Attributes:
        edges: directed edges, or pairs if `directed` is false.
        degree_min, degree_mean, degree_max: out-degree; in an undirected graph the number of neighbours.
        parts: sets of nodes without any edge to the rest, single nodes included.
        largest: nodes of the largest part.
        alone: nodes without an edge.
        diameter: longest shortest way in the largest part, along the edges' direction; inf if some node of the part
            is not reached from another one.
        diameter_exact: whether every node was searched from; otherwise `diameter` is a lower bound.
        gap: spectral gap of averaging in the largest part; None if it was not computed.
    """

    nodes: int
    edges: int
    directed: bool
    degree_min: int
    degree_mean: float
    degree_max: int
    parts: int
    largest: int
    alone: int
    diameter: float
    diameter_exact: bool
    gap: float | None


def graph_figures(
    members: Ids, edges: Edges, mixing: Literal["uniform", "metropolis"] = "uniform", include_own: bool = True
) -> GraphFigures:
    """Computes the figures of a graph over `members`."""
    nodes = np.sort(members)
    n = len(nodes)
    rows = ordered(np.searchsorted(nodes, edges))
    degree = np.bincount(rows[:, 0], minlength=n)
    labels = parts_of(rows, n)
    sizes = np.bincount(labels, minlength=1)
    inside = np.flatnonzero(labels == sizes.argmax())
    # An edge never leaves its part, so the sender alone decides.
    part = np.searchsorted(inside, rows[np.isin(rows[:, 0], inside)])
    directed = not is_symmetric(rows)
    searches = len(inside) if len(inside) <= MOST_SEARCHES else FEW_SEARCHES
    return GraphFigures(
        nodes=n,
        edges=len(rows) if directed else len(rows) // 2,
        directed=directed,
        degree_min=int(degree.min(initial=n)) if n else 0,
        degree_mean=len(rows) / max(n, 1),
        degree_max=int(degree.max(initial=0)),
        parts=len(sizes) if n else 0,
        largest=len(inside),
        # Both ends counted: in a directed graph a node that only receives is not alone.
        alone=int(np.sum(np.bincount(rows.ravel(), minlength=n) == 0)),
        diameter=_diameter(part, len(inside), searches),
        diameter_exact=searches == len(inside),
        gap=_gap(part, len(inside), mixing, include_own),
    )


def parts_of(edges: Edges, n: int) -> Ids:
    """Returns the part of each of 0..n-1: nodes that edges connect, whatever their direction, are in one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    adjacency = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    labels: Ids = connected_components(adjacency.tocsr(), directed=True, connection="weak")[1].astype(np.int64)
    return labels


def _diameter(edges: Edges, n: int, searches: int) -> float:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    if not len(edges):
        return 0.0
    adjacency = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    # In blocks: the distances of all pairs at once would take n^2 numbers.
    step = max(1, 4_000_000 // n)
    longest = 0.0
    for start in range(0, searches, step):
        indices = np.arange(start, min(start + step, searches))
        longest = max(longest, float(dijkstra(adjacency, indices=indices, unweighted=True).max()))
    return longest


def _gap(edges: Edges, n: int, mixing: str, include_own: bool) -> float | None:
    if n > MOST_FOR_GAP:
        return None
    if n < 2:
        return 1.0  # a single node agrees with itself
    weights = metropolis_weights(edges, n) if mixing == "metropolis" else uniform_weights(edges, n, include_own)
    try:
        # Digits beyond are those of the solver, and would differ between machines.
        return float(np.clip(round(spectral_gap(weights), 9), 0.0, 1.0))
    except ValueError:
        return None
