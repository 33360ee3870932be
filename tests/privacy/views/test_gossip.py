"""The calculator's views of gossip: averaging of noise added once, and paths of releases."""

from __future__ import annotations

import numpy as np
import pytest

from privacy.views.gossip import linear_view, taint_count


def test_second_message_reveals_the_far_node() -> None:
    """On a path of four, two steps show the middle node's neighbour fully, though ratios sum to a third."""
    path = np.array([[2, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 2]]) / 3.0
    view = linear_view(path, 2, 2, 0)
    assert view.loss_fraction == pytest.approx(1.0)
    assert view.squared_ratio_sum == pytest.approx(1 / 3)
    assert linear_view(path, 1, 2, 0).loss_fraction == pytest.approx(0.0)
    assert linear_view(path, 0, 2, 0).loss_fraction == 0.0


def test_taint_travels_forward_in_time_only() -> None:
    """What reaches a node after it sent does not travel with what it sent."""
    assert taint_count(0, 2, [[(0, 1), (1, 2)]]) == (0, 0)
    assert taint_count(0, 2, [[(0, 1)], [(1, 2)]]) == (0, 1)
    assert taint_count(0, 1, [[(0, 1)], [(0, 1)]]) == (2, 2)
