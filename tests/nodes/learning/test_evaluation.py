"""When and whom evaluation looks at."""

from __future__ import annotations

import numpy as np

from nodes.learning.evaluation import Evaluation


def test_the_last_round_is_always_due() -> None:
    """`every: 0` means only at the end."""
    assert [number for number in range(1, 8) if Evaluation(every=0).due(number, 7)] == [7]
    assert [number for number in range(1, 8) if Evaluation(every=3).due(number, 7)] == [3, 6, 7]


def test_all_clients_or_a_fixed_few() -> None:
    """The few are distinct, in order, and the same for the same seed."""
    assert np.array_equal(Evaluation().chosen(4, 1), np.arange(4))
    assert np.array_equal(Evaluation(clients=9).chosen(4, 1), np.arange(4))
    few = Evaluation(clients=5).chosen(100, 1)
    assert len(np.unique(few)) == 5
    assert np.array_equal(few, np.sort(few))
    assert np.array_equal(few, Evaluation(clients=5).chosen(100, 1))
