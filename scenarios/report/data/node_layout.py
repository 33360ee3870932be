"""Node positions in a drawing, fixed for a run so that rounds can be compared visually."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.log import Log
from scenarios.metrics.communication.roles import Roles
from scenarios.report.data.graph_layout import circle, fixed_places

_MOST_SPRINGS = 200
_SPARSE_DEGREE = 4
_SERVICE_RADIUS = 0.28
_BELOW = -1.1
Place = NDArray[np.float64]


def positions(
    log: Log,
    roles: Roles,
    nodes: NDArray[np.int64],
    protocol: Mapping[str, Any] | None = None,
    round_number: int | None = None,
) -> tuple[Place, Place]:
    """Returns x and y of `nodes` in [-1, 1].

    Clients are placed as suits a graph that stays, else on a circle by id, or by a spring layout if a sparse graph
    connects them all. Services are placed inside the circle, or in a row below a layout that fills the square.

    Args:
        protocol: the section of the resolved scenario.
        round_number: the only round to be drawn; None if places must suit all rounds.
    """
    clients = nodes[nodes < roles.clients]
    x, y = np.zeros(len(nodes)), np.zeros(len(nodes))
    edges = _pairs(log, roles.clients, round_number)
    places = fixed_places(protocol or {}, roles.clients, edges, one_round=round_number is not None)
    services = len(nodes) - len(clients)
    if places is not None:
        x[: len(clients)], y[: len(clients)] = places[clients].T
        x[len(clients) :], y[len(clients) :] = np.linspace(-0.3, 0.3, services) if services > 1 else 0.0, _BELOW
        return x, y
    x[: len(clients)], y[: len(clients)] = _clients(edges[np.isin(edges, clients).all(axis=1)], clients)
    # A single service is placed in the centre.
    radius = 0.0 if services == 1 else _SERVICE_RADIUS
    x[len(clients) :], y[len(clients) :] = circle(services, radius).T
    return x, y


def _pairs(log: Log, clients: int, round_number: int | None) -> NDArray[np.int64]:
    """Returns the pairs of clients with an edge in a round, or in any."""
    ends = np.stack([log.graphs["sender"], log.graphs["receiver"]], axis=1).astype(np.int64)
    if round_number is not None:
        ends = ends[log.graphs["round"] == round_number]
    # Direction and repetition over rounds do not matter for a layout.
    return np.unique(np.sort(ends[(ends < clients).all(axis=1)], axis=1), axis=0)


def _clients(edges: NDArray[np.int64], clients: NDArray[np.int64]) -> tuple[Place, Place]:
    crowded = len(clients) > _MOST_SPRINGS or 2 * len(edges) > _SPARSE_DEGREE * len(clients)
    if crowded or len(edges) <= len(clients):
        return _on_circle(clients)
    return _springs(clients, edges) or _on_circle(clients)


def _on_circle(clients: NDArray[np.int64]) -> tuple[Place, Place]:
    x, y = circle(len(clients)).T
    return x, y


def _springs(clients: NDArray[np.int64], edges: NDArray[np.int64]) -> tuple[Place, Place] | None:
    """Returns a spring layout, or None if the clients are not connected.

    Unconnected components would drift apart and shrink the rest of the drawing.
    """
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(clients.tolist())
    graph.add_edges_from(edges.tolist())
    if not nx.is_connected(graph):
        return None
    start = dict(zip(clients.tolist(), circle(len(clients)), strict=True))
    # A fixed start and seed: the same run gives the same picture.
    placed = nx.spring_layout(graph, pos=start, seed=0, iterations=100, method="force")
    places = np.array([placed[node] for node in clients.tolist()])
    # Both axes by one factor: distances keep their proportions.
    places = (places - places.mean(axis=0)) / max(float(np.abs(places - places.mean(axis=0)).max()), 1e-9)
    return places[:, 0], places[:, 1]
