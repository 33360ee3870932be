"""Where nodes stand in a drawing."""

from __future__ import annotations

import numpy as np
import pytest

from p2p.log.log import Log
from scenarios.metrics.roles import Roles
from scenarios.report.node_layout import positions


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
