"""Where nodes stand in a drawing."""

from __future__ import annotations

import numpy as np
import pytest

from p2p.log.log import Log
from scenarios.metrics.communication.roles import Roles
from scenarios.report.data.graph_layout import fixed_places
from scenarios.report.data.node_layout import positions

EDGE = np.array([(0, 1)])


def places(edges: list[tuple[int, int]], clients: int = 9) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Of the clients, if these were the edges of a run."""
    log = Log()
    senders, receivers = np.array(edges).T
    log.graphs.extend(len(edges), round=1, sender=senders, receiver=receivers)
    return np.column_stack(positions(log, Roles(clients, ()), np.arange(clients)))


def test_clients_that_nothing_joins_stay_on_the_circle() -> None:
    """Two stars and a client without edges: springs would let the parts fly apart and shrink to blobs."""
    stars = [(0, other) for other in (1, 2, 3)] + [(4, other) for other in (5, 6, 7)]
    found = places([*stars, (1, 2), (2, 3), (5, 6), (6, 7)])
    assert np.hypot(*found.T) == pytest.approx(np.ones(9))


def test_a_sparse_graph_that_joins_all_is_drawn_by_springs() -> None:
    """A ring with one chord: neighbours stand closer than others."""
    found = places([*((node, (node + 1) % 9) for node in range(9)), (0, 2)])
    apart = np.linalg.norm(found[:, None] - found[None, :], axis=2)
    assert np.abs(found).max() == pytest.approx(1.0)
    assert apart[0, 2] < apart[0, 3]
    assert apart[0, 1] < apart[0, 4]


KINDS = ["torus", "hypercube", "star", "clustered", "hierarchical", "scale_free", "ring"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_that_stays_has_a_place_for_everyone(kind: str) -> None:
    """64 clients in the square, no two at one place."""
    edges = np.array([(node, (node * 7 + 1) % 64) for node in range(64)])
    protocol = {"kind": "gossip", "graph": kind, "redraw": "never"}
    found = fixed_places(protocol, 64, edges)
    if kind == "ring":
        assert found is None
        return
    assert found is not None
    assert np.abs(found).max() <= 1.0 + 1e-9
    apart = np.linalg.norm(found[:, None] - found[None, :], axis=2) + 9 * np.eye(64)
    assert apart.min() > 0.01


def test_clusters_stand_apart() -> None:
    """Everyone is nearer to the middle of its own cluster than to any other; heads face each other."""
    for kind in ("clustered", "hierarchical"):
        found = fixed_places({"kind": "gossip", "graph": {"kind": kind, "clusters": 5}, "redraw": "never"}, 100, EDGE)
        assert found is not None
        cluster = np.arange(100) // 20
        middles = np.array([found[cluster == one].mean(axis=0) for one in range(5)])
        nearest = np.linalg.norm(found[:, None] - middles[None, :], axis=2).argmin(axis=1)
        inner = np.arange(100) % 20 > 0 if kind == "hierarchical" else np.ones(100, dtype=np.bool_)
        assert (nearest == cluster)[inner].all()


def test_a_graph_of_every_round_stays_on_the_circle_unless_one_round_is_drawn() -> None:
    """No layout suits two graphs; one sparse round of many is drawn by springs, parts that fall off around it."""
    ring = np.array([(node, (node + 1) % 90) for node in range(90)])
    protocol = {"kind": "gossip", "graph": "ring", "redraw": "every_round"}
    assert fixed_places(protocol, 100, ring) is None
    found = fixed_places(protocol, 100, ring, one_round=True)
    assert found is not None
    assert np.hypot(*found[90:].T) == pytest.approx(np.ones(10))
    assert np.abs(found[:90]).max() < 0.9
    assert fixed_places({"kind": "rotating_leader"}, 100, ring, one_round=True) is None
