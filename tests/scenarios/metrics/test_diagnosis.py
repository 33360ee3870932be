"""What is wrong with a run is told with its cause, its figures and a cure; nothing is told of a run that went well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p2p.log.log import Log
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import load_scenario
from scenarios.metrics.communication.critical_path import critical_paths
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.diagnosis import diagnose, findings_text
from scenarios.metrics.findings import Finding
from scenarios.metrics.limits import limits_of

LEADER = (
    "protocol={kind: rotating_leader, train_per_round: 3, deadline: 10 s, model_deadline: 4 s, leader_timeout: 30 s}"
)
# 250 numbers of 4 bytes: an update of about a kilobyte takes a second over a link of 1 kB/s.
BIG = "model={kind: bytes, size: 10 kB}"


def findings(simulation: Simulation) -> list[Finding]:
    """The diagnosis of a simulation that was run."""
    return diagnose(simulation.log, Roles(simulation.scenario.clients), limits_of(simulation))


def test_a_run_that_went_well_has_no_diagnosis(simulate: Callable[..., Simulation]) -> None:
    """Everyone was done before the deadline."""
    assert findings(simulate()) == []


def test_the_leaders_uplink_is_named_with_what_it_needs(simulate: Callable[..., Simulation]) -> None:
    """Two models of 10 kB at 1 kB/s take 20 s and there are few: the sentence has bytes, seconds, deadline and a cure.

    Sharing is fifo, so that the leader's two models leave one after the other.
    """
    world = (LEADER, BIG, "network.sharing=fifo", "network.downlink=1 MB/s", "protocol.model_deadline=1 s")
    assert findings(simulate(*world, "protocol.deadline=60 s")) == []
    slow = simulate(*world, "protocol.deadline=12 s")
    (found, *_) = [one for one in findings(slow) if one.code == "deadline_uplink"]
    assert found.problem.startswith(
        "round 1 ends at the deadline because the leader's uplink needs 20.2 s for 2 models of 10.1 kB; there were "
    )
    assert "protocol.model_deadline 1 s" in found.problem
    assert found.cure.startswith("Raise protocol.model_deadline to ")
    assert found.cure.endswith("or send a smaller model")


def test_slow_training_is_named(simulate: Callable[..., Simulation]) -> None:
    """20 samples at 1 a second and a deadline of 5 s: it is training that is waited for."""
    (train,) = [
        one for one in findings(simulate("compute=1 samples/s", "protocol.deadline=5 s")) if "train" in one.code
    ]
    assert "training at client" in train.problem
    assert "needs 20 s" in train.problem
    assert "(protocol.deadline 5 s)" in train.problem
    assert "train fewer epochs" in train.cure


def test_members_that_are_gone_are_named_and_not_the_one_that_waits(simulate: Callable[..., Simulation]) -> None:
    """Client 1 dies while it trains; the others wait for its update until the deadline."""
    simulation = simulate("faults=[{kind: crash, who: 1, start: 1.8 s}]")
    (found,) = [one for one in findings(simulation) if one.code == "deadline_gone"]
    assert "members that had gone were waited for (client 1;" in found.problem
    assert found.cure == "Lower protocol.deadline"
    ((_, path),) = critical_paths(simulation.log, simulation.world.proxy)
    waits = [step for step in path if step.cut]
    assert {step.blamed for step in waits} == {1}
    assert all(step.node != 1 for step in waits if step.what == "wait")


CASES = Path(__file__).parents[2] / "conformance" / "cases"


def run_case(name: str, *overrides: str) -> Simulation:
    """Runs a scenario that once broke a promise, with changes."""
    simulation = build(load_scenario(CASES / f"{name}.yaml", list(overrides)))
    simulation.run()
    return simulation


def last_s(simulation: Simulation) -> float:
    """When the last round closed."""
    return float(simulation.log.rounds[-1]["end_s"])


@pytest.mark.parametrize("kind", ["gossip, exchange_with: 2", "rotating_leader"])
def test_a_member_that_trains_too_long_is_not_called_gone(simulate: Callable[..., Simulation], kind: str) -> None:
    """It stops at its own deadline, which is a little earlier than that of those that wait for it."""
    protocol, named = f"protocol={{kind: {kind}, train_per_round: 3, deadline: 10 s}}", 0
    for slow in range(3):
        faults = f"faults=[{{kind: slow, who: {slow}, factor: 500}}]"
        told = [one for one in findings(simulate(protocol, faults)) if one.code.startswith("deadline")]
        # A leader does not wait for its own training, and the proxy waits for reports alone.
        assert {one.code for one in told} <= {"deadline_train"}
        for one in told:
            assert f"training at client {slow} is not done after " in one.problem
            assert one.cure == "Raise protocol.deadline, train fewer epochs, or lower it to wait less"
        named += len(told)
    assert named >= 2


@pytest.mark.parametrize("name", ["split-brain-incast", "split-brain-no-faults", "zero-division"])
def test_a_slow_leader_is_not_called_gone(name: str) -> None:
    """No node is ever down there: leaders are replaced because they are slower than `leader_timeout`."""
    simulation = run_case(name)
    (found,) = [one for one in findings(simulation) if one.code.startswith("deadline")]
    assert found.code == "deadline_silent"
    assert "a leader that was up was replaced, since nothing came from it in time (client " in found.problem
    assert found.cure == "Raise protocol.leader_timeout (2 s)"
    cured = run_case(name, "protocol.leader_timeout=20 s")
    assert not [one for one in findings(cured) if one.code.startswith("deadline")]
    assert sum(row["updates_used"] for row in cured.log.rounds) > sum(
        row["updates_used"] for row in simulation.log.rounds
    )


def test_a_member_whose_orders_were_lost_is_not_called_gone() -> None:
    """Client 1 never learns that it is a member; the leader waits for its update, and the proxy for its report."""
    simulation = run_case("charged-nothing-left")
    report, update = [one for one in findings(simulation) if one.code.startswith("deadline")]
    assert "reports of members that had gone or never got their orders (client 1;" in report.problem
    assert "members that were up but sent nothing in time were waited for (client 1;" in update.problem
    for one in (report, update):
        assert one.cure.startswith("Raise network.retransmit.tries, or lower protocol.deadline")
    cured = run_case("charged-nothing-left", "network.retransmit.tries=5")
    assert last_s(cured) < last_s(simulation) / 2


def test_the_proxy_waits_for_members_that_came_back_and_a_quorum_does_not_help() -> None:
    """They remember nothing of the round, so that they never report: the round lasts as long as its deadlines."""
    simulation = run_case("void-but-used")
    codes = {one.code: one.cure for one in findings(simulation)}
    assert codes["deadline_gone"] == "Lower protocol.deadline"
    assert codes["deadline_unreported"] == "Lower protocol.deadline or protocol.model_deadline"
    assert last_s(run_case("void-but-used", "protocol.finish={quorum: 0.7}")) == pytest.approx(last_s(simulation))
    lower = run_case("void-but-used", "protocol.deadline=10 s", "protocol.model_deadline=10 s")
    assert last_s(lower) < last_s(simulation) / 4


def test_rounds_that_all_were_lost_are_told_first(simulate: Callable[..., Simulation]) -> None:
    """No update in time, though the proxy has held all rounds."""
    simulation = simulate("rounds=2", "network.uplink=1 B/s", "protocol.deadline=5 s")
    (found, *_) = findings(simulation)
    assert found.code == "rounds_lost"
    assert found.problem.startswith("all 2 rounds were lost: no update was used; 100% of their updates were late")


@pytest.mark.parametrize("again", [False, True])
def test_a_lost_message_is_named_unless_it_came_after_all(
    add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]], again: bool
) -> None:
    """The update of 0 is lost; 1 waits until its deadline at 9 s, for it, or if it came on another try, for others."""
    log = Log(rounds=[round_record(1, 0.0, 10.0)])
    log.span(1, 1, "wait", 3.0, 9.0)
    lost = {"left_s": 2.5, "arrived_s": float("nan"), "outcome": "lost", "reason": "random", "used": False}
    add_message(log, sender=0, receiver=1, sent_s=2.0, **lost)
    if again:
        add_message(log, sender=0, receiver=1, sent_s=4.5, left_s=5.0, arrived_s=5.1, attempt=2)
    add_message(log, kind="control", sender=1, receiver=3, sent_s=9.0, arrived_s=10.0)
    found = [one for one in diagnose(log, Roles(3), None) if one.code == "deadline_resend"]
    assert ["a message of client 0 was lost" in one.problem for one in found] == [True] * (not again)
    assert findings_text([one.to_json() for one in found]) == [f"{one.problem}. {one.cure}." for one in found]


def test_waste_is_told_from_a_quarter_on(
    add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]
) -> None:
    """Late bytes of 26 in 100 are told, 24 are not."""
    for late, told in ((24, False), (26, True)):
        log = Log(rounds=[round_record(1, 0.0, 2.0)])
        add_message(log, size_bytes=100 - late, arrived_s=1.0)
        add_message(log, size_bytes=late, arrived_s=1.5, used=False)
        assert any(one.code == "waste" for one in diagnose(log, Roles(3), None)) is told


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"used": False}, "2 messages of kind update that were too late to be used"),
        ({"used": False, "destination": 2}, "that relays carried in vain"),
        ({"used": False, "origin": 7, "sender": 7}, "that an intruder sent"),
        ({"outcome": "lost", "reason": "random", "arrived_s": float("nan")}, "that the network lost"),
        ({"outcome": "lost", "reason": "burst", "arrived_s": float("nan")}, "that the network lost"),
        ({"outcome": "lost", "reason": "partition", "arrived_s": float("nan")}, "that a partition cut off"),
        ({"outcome": "lost", "reason": "receiver_down", "arrived_s": float("nan")}, "from or to nodes that were down"),
    ],
)
def test_waste_is_told_with_its_cause(
    add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]], fields: dict[str, Any], said: str
) -> None:
    """Of two wasted updates, the larger one decides what is said of most."""
    log = Log(rounds=[round_record(1, 0.0, 2.0)])
    add_message(log, size_bytes=40, used=False, sender=1)
    add_message(log, size_bytes=60, left_bytes=60, **fields)
    (found,) = [one for one in diagnose(log, Roles(3), None) if one.code == "waste"]
    assert said in found.problem


@pytest.mark.parametrize("seed", range(20))
def test_any_log_can_be_diagnosed(random_log: Callable[..., Log], seed: int) -> None:
    """Whatever a log holds, the diagnosis is sentences."""
    for text in findings_text([one.to_json() for one in diagnose(random_log(seed), Roles(6), None)]):
        assert text.endswith(".")
        assert "nan" not in text
        assert "None" not in text
