"""Balanced accuracy and its interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from privacy.attacks.membership.rates import balanced_accuracy
from privacy.audits.exact_limits import clopper_pearson


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (517, 1000)])
def test_the_exact_interval_is_scipys(successes: int, trials: int) -> None:
    """Two-sided Clopper-Pearson."""
    expected = binomtest(successes, trials).proportion_ci(0.95, "exact")
    assert clopper_pearson(successes, trials, 0.95) == pytest.approx((expected.low, expected.high))


def test_balanced_accuracy_of_unequal_classes() -> None:
    """9 of 10 members and 1 of 2 non-members."""
    member = np.array([True] * 10 + [False] * 2)
    guessed = np.array([True] * 9 + [False] + [True, False])
    found = balanced_accuracy(guessed, member)
    assert found.value == pytest.approx(0.7)
    assert 0.0 <= found.low < 0.7 < found.high <= 1.0


def test_few_right_guesses_leave_much_open() -> None:
    """Four of four are no proof; a bootstrap would say 1 to 1."""
    member = np.array([True, True, False, False])
    found = balanced_accuracy(member, member)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low < 0.5


@pytest.mark.slow
def test_the_interval_covers_what_it_says() -> None:
    """In 2,000 repetitions with true rates 0.7 and 0.6 the interval covers 0.65 at least 94% of the time."""
    rng = np.random.default_rng(0)
    member = np.arange(60) < 30
    covered = 0
    for _ in range(2000):
        guessed = np.where(member, rng.random(60) < 0.7, rng.random(60) >= 0.6)
        found = balanced_accuracy(guessed, member)
        covered += found.low <= 0.65 <= found.high
    assert covered / 2000 > 0.94
