"""Node positions in a drawing, fixed for a run so that rounds can be compared visually."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from p2p.log.log import Log
from scenarios.metrics.roles import Roles

_MOST_SPRINGS = 200
_SPARSE_DEGREE = 4
_SERVICE_RADIUS = 0.28
Place = NDArray[np.float64]


def positions(log: Log, roles: Roles, nodes: NDArray[np.int64]) -> tuple[Place, Place]:
    """Returns x and y of `nodes` in [-1, 1].

    Clients are placed on a circle by id, or by a spring layout if a sparse graph connects them all. Services are
    placed inside the circle.
    """
    clients = nodes[nodes < roles.clients]
    x, y = np.zeros(len(nodes)), np.zeros(len(nodes))
    x[: len(clients)], y[: len(clients)] = _clients(log, clients)
    services = len(nodes) - len(clients)
    # A single service is placed in the centre.
    radius = 0.0 if services == 1 else _SERVICE_RADIUS
    x[len(clients) :], y[len(clients) :] = _circle(services, radius)
    return x, y


def _clients(log: Log, clients: NDArray[np.int64]) -> tuple[Place, Place]:
    inside = np.isin(log.graphs["sender"], clients) & np.isin(log.graphs["receiver"], clients)
    ends = np.stack([log.graphs["sender"][inside], log.graphs["receiver"][inside]], axis=1)
    # Direction and repetition over rounds do not matter for a layout.
    edges = np.unique(np.sort(ends, axis=1), axis=0)
    crowded = len(clients) > _MOST_SPRINGS or 2 * len(edges) > _SPARSE_DEGREE * len(clients)
    if crowded or len(edges) <= len(clients):
        return _circle(len(clients), 1.0)
    return _springs(clients, edges) or _circle(len(clients), 1.0)


def _circle(count: int, radius: float) -> tuple[Place, Place]:
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    return radius * np.cos(angle), radius * np.sin(angle)


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
    start = dict(zip(clients.tolist(), np.stack(_circle(len(clients), 1.0), axis=1), strict=True))
    # A fixed start and seed: the same run gives the same picture.
    placed = nx.spring_layout(graph, pos=start, seed=0, iterations=100, method="force")
    places = np.array([placed[node] for node in clients.tolist()])
    places = (places - places.mean(axis=0)) / max(float(np.abs(places - places.mean(axis=0)).max()), 1e-9)
    return places[:, 0], places[:, 1]
