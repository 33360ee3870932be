"""Where the clients of a fixed graph stand: a circle, a grid, clusters apart, a projected cube, or springs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topologies.edge_arrays import blocks
from topologies.figures import parts_of
from topologies.named_graphs import torus_rows

Places = NDArray[np.float64]

MOST_SPRINGS = 1000
"""Springs between more nodes take many seconds."""
_FEW_ON_CIRCLE = 60
_SPARSE_DEGREE = 12
_BY_SPRINGS = ("erdos_renyi", "expander", "scale_free", "file", "networkx")


def fixed_places(
    protocol: Mapping[str, Any], clients: int, edges: NDArray[np.int64], one_round: bool = False
) -> Places | None:
    """Returns the places of clients 0..clients-1 in the square [-1, 1]^2; None for the circle.

    Only a graph that stays has places of its own: if members change places in every round, no layout suits two rounds.
    A single round of many members is drawn by springs if it is sparse; its chords would fill a circle.

    Args:
        protocol: the section of the resolved scenario.
        edges: all pairs of clients that were connected in the rounds to be drawn.
        one_round: whether only one round is to be drawn.
    """
    graph = protocol.get("graph")
    keys = graph if isinstance(graph, Mapping) else {"kind": graph}
    redraw = protocol.get("redraw", "every_round")
    if protocol.get("kind") != "gossip" or clients < 2:
        return None
    if redraw == "every_round":
        sparse = 0 < len(edges) <= _SPARSE_DEGREE * clients / 2
        many = _FEW_ON_CIRCLE < clients <= MOST_SPRINGS
        return spring_places(clients, edges) if one_round and sparse and many else None
    kind = keys.get("kind")
    if kind == "torus" and torus_rows(clients) >= 3:
        return torus_places(clients)
    if kind == "hypercube":
        return cube_places(clients)
    if kind == "star":
        # The centre of a star is its first member.
        return np.concatenate([np.zeros((1, 2)), circle(clients - 1)])
    if kind in ("clustered", "hierarchical"):
        return cluster_places(clients, int(keys.get("clusters") or 4), heads=kind == "hierarchical")
    if kind in _BY_SPRINGS and clients <= MOST_SPRINGS and len(edges):
        return spring_places(clients, edges)
    return None


def circle(count: int, radius: float = 1.0) -> Places:
    """Returns places on a circle, clockwise from the top."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def torus_places(n: int) -> Places:
    """Returns a bent grid: on a straight one the edges that close a row would lie on those of the row."""
    rows = torus_rows(n)
    columns = n // rows
    row, column = np.divmod(np.arange(n), columns)
    x, y = 2 * column / (columns - 1) - 1, 1 - 2 * row / (rows - 1)
    # Rows and columns bow by almost half their distance, so that the closing edges run between them.
    bow_x, bow_y = (0.9 / (count - 1) for count in (columns, rows))
    return _scaled(np.column_stack([x + bow_x * (1 - y**2), y + bow_y * (1 - x**2)]))


def cube_places(n: int) -> Places:
    """Returns a projection of the cube in which every dimension has a direction and a length of its own."""
    dimensions = max(1, (n - 1).bit_length())
    digits = (np.arange(n)[:, None] >> np.arange(dimensions)) & 1
    # Half a turn for all dimensions: opposite directions would be one line.
    angle = np.pi * np.arange(dimensions) / dimensions
    # Equal lengths would put several corners on one place.
    length = 1.0 + 0.35 * np.arange(dimensions) / dimensions
    return _scaled((digits - 0.5) @ (length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])))


def cluster_places(n: int, clusters: int, heads: bool) -> Places:
    """Returns clusters as discs around a circle; a head stands at the inner side of its cluster."""
    clusters = max(1, min(clusters, n))
    centres = circle(clusters, 0.72)
    # Discs of neighbouring clusters must not touch.
    radius = min(0.27, 0.72 * np.sin(np.pi / clusters) * 0.8) if clusters > 1 else 0.9
    places = np.empty((n, 2))
    for centre, block in zip(centres, blocks(n, clusters), strict=True):
        size = block.stop - block.start
        places[block] = centre + radius * _disc(size)
        if heads:
            places[block.start] = centre * 0.45
            places[block.start + 1 : block.stop] = centre + radius * _disc(size - 1)
    return places


def spring_places(n: int, edges: NDArray[np.int64]) -> Places:
    """Returns a spring layout of the largest part, and all other nodes on a circle around it."""
    import networkx as nx

    label = parts_of(edges, n)
    inside = np.flatnonzero(label == np.bincount(label).argmax())
    outside = np.setdiff1d(np.arange(n), inside)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(inside.tolist())
    graph.add_edges_from(edges[np.isin(edges[:, 0], inside)].tolist())
    start = dict(zip(inside.tolist(), circle(len(inside)), strict=True))
    # A fixed start and seed: the same run gives the same picture.
    placed = nx.spring_layout(graph, pos=start, seed=0, iterations=60, k=1.6 / np.sqrt(len(inside)), method="force")
    places = np.empty((n, 2))
    places[inside] = _scaled(np.array([placed[node] for node in inside.tolist()])) * (0.85 if len(outside) else 1.0)
    places[outside] = circle(len(outside))
    return places


def _disc(count: int) -> Places:
    """Returns places spread evenly over the unit disc, by the golden angle."""
    number = np.arange(count)
    # The root keeps the density even: area grows with the square of the radius.
    radius = np.sqrt((number + 0.5) / max(count, 1))
    angle = number * np.pi * (3 - np.sqrt(5))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _scaled(places: Places) -> Places:
    # The middle of the extent, not the mean, so that the drawing fills its square.
    middle = places - (places.max(axis=0) + places.min(axis=0)) / 2
    scaled: Places = middle / max(float(np.abs(middle).max()), 1e-9)
    return scaled
