"""Where bytes and seconds go, in stories computed by hand."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.cli import arguments
from scenarios.cli.commands.results import cost
from scenarios.metrics.communication.cost import by_kind, by_role, bytes_by_bottleneck, dropout_costs
from scenarios.metrics.communication.critical_path import critical_paths
from scenarios.metrics.communication.roles import Roles
from scenarios.run_folder.writer import RunFolder

PROXY = 3


@pytest.fixture
def story(add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]) -> Log:
    """Clients 0 and 1 send to leader 2. 1 trains longest; its update is lost once; 0 is too late and drops out."""
    log = Log()
    for node in (0, 1, 2):
        add_message(log, kind="control", sender=PROXY, receiver=node, sent_s=1.0, arrived_s=2.0, size_bytes=10)
    log.span(0, 1, "train", 2.0, 3.0)
    log.span(1, 1, "train", 2.0, 6.0)
    log.span(2, 1, "train", 2.0, 4.0)
    log.span(2, 1, "wait", 4.0, 12.0)
    add_message(log, sender=0, receiver=2, sent_s=3.0, arrived_s=15.0, used=False, bottleneck="downlink")
    add_message(log, sender=1, receiver=2, sent_s=6.0, outcome="lost", reason="random", left_bytes=60, used=False)
    add_message(log, sender=1, receiver=2, sent_s=8.0, arrived_s=10.0, attempt=2)
    for node in (0, 1):
        add_message(log, kind="model", sender=2, receiver=node, sent_s=12.0, arrived_s=13.0 + node, bottleneck="uplink")
        add_message(log, kind="control", sender=node, receiver=PROXY, sent_s=13.0 + node, arrived_s=13.5 + node)
    log.dropout("missing", 1, 0, "late", 12.0, aggregator=2)
    log.dropout("dropout", 1, 0, "late", 14.5)
    log.rounds.append(round_record(1, 0.0, 14.5, leader=2))
    return log


def test_critical_path_of_a_leader_round(story: Log) -> None:
    """Back from the last `done`: model, then the update that the leader still waited for at its deadline.

    Not the last one that came, from 1 at 10 s: it had been there for 2 s when the deadline ended the wait for 0.
    """
    ((record, path),) = critical_paths(story, PROXY)
    assert record["round"] == 1
    assert [(step.what, step.node, step.receiver, step.start_s, step.end_s) for step in path] == [
        ("wait", PROXY, None, 0.0, 1.0),
        ("control", PROXY, 0, 1.0, 2.0),
        ("train", 0, None, 2.0, 3.0),
        ("update", 0, 2, 3.0, 12.0),
        ("model", 2, 1, 12.0, 14.0),
        ("control", 1, PROXY, 14.0, 14.5),
    ]
    (cut,) = [step for step in path if step.cut]
    assert (cut.what, cut.held_back_by, cut.blamed) == ("update", "downlink", 2)


def test_a_lost_try_is_on_the_path(
    add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]
) -> None:
    """An update that came at last: its pause, its first try, its training."""
    log = Log(rounds=[round_record(1, 0.0, 14.5)])
    log.span(1, 1, "train", 2.0, 6.0)
    add_message(log, sender=1, receiver=2, sent_s=6.0, outcome="lost", reason="random", left_bytes=60, used=False)
    add_message(log, sender=1, receiver=2, sent_s=8.0, arrived_s=10.0, attempt=2)
    add_message(log, kind="control", sender=2, receiver=PROXY, sent_s=10.0, arrived_s=14.5)
    ((_, path),) = critical_paths(log, PROXY)
    assert [(step.what, step.node, step.start_s, step.end_s) for step in path][1:] == [
        *[("train", 1, 2.0, 6.0), ("resend", 1, 6.0, 8.0), ("update", 1, 8.0, 10.0), ("control", 2, 10.0, 14.5)],
    ]


def test_an_update_is_not_set_off_by_earlier_ones(
    add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]
) -> None:
    """With a common instant of sending, updates that came before it are no cause of one's own."""
    log = Log(rounds=[round_record(1, 0.0, 6.0)])
    log.span(0, 1, "train", 0.0, 3.0)
    add_message(log, sender=1, receiver=0, sent_s=2.0, arrived_s=4.0)
    add_message(log, sender=0, receiver=1, sent_s=5.0, arrived_s=5.5)
    add_message(log, kind="control", sender=1, receiver=PROXY, sent_s=5.5, arrived_s=6.0)
    ((_, path),) = critical_paths(log, PROXY)
    assert [(step.what, step.node) for step in path] == [
        *[("train", 0), ("wait", 0), ("update", 0), ("control", 1)],
    ]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_steps_fill_the_round(random_log: Callable[..., Log], seed: int) -> None:
    """Whatever happened, the steps of a round meet each other and its two ends."""
    for record, path in critical_paths(random_log(seed), 6):
        assert path[0].start_s == pytest.approx(record["start_s"])
        assert path[-1].end_s == record["end_s"]
        for before, after in pairwise(path):
            assert before.end_s == after.start_s
        assert all(step.duration_s >= 0 for step in path)


