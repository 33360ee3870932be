"""What a round's record makes of the message log when it closes: missing updates, dropouts, sending spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from nodes.round_record import RoundRecord
from p2p.log import records
from p2p.log.log import Log

EDGES = [(0, 1), (1, 2), (2, 0)]
Dropouts = Callable[..., list[tuple[int, str, int, int, str]]]


def closed(log: Log, aggregated: Sequence[int] = (0, 1, 2), leader: int = -1) -> RoundRecord:
    """A ring of three that closes at 10 s; the given nodes have averaged at 9 s."""
    record = RoundRecord(1, 0.0, np.arange(3), leader, {"update": np.array(EDGES)})
    record.aggregated_s.update(dict.fromkeys(aggregated, 9.0))
    record.close(log, 10.0)
    return record


def add_update(log: Log, sender: int, outcome: str, reason: str = "", used: bool = False, **more: Any) -> None:
    """An update to the next node of the ring."""
    fields: dict[str, Any] = {"attempt": 1, "sent_s": 1.0, "left_s": 2.0, "arrived_s": 3.0} | more
    fields |= {"kind": records.KIND["update"], "round": 1, "sender": sender, "receiver": (sender + 1) % 3}
    fields |= {"origin": sender, "destination": (sender + 1) % 3, "previous": records.NO_NODE}
    fields |= {"outcome": records.OUTCOME[outcome], "reason": records.REASON[reason], "used": used}
    log.messages.append(**dict.fromkeys(log.messages.names, 0) | {"size_bytes": 100, "left_bytes": 100} | fields)
    if used:
        ends = {"aggregator": fields["destination"], "contributor": sender}
        log.aggregations.append(round=1, at_s=9.0, void=False, **ends)


def test_when_all_goes_well_nothing_is_missing(dropouts: Dropouts) -> None:
    """Three used, none missing, one sending span each."""
    log = Log()
    for sender in range(3):
        add_update(log, sender, "delivered", used=True)
    record = closed(log)
    assert (record.used, record.missing) == (3, 0)
    assert dropouts(log) == []
    assert log.spans["end_s"].tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("transmissions", "reason"),
    [
        ([("delivered", "")], "late"),
        ([("in_flight", "")], "late"),
        ([], "late"),
        ([("lost", "random"), ("lost", "burst")], "lost"),
        ([("lost", "random"), ("delivered", "")], "late"),
        ([("rejected", "corrupt")], "rejected"),
        ([("lost", "random"), ("rejected", "corrupt")], "rejected"),
        ([("lost", "partition"), ("rejected", "corrupt")], "partitioned"),
        ([("lost", "sender_down"), ("lost", "partition")], "crashed"),
        ([("lost", "receiver_down"), ("rejected", "replay")], "crashed"),
    ],
)
def test_the_first_reason_that_applies(dropouts: Dropouts, transmissions: list[tuple[str, str]], reason: str) -> None:
    """crashed, partitioned, rejected, lost, late, in this order; the sender dropped out for the same."""
    log = Log()
    for outcome, why in transmissions:
        add_update(log, 0, outcome, why)
    for sender in (1, 2):
        add_update(log, sender, "delivered", used=True)
    record = closed(log)
    assert (record.used, record.missing) == (2, 1)
    assert dropouts(log) == [(1, "dropout", 0, -1, reason), (1, "missing", 0, 1, reason)]


def add_assignment(log: Log, receiver: int, outcome: str, reason: str = "") -> None:
    """What the proxy, node 3, sent to a member."""
    fields: dict[str, Any] = {"attempt": 1, "sent_s": 0.5, "left_s": 0.5, "arrived_s": 0.6, "previous": records.NO_NODE}
    fields |= {"kind": records.KIND["control"], "round": 1, "sender": 3, "receiver": receiver, "used": False}
    fields |= {"origin": 3, "destination": receiver, "outcome": records.OUTCOME[outcome]}
    log.messages.append(**dict.fromkeys(log.messages.names, 0) | fields | {"reason": records.REASON[reason]})


def test_a_member_that_was_down_when_it_was_assigned_is_not_late(dropouts: Dropouts) -> None:
    """It went down after its answer and sent nothing; one that came back in time and sent is judged by its message."""
    log = Log()
    add_assignment(log, 0, "lost", "receiver_down")
    add_assignment(log, 1, "lost", "receiver_down")
    add_assignment(log, 1, "delivered")
    add_assignment(log, 2, "lost", "random")
    add_update(log, 1, "delivered")
    closed(log)
    reasons = {row[2]: row[4] for row in dropouts(log) if row[1] == "dropout"}
    assert reasons == {0: "crashed", 1: "late", 2: "late"}


def test_only_an_aggregation_can_miss_something(dropouts: Dropouts) -> None:
    """A node that averaged nothing missed nothing; its senders dropped out of the round all the same."""
    log = Log()
    add_update(log, 0, "lost", "random")
    add_update(log, 1, "delivered", used=True)
    closed(log, aggregated=[2])
    assert dropouts(log) == [(1, "dropout", 0, -1, "lost"), (1, "dropout", 2, -1, "late")]


def test_a_leader_that_averaged_has_not_dropped_out(dropouts: Dropouts) -> None:
    """Its update is in the model, although no other node averaged it."""
    log = Log()
    for sender in (0, 1):
        add_update(log, sender, "delivered", used=True)
    closed(log, aggregated=[1, 2], leader=2)
    assert dropouts(log) == []


def test_sending_lasts_from_the_first_hand_over_to_the_last_byte() -> None:
    """Retransmissions included; what has not left when the round closes ends with it."""
    log = Log()
    add_update(log, 0, "lost", "random", sent_s=1.0, left_s=2.0)
    add_update(log, 0, "delivered", sent_s=4.0, left_s=5.0, attempt=2)
    add_update(log, 1, "in_flight", sent_s=8.0, left_s=np.nan, arrived_s=np.nan)
    closed(log)
    rows = zip(log.spans["node"].tolist(), log.spans["start_s"].tolist(), log.spans["end_s"].tolist(), strict=True)
    assert sorted(rows) == [(0, 1.0, 5.0), (1, 8.0, 10.0)]


def test_the_row_of_the_table() -> None:
    """What `rounds.parquet` gets."""
    row = closed(Log()).row()
    assert row["round"] == 1
    assert (row["start_s"], row["end_s"], row["cohort"], row["leader"]) == (0.0, 10.0, 3, -1)
    assert (row["updates_used"], row["updates_missing"]) == (0, 3)
