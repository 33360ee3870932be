"""Clients: one release a round, charged once, never beyond the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from p2p.log import records
from scenarios.composition.simulation import Simulation

Simulate = Callable[..., Simulation]
SIX = ("clients=6", "data.samples=120", "rounds=4", "protocol.train_per_round=4")
NOISY = "privacy={clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: 2.0}}"
PROTOCOLS = pytest.mark.parametrize(
    "protocol",
    [
        "protocol.deadline=60 s",
        "protocol={kind: rotating_leader, train_per_round: 4}",
        "protocol={kind: central, train_per_round: 4}",
    ],
)


@PROTOCOLS
def test_each_release_is_charged_once(simulate: Simulate, protocol: str) -> None:
    """However many receivers and retransmissions: one row for each member and round, numbered in order."""
    simulation = simulate(*SIX, protocol, NOISY, "network.loss=0.2")
    table = simulation.log.privacy
    charged = list(zip(table["round"].tolist(), table["node"].tolist(), strict=True))
    assert len(charged) == len(set(charged))
    for node in range(6):
        own = table["node"] == node
        assert table["release"][own].tolist() == list(range(1, np.count_nonzero(own) + 1))
        assert (np.diff(table["mu2"][own]) > 0).all()


@PROTOCOLS
def test_every_update_that_is_sent_has_been_paid_for(simulate: Simulate, protocol: str) -> None:
    """No privacy is spent that is not recorded, and none recorded that was not spent."""
    simulation = simulate(*SIX, protocol, NOISY)
    messages, table = simulation.log.messages, simulation.log.privacy
    updates = messages["kind"] == records.KIND["update"]
    sent = set(zip(messages["round"][updates].tolist(), messages["sender"][updates].tolist(), strict=True))
    used = set(
        zip(
            simulation.log.aggregations["round"].tolist(),
            simulation.log.aggregations["contributor"].tolist(),
            strict=True,
        )
    )
    assert set(zip(table["round"].tolist(), table["node"].tolist(), strict=True)) == sent | used


def test_a_leader_that_leaves_itself_out_pays_nothing(simulate: Simulate) -> None:
    """Its update goes nowhere."""
    simulation = simulate(*SIX, "protocol={kind: rotating_leader, train_per_round: 4, include_own: false}", NOISY)
    table = simulation.log.privacy
    for number in range(1, 5):
        assert simulation.records[number].leader not in table["node"][table["round"] == number]


def test_training_takes_records_over_speed(simulate: Simulate) -> None:
    """epochs * records / speed, whole nanoseconds, one span per member and round."""
    simulation = simulate(*SIX, "training.epochs=3", "compute=16 samples/s")
    spans = simulation.log.spans
    rows = spans["name"] == records.SPAN["train"]
    assert np.count_nonzero(rows) == 16
    assert (spans["end_s"] - spans["start_s"])[rows] == pytest.approx(3 * 20 / 16)


def test_a_client_declines_without_budget_and_says_so(simulate: Simulate, dropouts: Callable[..., Any]) -> None:
    """It may still hold the current model and hand it on; it just does not train."""
    budget = "privacy.budget={by: rigorous, epsilon: 6.0}"
    protocol = "protocol={kind: rotating_leader, train_per_round: 2}"
    simulation = simulate("clients=6", "data.samples=120", "rounds=30", protocol, NOISY, budget)
    spent: set[int] = set()
    for row in dropouts(simulation.log):
        number, what, node, _, reason = row
        assert (what, reason) == ("absence", "budget")
        spent.add(node)
        if number in simulation.records:
            assert node not in simulation.records[number].cohort
    assert len(spent) >= 5
    assert "have budget left" in simulation.proxy.outcome.stopped_because


@pytest.mark.slow
@pytest.mark.parametrize("start", ["0 s", "100 ms", "300 ms"])
def test_a_damaged_set_up_is_repeated(prepare: Callable[..., Simulation], start: str) -> None:
    """Refused registrations, assignments or first models leave no client outside for ever."""
    faults = f"faults=[{{kind: corrupt, probability: 1.0, start: {start}, end: 9 s}}]"
    simulation = prepare(faults, "protocol.invite_timeout=60 s")
    simulation.run()
    assert simulation.proxy.outcome.rounds_completed == simulation.scenario.rounds
