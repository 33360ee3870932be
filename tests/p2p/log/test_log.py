"""The log takes facts in words and keeps codes."""

from __future__ import annotations

import pytest

from p2p.log import records
from p2p.log.log import Log


def test_spans_have_a_length() -> None:
    """A stretch of no time is no span."""
    log = Log()
    log.span(1, 2, "train", 0.0, 1.5)
    log.span(1, 2, "wait", 1.5, 1.5)
    assert len(log.spans) == 1
    assert records.SPANS[log.spans["name"][0]] == "train"


@pytest.mark.parametrize(
    ("what", "reason"),
    [("absence", word) for word in records.ABSENCES] + [("missing", word) for word in records.MISSING],
)
def test_dropouts_know_their_reasons(what: str, reason: str) -> None:
    """Every reason has a code that reads back; an absence has no aggregator."""
    log = Log()
    log.dropout(what, 3, 4, reason, 1.0)
    row = {name: log.dropouts[name][0] for name in log.dropouts.names}
    assert (records.WHATS[row["what"]], records.DROPOUT_REASONS[row["reason"]]) == (what, reason)
    assert (row["round"], row["node"], row["aggregator"]) == (3, 4, records.NO_NODE)


def test_an_unknown_reason_is_a_mistake() -> None:
    """Words outside the code tables do not get in."""
    with pytest.raises(KeyError):
        Log().dropout("missing", 1, 1, "tired", 0.0)


def test_the_words_of_the_log_are_those_of_the_design() -> None:
    """Other parts build on these words."""
    assert set(records.OUTCOMES) == {"delivered", "rejected", "lost", "in_flight"}
    assert {"unknown_address", "stale_round", "replay", "corrupt", "not_neighbour"} <= set(records.REASONS)
    assert {"random", "burst", "partition", "sender_down", "receiver_down"} <= set(records.REASONS)
    assert records.MISSING == ("crashed", "partitioned", "rejected", "lost", "late")
    assert records.KINDS == (
        "control",
        "bootstrap",
        "update",
        "model",
        "handover",
        "share",
        "correction",
        "collect",
    )
