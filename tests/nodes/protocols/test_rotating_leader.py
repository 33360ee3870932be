"""Rounds with a rotating leader as stories computed by hand. Sizes and times: see tests/by_hand.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from p2p.log import records
from scenarios.composition.simulation import Simulation

Simulate = Callable[..., Simulation]
Story = Callable[..., list[tuple[float, int, str]]]
FOUR = ("clients=4", "data.samples=80", "protocol={kind: rotating_leader, train_per_round: 4, deadline: 60 s}")


def split_roles(simulation: Simulation, round_number: int) -> tuple[int, list[int]]:
    """The leader of a round and the other members, in order."""
    record = simulation.records[round_number]
    return record.leader, [node for node in record.cohort.tolist() if node != record.leader]


def test_a_round_of_four_with_ideal_links(simulate: Simulate, story: Story, spans: Callable[..., Any]) -> None:
    """The set-up and the invitation take 1.110 s, as in gossip."""
    simulation = simulate(*FOUR)
    leader, others = split_roles(simulation, 1)
    proxy = 4
    expected = [
        (1.449, leader, "gets control from 4"),  # assignment with three peers, 239 bytes
        # trained at 2.449; the updates are there at 2.605
        (2.605, leader, "averages 0 1 2 3"),
        # asks the proxy to commit it: 119 bytes there, 95 bytes back
        (2.605, leader, "sends control to 4"),
        (2.824, proxy, f"gets control from {leader}"),
        (2.824, proxy, f"sends control to {leader}"),
        (3.019, leader, "gets control from 4"),
        (3.019, leader, "sends control to 4"),
        (3.206, proxy, f"gets control from {leader}"),
    ]
    for node in range(4):
        expected += [
            (0.724, proxy, f"sends control to {node}"),
            (0.915, node, "gets control from 4"),
            (0.915, node, "sends control to 4"),
            (1.11, proxy, f"gets control from {node}"),
            (1.11, proxy, f"sends control to {node}"),
        ]
    for node in others:
        expected += [
            (1.383, node, "gets control from 4"),  # assignment with one peer, 173 bytes
            (2.383, node, f"sends update to {leader}"),  # one second of training
            (2.605, leader, f"gets update from {node}"),  # 122 bytes
            (3.019, leader, f"sends model to {node}"),
            (3.241, node, f"gets model from {leader}"),
            (3.241, node, "sends control to 4"),
            (3.428, proxy, f"gets control from {node}"),
        ]
    assert story(simulation.log, 1) == sorted(expected)
    assert spans(simulation.log, 1) == sorted(
        [
            (leader, "invite", 0.915, 1.449),
            (leader, "train", 1.449, 2.449),
            (leader, "wait", 2.449, 2.605),
            (leader, "aggregate", 2.605, 3.019),
            (leader, "broadcast", 3.019, 3.141),
        ]
        + [
            row
            for node in others
            for row in (
                (node, "invite", 0.915, 1.383),
                (node, "train", 1.383, 2.383),
                (node, "send", 2.383, 2.505),
                (node, "wait", 2.383, 3.241),
            )
        ]
    )


def test_a_round_of_four_with_queues(simulate: Simulate, story: Story) -> None:
    """`fifo`: the leader's downlink takes the updates one by one, its uplink sends the models one by one.

    The set-up takes 0.073 s more than with ideal links (see the gossip story), so members train until t = 2.456.
    """
    simulation = simulate(*FOUR, "network.sharing=fifo")
    leader, others = split_roles(simulation, 1)
    sent_s = 2.456
    # First bytes are all there at t+0.1; by sender: arrivals t+0.222, +0.344, +0.466 (0.122 s each).
    expected = [(sent_s, node, f"sends update to {leader}") for node in others]
    expected += [
        (round(sent_s + 0.222 + 0.122 * place, 6), leader, f"gets update from {node}")
        for place, node in enumerate(others)
    ]
    averaged_s = sent_s + 0.466
    expected.append((round(averaged_s, 6), leader, "averages 0 1 2 3"))
    # The request to commit takes 0.219 s and the answer 0.195 s. Models leave one after the other, 0.122 s each, and
    # are there 0.1 s after they have left.
    committed_s = averaged_s + 0.219 + 0.195
    for place, node in enumerate(others):
        expected.append((round(committed_s, 6), leader, f"sends model to {node}"))
        expected.append((round(committed_s + 0.122 * (place + 1) + 0.1, 6), node, f"gets model from {leader}"))
    assert story(simulation.log, 1, ["update", "model"]) == sorted(expected)
    # The last member's Done (0.187 s) ends the round; the leader's own had to wait for its three models.
    assert simulation.log.rounds[0]["end_s"] == pytest.approx(committed_s + 3 * 0.122 + 0.1 + 0.187)


def test_stale_members_get_the_model_from_the_last_leader_first(
    simulate: Simulate, story: Story, message_rows: Callable[..., list[dict[str, Any]]]
) -> None:
    """A client that was left out of a round is served before it trains, as kind `handover`."""
    simulation = simulate(
        "clients=6", "data.samples=120", "rounds=5", "protocol={kind: rotating_leader, train_per_round: 3}"
    )
    served = 0
    model_of = dict.fromkeys(range(6), 0)  # the round of the model each one holds
    for number in range(1, 6):
        record = simulation.records[number]
        holder = simulation.records[number - 1].leader if number > 1 else None
        stale = [node for node in record.cohort.tolist() if number > 1 and model_of[node] < number - 1]
        rows = message_rows(simulation.log, kind="handover", round=number)
        assert sorted((row["sender"], row["receiver"]) for row in rows) == [(holder, node) for node in stale]
        assert all(row["used"] for row in rows)
        for row in rows:
            trained = [
                start_s
                for node, name, start_s in zip(
                    simulation.log.spans["node"],
                    simulation.log.spans["name"],
                    simulation.log.spans["start_s"],
                    strict=True,
                )
                if node == row["receiver"] and name == records.SPAN["train"] and start_s >= row["sent_s"]
            ]
            assert min(trained) >= row["arrived_s"]
        served += len(rows)
        model_of.update(dict.fromkeys(record.cohort.tolist(), number))
    assert served > 0


def test_a_last_leader_outside_the_cohort_only_hands_over(simulate: Simulate) -> None:
    """It gets an address in the new round, serves, and neither trains nor sends an update."""
    simulation = simulate(
        "clients=6", "data.samples=120", "rounds=6", "protocol={kind: rotating_leader, train_per_round: 2}"
    )
    messages, spans = simulation.log.messages, simulation.log.spans
    outside = 0
    for row in np.flatnonzero(messages["kind"] == records.KIND["handover"]):
        sender, number = messages["sender"][row], messages["round"][row]
        record = simulation.records[int(number)]
        if sender not in record.cohort:
            outside += 1
            assert int(sender) in record.addresses
            assert not ((spans["node"] == sender) & (spans["round"] == number) & (spans["name"] == 1)).any()
            assert not (
                (messages["sender"] == sender)
                & (messages["round"] == number)
                & (messages["kind"] == records.KIND["update"])
            ).any()
    assert outside > 0


def test_newcomers_stay_stale_when_asked(simulate: Simulate) -> None:
    """As published: no newcomer is served."""
    protocol = "protocol={kind: rotating_leader, train_per_round: 3, newcomers: stale}"
    simulation = simulate("clients=6", "data.samples=120", "rounds=4", protocol)
    assert not (simulation.log.messages["kind"] == records.KIND["handover"]).any()
    assert simulation.proxy.outcome.rounds_completed == 4


def test_a_round_costs_as_many_models_as_updates(simulate: Simulate) -> None:
    """m - 1 of each, every round."""
    protocol = "protocol={kind: rotating_leader, train_per_round: 4}"
    simulation = simulate("clients=6", "data.samples=120", "rounds=4", protocol)
    messages = simulation.log.messages
    for number in range(1, 5):
        for kind in ("update", "model"):
            rows = (messages["kind"] == records.KIND[kind]) & (messages["round"] == number)
            assert np.count_nonzero(rows) == 3
            assert messages["used"][rows].all()


def test_the_last_leader_gives_the_final_model(simulate: Simulate) -> None:
    """By default the newest aggregate is collected."""
    simulation = simulate(*FOUR, "rounds=3")
    assert simulation.proxy.outcome.collected_from == [simulation.records[3].leader]


def test_a_leader_without_its_own_training_still_averages(simulate: Simulate, story: Story) -> None:
    """A leader too slow for the deadline averages the others' updates; followers too slow send none."""
    protocol = "protocol={kind: rotating_leader, train_per_round: 4, deadline: 10 s}"
    simulation = simulate("clients=4", "data.samples=80", protocol, "rounds=1")
    leader, others = split_roles(simulation, 1)
    slow = simulate("clients=4", "data.samples=80", protocol, "rounds=1", "compute=1 samples/s")
    assert len(slow.log.aggregations) == 0
    assert slow.proxy.outcome.rounds_completed == 1
    from dataclasses import replace

    from scenarios.build import build

    mixed = build(simulation.scenario)
    mixed.clients[leader].profile = replace(mixed.clients[leader].profile, train_s=30.0)
    mixed.run()
    (averaged,) = [what for _, node, what in story(mixed.log, 1, []) if node == leader]
    assert averaged == "averages " + " ".join(map(str, others))


