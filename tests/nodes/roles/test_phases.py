"""Training and the wait for the common sending time: one sleep, two spans, and what a crash leaves of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from p2p.log import records
from scenarios.composition.simulation import Simulation

Simulate = Callable[..., Simulation]
BARRIER = (
    "protocol={kind: gossip, train_per_round: 3, exchange_with: 2, deadline: 60 s, send_at: barrier}",
    "compute={kind: lognormal, median: 20 samples/s, sigma: 0.5}",
)


def spans_of(simulation: Simulation, node: int) -> dict[str, tuple[float, float]]:
    """The training and the idle time of a node in round 1."""
    table = simulation.log.spans
    rows = zip(*(table[name].tolist() for name in ("node", "round", "name", "start_s", "end_s")), strict=True)
    return {
        records.SPANS[code]: (start_s, end_s)
        for who, number, code, start_s, end_s in rows
        if who == node and number == 1 and records.SPANS[code] in ("train", "idle")
    }


def first_idle(simulation: Simulation) -> int:
    """A node that has to wait for the others."""
    return next(node for node in range(3) if "idle" in spans_of(simulation, node))


def test_the_wait_begins_where_the_training_ends(simulate: Simulate) -> None:
    """Both are logged, and they touch."""
    whole = simulate(*BARRIER)
    spans = spans_of(whole, first_idle(whole))
    assert spans["train"][1] == spans["idle"][0]
    assert spans["idle"][0] < spans["idle"][1]


@pytest.mark.parametrize(("phase", "left"), [("idle", ["train"]), ("train", [])])
def test_a_crash_leaves_the_training_that_was_over(simulate: Simulate, phase: str, left: list[str]) -> None:
    """A node that crashes while it waits has trained; one that crashes while it trains has not."""
    whole = simulate(*BARRIER)
    node = first_idle(whole)
    at_s = sum(spans_of(whole, node)[phase]) / 2
    crashed = simulate(*BARRIER, f"faults=[{{kind: crash, who: {node}, start: {at_s} s, end: {at_s + 200} s}}]")
    assert list(spans_of(crashed, node)) == left
    assert all(spans_of(crashed, node)[name] == spans_of(whole, node)[name] for name in left)
