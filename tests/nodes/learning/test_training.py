"""The learning-rate schedule and the count of steps."""

from __future__ import annotations

import pytest

from nodes.learning.training import Training


def test_the_rate_stays_without_decay() -> None:
    """The default schedule is constant."""
    assert [Training(learning_rate=0.2).rate(number) for number in (1, 2, 50)] == [0.2, 0.2, 0.2]


def test_the_rate_decays_from_the_second_round_on() -> None:
    """Round 1 has the full rate."""
    training = Training(learning_rate=0.1, decay=0.5)
    assert [training.rate(number) for number in (1, 2, 3)] == pytest.approx([0.1, 0.05, 0.025])


def test_decay_can_end() -> None:
    """0.1 decaying by 0.96 for 20 rounds, then constant."""
    training = Training(learning_rate=0.1, decay=0.96, decay_rounds=20)
    assert training.rate(21) == pytest.approx(0.1 * 0.96**20)
    assert training.rate(52) == training.rate(21)


@pytest.mark.parametrize(
    ("rate", "decay", "times", "end"),
    [(0.1, 0.96, 20, 0.0442), (0.0025, 0.78, 9, 0.000267), (0.1, 0.78, 9, 0.0107)],
    ids=["LDP-FL", "LCDP-FL, 100 clients", "LCDP-FL, 1,000 clients"],
)
def test_the_papers_schedules_end_as_printed(rate: float, decay: float, times: int, end: float) -> None:
    """The printed end rates need nine decays where ten rounds are printed: round 1 has the full rate."""
    training = Training(learning_rate=rate, decay=decay, decay_rounds=times)
    assert training.rate(1) == rate
    assert training.rate(times + 1) == training.rate(54) == pytest.approx(end, rel=5e-3)
    assert training.rate(times) > 1.01 * training.rate(times + 1)


def test_all_records_are_one_step() -> None:
    """Whatever the client's size, an epoch is one step."""
    training = Training(epochs=3, batch_size="all")
    assert [training.steps(records) for records in (1, 10, 5000)] == [3, 3, 3]


@pytest.mark.parametrize(("records", "steps"), [(1, 3), (10, 3), (11, 6)])
def test_steps_count_short_batches(records: int, steps: int) -> None:
    """The last batch of an epoch may be short."""
    assert Training(epochs=3, batch_size=10).steps(records) == steps
