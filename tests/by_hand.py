"""Small worlds that can be computed by hand, and the story that a log tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from p2p.log import records
from p2p.log.column_table import Table
from p2p.log.log import Log

if TYPE_CHECKING:
    from scenarios.composition.simulation import Simulation

# Sizes without sealing (header 82): register 115, invite 91, answer 95, done 87, commit 119, verdict 95, an assignment
# with n peers 140 + 33 n, a vector of ten numbers 122. At 1 kB/s and 0.1 s of latency a message of S bytes takes
# S/1000 + 0.1 s.
# Only clients have limits: the proxy and the server send and receive at once.
_BY_HAND = """
name: by-hand
seed: 5
rounds: 1
clients: 3
learning: none
data: {name: synthetic, samples: 60, features: 4, classes: 2}
model: {kind: linear}
training: {epochs: 1}
compute: 20 samples/s
protocol: {kind: gossip, train_per_round: 3, exchange_with: 2, deadline: 60 s}
anonymity: {sealed: false}
network: {sharing: ideal, uplink: 1 kB/s, downlink: 1 kB/s, latency: 100 ms}
"""


def _prepare(*overrides: str) -> Simulation:
    from scenarios.build import build
    from scenarios.loading.load import parse_scenario

    return build(parse_scenario(_BY_HAND, overrides=overrides))


def _simulate(*overrides: str) -> Simulation:
    simulation = _prepare(*overrides)
    simulation.run()
    return simulation


def _story(log: Log, round_number: int, kinds: Sequence[str] = records.KINDS) -> list[tuple[float, int, str]]:
    """What happened in a round, by time and node: hand-overs, arrivals, losses, aggregations; times to 1 us."""
    found = []
    for row in messages(log, round=round_number):
        kind = row["kind"]
        if kind in kinds:
            found.append((row["sent_s"], row["sender"], f"sends {kind} to {row['receiver']}"))
            if row["outcome"] == "lost":
                found.append((row["left_s"], row["sender"], f"loses {kind} to {row['receiver']}"))
            elif row["outcome"] != "in_flight":
                found.append((row["arrived_s"], row["receiver"], f"gets {kind} from {row['sender']}"))
    of_round = log.aggregations["round"] == round_number
    averaged: dict[tuple[float, int], list[int]] = {}
    columns = (log.aggregations[name][of_round].tolist() for name in ("at_s", "aggregator", "contributor"))
    for at_s, aggregator, contributor in zip(*columns, strict=True):
        averaged.setdefault((at_s, aggregator), []).append(contributor)
    for (at_s, node), contributors in averaged.items():
        found.append((at_s, node, "averages " + " ".join(map(str, sorted(contributors)))))
    return sorted((round(time_s, 6), node, what) for time_s, node, what in found)


def messages(log: Log, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of the message log with words for codes, those that have the wanted values."""
    table: Table = log.messages
    words: Any = records.WORDS["messages"]
    columns = {
        name: [words[name][code] for code in table[name]] if name in words else table[name].tolist()
        for name in table.names
    }
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _spans(log: Log, round_number: int) -> list[tuple[int, str, float, float]]:
    table = log.spans
    names = [records.SPANS[code] for code in table["name"]]
    columns = zip(table["round"].tolist(), table["node"].tolist(), names, table["start_s"], table["end_s"], strict=True)
    found = [(node, name, start, end) for number, node, name, start, end in columns if number == round_number]
    return sorted((node, name, round(float(start), 6), round(float(end), 6)) for node, name, start, end in found)


def _dropouts(log: Log) -> list[tuple[int, str, int, int, str]]:
    """Every absence, missing update and dropout as (round, what, node, aggregator, reason)."""
    table = log.dropouts
    what = [records.WHATS[code] for code in table["what"]]
    reason = [records.DROPOUT_REASONS[code] for code in table["reason"]]
    columns = zip(
        table["round"].tolist(), what, table["node"].tolist(), table["aggregator"].tolist(), reason, strict=True
    )
    return sorted(columns)


@pytest.fixture(scope="session")
def prepare() -> Callable[..., Simulation]:
    """Builds the world above with overrides `a.b=v`."""
    return _prepare


@pytest.fixture(scope="session")
def simulate() -> Callable[..., Simulation]:
    """Builds it and runs it to its end."""
    return _simulate


@pytest.fixture(scope="session")
def story() -> Callable[..., list[tuple[float, int, str]]]:
    """The story of one round."""
    return _story


@pytest.fixture(scope="session")
def spans() -> Callable[..., list[tuple[int, str, float, float]]]:
    """The spans of one round, by node."""
    return _spans


@pytest.fixture(scope="session")
def dropouts() -> Callable[..., list[tuple[int, str, int, int, str]]]:
    """Everything that was missed."""
    return _dropouts


@pytest.fixture(scope="session")
def message_rows() -> Callable[..., list[dict[str, Any]]]:
    """The rows of the message log, in words."""
    return messages
