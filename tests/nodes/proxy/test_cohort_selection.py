"""Who trains: a simple random sample, or the first to answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.proxy.cohort_selection import choose_cohort

JOINED = st.lists(st.integers(0, 99), min_size=1, max_size=30, unique=True)


def answers(nodes: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Who answered, in the order of their coming."""
    return np.array(nodes, dtype=np.int64)


@pytest.mark.slow
@given(JOINED, st.data())
def test_uniform_does_not_depend_on_the_order_of_answers(nodes: list[int], data: st.DataObject) -> None:
    """A sorted sample without repetition of those who joined, the same for any order."""
    size = data.draw(st.integers(1, len(nodes)))
    chosen = choose_cohort(answers(nodes), size, "uniform", 1, 1)
    assert chosen.tolist() == choose_cohort(answers(nodes[::-1]), size, "uniform", 1, 1).tolist()
    assert len(set(chosen.tolist())) == size
    assert set(chosen.tolist()) <= set(nodes)
    assert (np.diff(chosen) > 0).all()


@pytest.mark.slow
@given(JOINED, st.data())
def test_first_come_takes_the_first(nodes: list[int], data: st.DataObject) -> None:
    """In the order of answers, sorted afterwards."""
    size = data.draw(st.integers(1, len(nodes)))
    assert choose_cohort(answers(nodes), size, "first_come", 1, 1).tolist() == sorted(nodes[:size])


@pytest.mark.slow
def test_uniform_is_uniform_over_rounds() -> None:
    """Everyone is drawn about equally often: 2000 rounds of 3 in 10, within five standard deviations."""
    counts = np.zeros(10)
    for number in range(2000):
        counts[choose_cohort(answers(list(range(10))), 3, "uniform", 7, number)] += 1
    assert (abs(counts - 600) < 5 * np.sqrt(2000 * 0.3 * 0.7)).all()
