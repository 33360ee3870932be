"""Logs made by hand and by chance, for the tests of everything that reads them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from p2p.log import records
from p2p.log.log import Log
from p2p.random_streams import stream
from scenarios.run_folder.arrow_tables import WORDS
from tests.by_hand import dropouts, message_rows, prepare, simulate

__all__ = ["dropouts", "message_rows", "prepare", "simulate"]


def _add_message(log: Log, **changes: Any) -> int:
    """Adds a delivered, used update of 100 bytes from 0 to 1 in round 1; words are allowed for codes."""
    row: dict[str, Any] = {
        "kind": "update",
        "round": 1,
        "sender": 0,
        "receiver": 1,
        "size_bytes": 100,
        "overhead_bytes": 10,
        "attempt": 1,
        "sent_s": 0.0,
        "left_s": 0.5,
        "arrived_s": 1.0,
        "outcome": "delivered",
        "reason": "",
        "bottleneck": "uplink",
        "left_bytes": 100,
        "used": True,
        **changes,
    }
    row = {"origin": row["sender"], "destination": row["receiver"], "previous": -1} | row
    for column, words in WORDS["messages"].items():
        row[column] = words.index(row[column])
    return log.messages.append(**row)


def _round_record(number: int, start_s: float, end_s: float, **changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"round": number, "start_s": start_s, "end_s": end_s, "cohort": 3, "leader": -1}
    record |= {"updates_used": 3, "updates_missing": 0, "skipped": False, "noise_std": 0.1, "loss": 0.5}
    for when in ("before", "after"):
        record |= {f"accuracy_{when}_max": 0.8, f"accuracy_{when}_mean": 0.7, f"accuracy_{when}_min": 0.6}
    return record | changes


def _random_log(seed: int, clients: int = 6, rounds: int = 3, messages: int = 60) -> Log:
    """Rows of every table, every word and every hole (no node, never) drawn by chance."""
    random, log = stream(seed, "log"), Log()
    sent_s = random.uniform(0, 10.0 * rounds, messages)
    outcome = random.integers(0, 4, messages)
    arrived = np.isin(outcome, (1, 3))
    size_bytes = random.integers(1, 1000, messages)
    kind = random.integers(0, len(records.KINDS), messages)
    sender, receiver = random.integers(0, clients + 4, messages), random.integers(-1, clients + 4, messages)
    log.messages.extend(
        messages,
        kind=kind,
        round=1 + (sent_s // 10).astype(int),
        sender=sender,
        receiver=receiver,
        origin=sender,
        destination=receiver,
        previous=-1,
        size_bytes=size_bytes,
        overhead_bytes=random.integers(0, 20, messages),
        attempt=random.integers(1, 3, messages),
        sent_s=sent_s,
        left_s=sent_s + 0.5,
        arrived_s=np.where(arrived, sent_s + random.uniform(0.5, 3, messages), np.nan),
        outcome=outcome,
        reason=np.where(outcome >= 2, random.integers(1, len(records.REASONS), messages), 0),
        bottleneck=random.integers(0, len(records.BOTTLENECKS), messages),
        left_bytes=random.integers(0, size_bytes + 1),
        used=random.random(messages) < 0.7,
    )
    for number in range(1, rounds + 1):
        start_s = 10.0 * (number - 1)
        leader = int(random.integers(-1, clients))
        log.rounds.append(_round_record(number, start_s, start_s + 10, leader=leader))
        for node in range(clients):
            end_s = start_s + random.uniform(1, 5)
            log.span(node, number, "train", start_s, end_s)
            log.span(node, number, "wait", end_s, start_s + 10)
            log.graphs.append(round=number, sender=node, receiver=(node + 1) % clients)
            epsilons = {"mu2": 1.0, "published": np.nan, "rigorous": np.inf, "budget_left": np.nan}
            log.privacy.append(
                round=number, node=node, release=number, noise_std=0.1, trainings=0, record=np.nan, **epsilons
            )
            log.aggregations.append(
                round=number, aggregator=node, contributor=(node - 1) % clients, at_s=end_s, void=False
            )
        log.dropout("absence", number, 0, "offline", start_s)
        log.dropout("missing", number, 1, "late", start_s + 9, aggregator=2)
        log.dropout("dropout", number, 1, "late", start_s + 10)
    return log


@pytest.fixture(scope="session")
def add_message() -> Callable[..., int]:
    """Adds one message to a log."""
    return _add_message


@pytest.fixture(scope="session")
def round_record() -> Callable[..., dict[str, Any]]:
    """A round's record."""
    return _round_record


@pytest.fixture(scope="session")
def random_log() -> Callable[..., Log]:
    """A log drawn by chance."""
    return _random_log


@pytest.fixture(scope="session")
def scenario() -> SimpleNamespace:
    """The few things of a scenario that a summary reads."""
    evaluation = SimpleNamespace(target_accuracy=0.7)
    return SimpleNamespace(name="story", seed=7, question="Why?", rounds=3, clients=6, evaluation=evaluation)


@pytest.fixture
def each_round_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are written after every round, however short the time since the last one."""
    monkeypatch.setattr("scenarios.running.journal.REST", 0)