def test_messages_that_take_no_time_do_not_trap_the_walk(
    add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]
) -> None:
    """Two nodes that answer each other at one instant are passed through once."""
    log = Log(rounds=[round_record(1, 0.0, 2.0)])
    for sender, receiver in ((0, 1), (1, 0), (0, PROXY)):
        add_message(log, kind="control", sender=sender, receiver=receiver, sent_s=1.0, arrived_s=1.0)
    ((_, path),) = critical_paths(log, PROXY)
    assert sum(step.duration_s for step in path) == 2.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_roles_and_kinds_add_up(random_log: Callable[..., Log], seed: int) -> None:
    """Bytes by kind and bytes sent by role are the bytes sent."""
    log = random_log(seed)
    sent = int(log.messages["size_bytes"].sum())
    assert sum(told["sent"] for told in by_kind(log).values()) == sent
    roles = by_role(log, Roles(6))
    assert sum(sum(told["sent"].values()) for told in roles.values()) == sent
    assert sum(told["share"] for told in by_kind(log).values()) == pytest.approx(1)
    for shares in (bytes_by_bottleneck(log)["all"], bytes_by_bottleneck(log)["late"]):
        assert not any(shares.values()) or sum(shares.values()) == pytest.approx(1)


def test_roles(story: Log) -> None:
    """A client counts as leader in the round it leads."""
    roles = by_role(story, Roles(3))
    assert roles["leader"] == {"sent": {"model": 200}, "received": {"control": 10, "update": 200}}
    assert roles["client"]["sent"] == {"control": 200, "update": 300}
    assert roles["proxy"]["received"] == {"control": 200}


def test_links(story: Log, add_message: Callable[..., int]) -> None:
    """The links that held late bytes back are named; without late bytes, those of all data."""
    assert bytes_by_bottleneck(story)["sentence"] == "100% of the late bytes waited for receivers' downlinks."
    log = Log()
    assert bytes_by_bottleneck(log)["sentence"] == "no data arrived."
    add_message(log, size_bytes=63, bottleneck="uplink")
    add_message(log, size_bytes=37, bottleneck="latency")
    assert bytes_by_bottleneck(log)["sentence"] == "63% of the data bytes waited for their senders' uplinks."


def test_what_a_dropout_cost(story: Log) -> None:
    """One update lost, its bytes wasted, and two seconds waited for it after the last useful one."""
    (told,) = dropout_costs(story)
    assert told == {
        **{"round": 1, "node": 0, "reason": "late", "at_s": 14.5},
        **{"lost_updates": 1, "wasted_bytes": 100, "stalled_s": pytest.approx(2.0)},
    }


def _arguments(folder: Path, **changes: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    arguments.cost(parser)
    args = parser.parse_args([str(folder)])
    return argparse.Namespace(**(vars(args) | changes))


@pytest.mark.parametrize("killed", [False, True])
def test_command(
    tmp_path: Path, story: Log, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """The command reads finished and killed runs and fits 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    folder = RunFolder.create(tmp_path / "run", "story", 7)
    folder.begin("name: story\nseed: 7\nclients: 3\n", {"format": 1})
    folder.write_part(story, 1)
    if not killed:
        folder.finish(story, {"format": 1, "scenario": "story", "seed": 7, "nodes": {"clients": 3}})
    assert cost.run(_arguments(folder.path)) == 0
    text = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert text.startswith("story, seed 7: 1 round")
    assert ("killed" in text) is killed
    assert "100% of the late bytes waited for receivers' downlinks." in text
    assert "anonymous transport assumed, its cost not included" in text
    assert cost.run(_arguments(folder.path, json=True)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seconds"]["by_what"]["train"] == {"per_round_s": 1.0, "share": pytest.approx(1 / 14.5)}
    assert found["seconds"]["who"][0]["node"] == 2
    assert found["diagnosis"][0]["code"] == "deadline_downlink"
    assert found["bytes"]["wasted"] == 160


def test_warm_up_is_left_out(
    tmp_path: Path, random_log: Callable[..., Log], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--measure-from` keeps early rounds out, and must name a round the run has."""
    folder = RunFolder.create(tmp_path / "run", "n", 1)
    folder.begin("name: n\nclients: 6\n", {"format": 1})
    folder.finish(random_log(1), {"format": 1, "scenario": "n", "seed": 1, "nodes": {"clients": 6}})
    assert cost.run(_arguments(folder.path, json=True, measure_from=2)) == 0
    assert json.loads(capsys.readouterr().out)["rounds"] == [2, 3]
    with pytest.raises(UserError, match="--measure-from = 9: the run has rounds 1 to 3; choose one of them"):
        cost.run(_arguments(folder.path, measure_from=9))


def test_a_run_of_no_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing happened, and that is told."""
    folder = RunFolder.create(tmp_path / "run", "n", 1)
    folder.begin("name: n\nclients: 6\n", {"format": 1})
    folder.finish(Log(), {"format": 1, "scenario": "n", "seed": 1, "nodes": {"clients": 6}})
    assert cost.run(_arguments(folder.path)) == 0
    assert "no data arrived." in capsys.readouterr().out
    with pytest.raises(UserError, match="the run has no whole round"):
        cost.run(_arguments(folder.path, measure_from=1))
