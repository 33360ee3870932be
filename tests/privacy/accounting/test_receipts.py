"""What counts as received: all that may have reached a node, however it ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p.log.log import Log
from p2p.log.records import KIND, OUTCOME, REASON
from privacy.accounting.receipts import received_pairs, rows_by_round

CLIENTS, SERVER, RELAY, INTRUDER = 4, 7, 8, 9
SERVICES = np.arange(4, 8)


def log_of(*rows: dict[str, Any]) -> Log:
    """A message log with these rows; what is not said is usual."""
    log = Log()
    usual: dict[str, Any] = {
        "kind": "update", "round": 1, "sender": 0, "receiver": 1, "size_bytes": 100, "overhead_bytes": 0, "attempt": 1,
        "sent_s": 0.0, "left_s": 1.0, "arrived_s": 2.0, "outcome": "delivered", "reason": "", "bottleneck": 0,
        "left_bytes": 100, "used": False, "previous": -1,
    }  # fmt: skip
    for row in rows:
        made = usual | row
        made = {"origin": made["sender"], "destination": made["receiver"]} | made
        codes = {"kind": KIND[made["kind"]], "outcome": OUTCOME[made["outcome"]], "reason": REASON[made["reason"]]}
        log.messages.append(**(made | codes))
    return log


def pairs(log: Log, kind: str = "update") -> list[tuple[int, int]]:
    """Who may have seen whose message."""
    rows = rows_by_round(log.messages)[1]
    return [(int(a), int(b)) for a, b in received_pairs(log.messages, rows, kind, CLIENTS, SERVICES)]


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        ({"used": True}, True),
        ({"used": False}, True),
        ({"outcome": "rejected", "reason": "stale_round"}, True),
        ({"outcome": "in_flight", "left_bytes": 0}, True),
        ({"outcome": "lost", "reason": "sender_down", "left_bytes": 90}, True),
        ({"outcome": "lost", "reason": "receiver_down", "left_bytes": 90}, True),
        ({"outcome": "lost", "reason": "partition", "left_bytes": 1}, True),
        ({"outcome": "lost", "reason": "sender_down", "left_bytes": 0}, False),
        ({"outcome": "lost", "reason": "random"}, False),
        ({"outcome": "lost", "reason": "burst"}, False),
        ({"receiver": RELAY, "destination": 1}, False),
        ({"kind": "share"}, False),
    ],
)
def test_what_reached_a_node(row: dict[str, Any], counts: bool) -> None:
    """In time or late, refused, cut off or still under way; not what was dropped, nor what a relay carries."""
    assert pairs(log_of(row)) == ([(0, 1)] if counts else [])


def test_a_replay_may_be_any_message_that_was_meant_for_its_receiver() -> None:
    """It brings what was lost on the way, and nothing to others; a forgery to no node tells nothing."""
    lost = {"outcome": "lost", "reason": "random"}
    copy = {"sender": INTRUDER, "outcome": "rejected", "reason": "replay"}
    assert pairs(log_of(lost, lost | {"sender": 2}, lost | {"receiver": 3}, copy)) == [(0, 1), (2, 1)]
    assert pairs(log_of(lost, copy | {"receiver": -1, "reason": "unknown_address"})) == []
    assert pairs(log_of(lost | {"sender": SERVER}, copy)) == [(SERVER, 1)]


def test_rows_are_found_by_round() -> None:
    """Only those with content."""
    log = log_of({"round": 2}, {"kind": "control"}, {"kind": "share", "round": 1}, {"round": 2, "sender": 3})
    assert {number: rows.tolist() for number, rows in rows_by_round(log.messages).items()} == {1: [2], 2: [0, 3]}
    assert rows_by_round(Log().messages) == {}
