"""Which messages count as received, for one who wants to know what an observer may have seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.column_table import Table
from p2p.log.records import KIND, OUTCOME, REASON
from topologies.edge_arrays import distinct

Ids = NDArray[np.int64]
CONTENT_KINDS = ("update", "model", "handover", "share", "correction")
_CUT_OFF = [REASON[word] for word in ("partition", "sender_down", "receiver_down")]


def rows_by_round(messages: Table) -> dict[int, Ids]:
    """Returns the rows of messages with content, by round."""
    rows = np.flatnonzero(np.isin(messages["kind"], [KIND[word] for word in CONTENT_KINDS]))
    numbers = messages["round"][rows]
    order = np.argsort(numbers, kind="stable")
    found, first = np.unique(numbers[order], return_index=True)
    ends = [*first[1:].tolist(), len(rows)]
    return {number: rows[order[start:end]] for number, start, end in zip(found.tolist(), first, ends, strict=False)}


def received_pairs(messages: Table, rows: Ids, kind: str, clients: int, services: Ids) -> Ids:
    """Returns the distinct pairs (origin, destination) of a kind whose content the destination may have seen.

    An arrival counts whether in time or late, used, refused or void; so does a message that is still under way, and
    one that was cut off after its first byte had left. An injected copy may be any message of its round and kind that
    was meant for its receiver, also one that was lost on the way.

    Args:
        services: node numbers of senders that are no clients and no intruders.
    """
    rows = rows[messages["kind"][rows] == KIND[kind]]
    # Most runs have messages of two or three kinds only, and this is asked about each kind in every round.
    if not len(rows):
        return np.zeros((0, 2), dtype=np.int64)
    column: dict[str, NDArray[Any]] = {
        name: messages[name][rows] for name in ("origin", "destination", "receiver", "outcome", "reason", "left_bytes")
    }
    last_hop = column["receiver"] == column["destination"]
    outcome = column["outcome"]
    came = last_hop & ((outcome == OUTCOME["delivered"]) | (outcome == OUTCOME["rejected"]))
    cut = last_hop & (outcome == OUTCOME["lost"]) & np.isin(column["reason"], _CUT_OFF) & (column["left_bytes"] > 0)
    seen = (came | cut | (outcome == OUTCOME["in_flight"])) & (column["destination"] >= 0)
    ours = (column["origin"] < clients) | np.isin(column["origin"], services)
    copied = np.unique(column["destination"][seen & ~ours])
    kept = ours & (seen | np.isin(column["destination"], copied))
    # Each pair as one integer: node numbers fit in 31 bits, and plain numbers are sorted much faster than rows.
    pairs = distinct(column["origin"][kept].astype(np.int64) << 32 | column["destination"][kept].astype(np.int64))
    return np.column_stack([pairs >> 32, pairs & 0xFFFFFFFF])
