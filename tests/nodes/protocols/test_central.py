"""The baseline with a server, as a story. Sizes and times: see tests/by_hand.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p2p.log import records
from scenarios.composition.simulation import Simulation

Simulate = Callable[..., Simulation]
Story = Callable[..., list[tuple[float, int, str]]]
TWO = ("clients=2", "data.samples=40", "protocol={kind: central, train_per_round: 2, deadline: 60 s}")
PROXY, SERVER = 2, 5


def test_a_round_of_two(simulate: Simulate, story: Story) -> None:
    """No first model is handed out: it comes with every round. Registration ends at 0.215 s, and so does the set-up."""
    simulation = simulate(*TWO)
    expected = [
        (0.215, PROXY, "sends control to 5"),
        (0.315, SERVER, "gets control from 2"),  # invite
        (0.315, SERVER, "sends control to 2"),
        (0.415, PROXY, "gets control from 5"),
        (0.601, PROXY, "sends control to 5"),
        (0.701, SERVER, "gets control from 2"),  # assignment
        # updates 122 bytes
        (2.145, SERVER, "averages 0 1"),
        (2.145, SERVER, "sends control to 2"),
        (2.245, PROXY, "gets control from 5"),
    ]
    for node in (0, 1):
        expected += [
            (0.215, PROXY, f"sends control to {node}"),
            (0.406, node, "gets control from 2"),  # invite, 91 bytes
            (0.406, node, "sends control to 2"),
            (0.601, PROXY, f"gets control from {node}"),  # answer, 95 bytes
            (0.601, PROXY, f"sends control to {node}"),
            (0.701, SERVER, f"sends model to {node}"),
            (0.874, node, "gets control from 2"),  # assignment with one peer, 173 bytes
            (0.923, node, "gets model from 5"),  # 122 bytes
            (1.923, node, f"sends update to {SERVER}"),  # a second of training
            (1.923, node, "sends control to 2"),
            (2.11, PROXY, f"gets control from {node}"),
            (2.145, SERVER, f"gets update from {node}"),
        ]
    assert story(simulation.log, 1) == sorted(expected)
    assert round(simulation.clock.now, 6) == 2.245
    assert simulation.server.collected == []


def test_a_round_costs_as_many_models_as_members(simulate: Simulate) -> None:
    """m models, m updates, and nothing else but control."""
    simulation = simulate("clients=6", "data.samples=120", "rounds=3", "protocol={kind: central, train_per_round: 4}")
    messages = simulation.log.messages
    for kind in records.KINDS[1:]:
        assert (messages["kind"] == records.KIND[kind]).sum() == (12 if kind in ("update", "model") else 0)


def test_a_late_update_is_left_out(simulate: Simulate, dropouts: Callable[..., Any]) -> None:
    """The server averages what is there at its deadline (1.3 s after its assignment at 0.701)."""
    simulation = simulate(*TWO, "protocol.deadline=1.3 s")
    assert len(simulation.log.aggregations) == 0
    assert [row[1:] for row in dropouts(simulation.log)] == [
        ("dropout", 0, -1, "late"),
        ("dropout", 1, -1, "late"),
    ]
