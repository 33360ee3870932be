"""Totals over a run's message log: by outcome, round, node and direction, with waste and stalls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.column_table import Table
from p2p.log.log import Log

_KINDS = len(records.KINDS)
_US_PER_S = 1e6
_ALL = slice(None)
Rows = slice | NDArray[Any]


def message_totals(messages: Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns message counts and bytes by outcome, kind and reason.

    Guarantees:
        sent = delivered + lost + rejected + in_flight, for messages and for bytes.
    """
    ones = np.ones(len(messages), dtype=np.int64)
    counts = _totals(messages, ones)
    sizes = _totals(messages, messages["size_bytes"])
    sizes["wasted"] = int(wasted_per_message(messages).sum())
    sizes["overhead"] = int(messages["overhead_bytes"].sum())
    return counts, sizes


def _totals(messages: Table, amounts: NDArray[np.int64]) -> dict[str, Any]:
    outcome = messages["outcome"]
    totals: dict[str, Any] = {"sent": int(amounts.sum())}
    for word in ("delivered", "lost", "rejected", "in_flight"):
        totals[word] = int(amounts[outcome == records.OUTCOME[word]].sum())
    totals["by_kind"] = _by_word(messages["kind"], records.KINDS, amounts)
    for word in ("lost", "rejected"):
        rows = outcome == records.OUTCOME[word]
        by_reason = _by_word(messages["reason"][rows], records.REASONS, amounts[rows])
        totals[f"{word}_by_reason"] = {reason: amount for reason, amount in by_reason.items() if amount}
    return totals


def _by_word(codes: NDArray[Any], words: tuple[str, ...], amounts: NDArray[np.int64]) -> dict[str, int]:
    return {word: int(amounts[codes == code].sum()) for code, word in enumerate(words)}


def late(messages: Table, rows: Rows = _ALL) -> NDArray[np.bool_]:
    """Returns which messages were delivered but not used; control messages always count as used."""
    delivered: NDArray[np.bool_] = messages["outcome"][rows] == records.OUTCOME["delivered"]
    data: NDArray[np.bool_] = messages["kind"][rows] != records.KIND["control"]
    unused: NDArray[np.bool_] = ~messages["used"][rows]
    return delivered & data & unused


def wasted_per_message(messages: Table, rows: Rows = _ALL) -> NDArray[np.int64]:
    """Returns per message the bytes that had left before a loss, or that arrived too late to be used."""
    lost = messages["outcome"][rows] == records.OUTCOME["lost"]
    unused_bytes = np.where(late(messages, rows), messages["size_bytes"][rows], 0)
    return np.where(lost, messages["left_bytes"][rows], unused_bytes)


def messages_by_round(messages: Table, rounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns how many messages were sent in each of `rounds`."""
    row, known = _place(messages["round"], rounds)
    return np.bincount(row[known], minlength=len(rounds))


def bytes_by_round(messages: Table, rounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns bytes sent, [round, kind]."""
    row, known = _place(messages["round"], rounds)
    cells = np.zeros(len(rounds) * _KINDS, dtype=np.int64)
    # In integers: a float64 sum would lose bytes above 2^53.
    np.add.at(cells, row[known] * _KINDS + messages["kind"][known], messages["size_bytes"][known])
    return cells.reshape(len(rounds), _KINDS)


def _place(values: NDArray[Any], rounds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Returns each value's index in `rounds`, and whether it is there at all."""
    if not len(rounds):
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.bool_)
    # Rounds may be a subset in any order, so values are looked up by binary search.
    order = np.argsort(rounds, kind="stable")
    place = order[np.minimum(np.searchsorted(rounds, values, sorter=order), len(rounds) - 1)]
    return place, rounds[place] == values


def bytes_by_node(messages: Table, nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the bytes each node sent, and the bytes that arrived at it, rejected messages included."""
    sent = _sum_at(messages["sender"], messages["size_bytes"], nodes)
    # A rejected message has used the receiver's downlink all the same.
    arrived = np.isin(messages["outcome"], (records.OUTCOME["delivered"], records.OUTCOME["rejected"]))
    return sent, _sum_at(messages["receiver"][arrived], messages["size_bytes"][arrived], nodes)


def _sum_at(nodes: NDArray[Any], amounts: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    # Not np.bincount, whose weights are floats: byte counts stay exact.
    sums = np.zeros(count, dtype=np.int64)
    known = (nodes >= 0) & (nodes < count)
    np.add.at(sums, nodes[known], amounts[known])
    return sums


def node_count(log: Log) -> int:
    """Returns one more than the highest node id in the message log."""
    ends = [log.messages[column].max(initial=-1) for column in ("sender", "receiver")]
    # Not the number of nodes: those that never sent nor received are not in the log.
    return int(max(ends)) + 1


def stalls(log: Log) -> Table:
    """Returns, for every `wait` span, the time from its last useful arrival to its end.

    A wait that ends with the arrival of the last expected message has no stall. A wait that ends at a deadline
    stalls from the last used arrival (or from its own start) to its end. Rows: round, node, stalled_s.
    """
    waits = np.flatnonzero(log.spans["name"] == records.SPAN["wait"])
    node, start_s, end_s = (log.spans[name][waits] for name in ("node", "start_s", "end_s"))
    stalled_s = end_s - np.maximum(start_s, _last_useful_arrival_s(log.messages, node, end_s))
    # Arrivals are compared in whole microseconds, so anything shorter is rounding.
    rows = np.flatnonzero(stalled_s * _US_PER_S >= 1)
    table = Table({"round": "i4", "node": "i4", "stalled_s": "f8"})
    table.extend(len(rows), round=log.spans["round"][waits][rows], node=node[rows], stalled_s=stalled_s[rows])
    return table


def stalled_s(log: Log) -> float:
    """Returns the longest stall of each round, summed over the rounds."""
    # Nodes wait in parallel, so a round loses its longest stall and not the sum.
    found = stalls(log)
    rounds = np.unique(found["round"])
    return float(sum(found["stalled_s"][found["round"] == number].max() for number in rounds))


def _last_useful_arrival_s(messages: Table, node: NDArray[np.int32], at_s: NDArray[np.float64]) -> NDArray[np.float64]:
    delivered = messages["outcome"] == records.OUTCOME["delivered"]
    payload = messages["kind"] != records.KIND["control"]
    useful = np.flatnonzero(delivered & payload & ~late(messages) & (messages["receiver"] >= 0))
    receiver, arrived_s = messages["receiver"][useful], messages["arrived_s"][useful]
    # (node, microsecond) packed into one integer: a single sorted array answers all lookups by binary search.
    latest_s = max(arrived_s.max(initial=0.0), at_s.max(initial=0.0))
    # One more than the latest microsecond, so that a key of one node never reaches into the next.
    width = int(latest_s * _US_PER_S) + 2
    keys = np.sort(receiver * np.int64(width) + _microseconds(arrived_s))
    place = np.searchsorted(keys, node * np.int64(width) + _microseconds(at_s), side="right") - 1
    # The nearest key may belong to another node, which then had no arrival before that time.
    found = (place >= 0) & (keys[place] // width == node) if len(keys) else np.zeros(len(node), dtype=np.bool_)
    return np.where(found, (keys[place] % width) / _US_PER_S if len(keys) else -np.inf, -np.inf)


def _microseconds(time_s: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(time_s * _US_PER_S).astype(np.int64)