def test_leaders_do_not_repeat_before_all_have_led(simulate: Simulate) -> None:
    """With full participation and `repeat_leaders: false` four rounds have four leaders; by default they repeat."""
    rule = "protocol={kind: rotating_leader, train_per_round: 4, deadline: 60 s, repeat_leaders: false}"
    led = [record.leader for record in simulate(*FOUR[:2], rule, "rounds=8").records.values()]
    assert sorted(led[:4]) == sorted(led[4:]) == [0, 1, 2, 3]
    plain = [record.leader for record in simulate(*FOUR, "rounds=8").records.values()]
    assert len(set(plain[:4])) < 4


def test_an_elected_leader_has_led_its_round(simulate: Simulate) -> None:
    """A leader that was lost before its model was committed leads a later round; its successor does not."""
    rule = "protocol={kind: rotating_leader, train_per_round: 4, deadline: 60 s, repeat_leaders: false}"
    crash = "faults=[{kind: crash, who: leader, round: 1, phase: broadcast, lasts: 90 s}]"
    lost = simulate(*FOUR[:2], rule, "rounds=1").records[1].leader
    led = [record.leader for record in simulate(*FOUR[:2], rule, "rounds=4", crash).records.values()]
    assert led[0] != lost
    assert sorted(led) == [0, 1, 2, 3]
