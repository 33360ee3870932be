"""The table of regions."""

from __future__ import annotations

import numpy as np

from p2p.links.latency_regions import REGIONS, one_way_s


def test_the_table_is_square_symmetric_and_plausible() -> None:
    """Every pair has a time, equal in both directions, and no path is faster than light in glass could be."""
    table = one_way_s(list(REGIONS), 0.0)
    assert table.shape == (10, 10)
    np.testing.assert_array_equal(table, table.T)
    assert np.all(np.diagonal(table) == 0)
    assert table[~np.eye(10, dtype=bool)].min() >= 0.004
    assert table.max() < 0.2


def test_a_choice_of_regions_keeps_their_times() -> None:
    """Order and neighbours do not change what a pair takes: Tokyo to Osaka was 9 ms there and back."""
    assert one_way_s(["jp-east", "jp-west"], 0.001).tolist() == [[0.001, 0.0045], [0.0045, 0.001]]
