"""Logs become tables and tables logs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.log.log import Log
from scenarios.run_folder import arrow_tables

MESSAGE_COLUMNS = [
    *("id", "kind", "round", "sender", "receiver", "size_bytes", "overhead_bytes", "attempt"),
    *("sent_s", "arrived_s", "outcome", "reason", "bottleneck"),
]


def test_promised_columns_come_first(random_log: Callable[..., Log]) -> None:
    """The files begin with the columns that are promised, in that order."""
    arrow = arrow_tables.log_to_arrow(random_log(1))
    assert arrow["messages"].column_names[: len(MESSAGE_COLUMNS)] == MESSAGE_COLUMNS
    assert arrow["messages"].column_names[len(MESSAGE_COLUMNS) :] == [
        *("left_s", "left_bytes", "used", "origin", "destination", "previous", "wasted_bytes")
    ]
    assert arrow["spans"].column_names == ["node", "round", "name", "start_s", "end_s"]
    assert arrow["dropouts"].column_names == ["round", "node", "aggregator", "what", "reason", "at_s"]
    assert arrow["graphs"].column_names == ["round", "sender", "receiver"]
    assert arrow["privacy"].column_names[:3] == ["round", "node", "release"]


def test_words_and_nulls(add_message: Callable[..., int], random_log: Callable[..., Log]) -> None:
    """Codes are written as words, no node and never as null."""
    log = Log()
    add_message(log, kind="model", receiver=-1, arrived_s=np.nan, outcome="lost", reason="burst", left_bytes=7)
    log.dropout("absence", 1, 3, "budget", 2.0)
    message = arrow_tables.to_arrow("messages", log.messages).to_pylist()[0]
    assert (message["id"], message["kind"], message["outcome"], message["reason"]) == (0, "model", "lost", "burst")
    assert message["receiver"] is None
    assert message["arrived_s"] is None
    assert message["wasted_bytes"] == 7
    dropout = arrow_tables.to_arrow("dropouts", log.dropouts).to_pylist()[0]
    row = arrow_tables.to_arrow("privacy", random_log(1).privacy).to_pylist()[0]
    assert (row["published"], row["rigorous"]) == (None, np.inf)
    assert dropout == {"round": 1, "node": 3, "aggregator": None, "what": "absence", "reason": "budget", "at_s": 2.0}


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_back_and_forth(random_log: Callable[..., Log], seed: int) -> None:
    """What is written is read back to the last bit."""
    log = random_log(seed)
    for name in arrow_tables.LOGGED:
        table = getattr(log, name)
        again = arrow_tables.from_arrow(name, arrow_tables.to_arrow(name, table))
        for column in table.names:
            np.testing.assert_array_equal(again[column], table[column])


def test_an_empty_log_has_all_its_columns() -> None:
    """A run in which nothing happened still has readable tables."""
    for name, arrow in arrow_tables.log_to_arrow(Log()).items():
        assert arrow.num_rows == 0
        if name != "rounds":
            assert len(arrow_tables.from_arrow(name, arrow)) == 0
    assert arrow_tables.rounds_from_arrow(arrow_tables.log_to_arrow(Log())["rounds"]) == []


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_rounds_add_up(random_log: Callable[..., Log], seed: int) -> None:
    """Bytes by round and kind add up to the messages' bytes."""
    log = random_log(seed)
    rounds = arrow_tables.rounds_to_arrow(log.rounds, log.messages).to_pylist()
    assert sum(row["bytes"] for row in rounds) == log.messages["size_bytes"].sum()
    assert sum(row["messages"] for row in rounds) == len(log.messages)
    for row in rounds:
        assert row["bytes"] == sum(value for key, value in row.items() if key.startswith("bytes_"))


def test_rounds_not_evaluated_are_null(round_record: Callable[..., dict[str, Any]]) -> None:
    """No figure is null, not NaN; a round without a leader has none."""
    record = round_record(1, 0.0, 1.0, loss=None, accuracy_after_mean=float("nan"), note="own")
    row = arrow_tables.rounds_to_arrow([record], Log().messages).to_pylist()[0]
    assert row["loss"] is None
    assert row["accuracy_after_mean"] is None
    assert row["leader"] is None
    assert row["note"] == "own"


@pytest.mark.parametrize("first", [1, 2, 4])
def test_measured_from(random_log: Callable[..., Log], first: int) -> None:
    """Rounds of the warm-up leave every table."""
    kept = arrow_tables.measured_from(random_log(3), first)
    for name in arrow_tables.LOGGED:
        assert (getattr(kept, name)["round"] >= first).all()
    assert [record["round"] for record in kept.rounds] == [number for number in (1, 2, 3) if number >= first]
