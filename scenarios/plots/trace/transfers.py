"""Trace events of messages, losses, bytes in flight and accuracy.

Messages are asynchronous pairs with arrows, losses are instants, the others are counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from scenarios.plots.trace.spans import Busy, covered
from scenarios.report.data.run_data import RunData

_NODES, _RUN = 1, 2
_EVENTS_EACH = 6
"""At most this many events per message: a pair, an arrow's two ends, and two anchors."""
Event = dict[str, Any]


def transfer_events(
    run_data: RunData, nodes: NDArray[np.int64], rounds: Sequence[int] | None, busy: Busy, room: int | None
) -> tuple[list[Event], int]:
    """Returns the events of the messages between `nodes`, and how many were left out, control messages first."""
    messages = run_data.log.messages
    chosen = np.isin(messages["sender"], nodes) & np.isin(messages["receiver"], nodes)
    if rounds is not None:
        chosen &= np.isin(messages["round"], rounds)
    rows = np.flatnonzero(chosen)
    most = len(rows) if room is None else room // _EVENTS_EACH
    if len(rows) > most:
        control = messages["kind"][rows] == records.KIND["control"]
        # Data before control, earlier before later; then back to log order.
        rows = np.sort(rows[np.lexsort((messages["sent_s"][rows], control))][:most])
    events: list[Event] = []
    anchors: set[tuple[int, int]] = set()
    for row in rows.tolist():
        events += _message(run_data, row, busy, anchors)
    return events, int(np.count_nonzero(chosen)) - len(rows)


def _message(run_data: RunData, row: int, busy: Busy, anchors: set[tuple[int, int]]) -> list[Event]:
    messages = run_data.log.messages
    kind, outcome = records.KINDS[messages["kind"][row]], records.OUTCOMES[messages["outcome"][row]]
    sender, receiver = int(messages["sender"][row]), int(messages["receiver"][row])
    sent_us = round(float(messages["sent_s"][row]) * 1e6)
    at = {
        "pid": _NODES,
        "tid": sender,
        "cat": "transfer",
        "name": f"{kind} to {run_data.label(receiver)}",
        "ts": sent_us,
    }
    details = {"bytes": int(messages["size_bytes"][row]), "round": int(messages["round"][row]), "outcome": outcome}
    arrived_s = float(messages["arrived_s"][row])
    if not np.isfinite(arrived_s):
        reason = records.REASONS[messages["reason"][row]]
        name = f"{kind} {outcome.replace('_', ' ')}{f': {reason}' if reason else ''}"
        return [{**at, "ph": "i", "s": "t", "name": name, "args": {**details, "receiver": run_data.label(receiver)}}]
    # Rounding must not let a message arrive before it was sent.
    arrived_us = max(sent_us, round(arrived_s * 1e6))
    pair = {**at, "id": f"m{row}"}
    arrow = {"cat": "message", "name": kind, "id": row, "pid": _NODES}
    return [
        {**pair, "ph": "b", "args": details},
        {**pair, "ph": "e", "ts": arrived_us},
        *_anchor(busy, anchors, sender, sent_us, f"send {kind}"),
        *_anchor(busy, anchors, receiver, arrived_us, f"receive {kind}"),
        {**arrow, "ph": "s", "tid": sender, "ts": sent_us},
        {**arrow, "ph": "f", "bp": "e", "tid": receiver, "ts": arrived_us},
    ]


def _anchor(busy: Busy, anchors: set[tuple[int, int]], node: int, at_us: int, name: str) -> list[Event]:
    """Returns a slice of one microsecond for an arrow to attach to, if the node has none at that time."""
    if (node, at_us) in anchors or covered(busy, node, at_us):
        return []
    anchors.add((node, at_us))
    return [{"ph": "X", "pid": _NODES, "tid": node, "name": name, "ts": at_us, "dur": 1}]


def counter_events(run_data: RunData, rounds: Sequence[int] | None, most: int) -> list[Event]:
    """Returns counters of bytes in flight (at most `most` samples) and of mean accuracy after each round."""
    events = [
        {"ph": "C", "pid": _RUN, "name": "accuracy", "ts": round(record["end_s"] * 1e6), "args": {"mean": mean}}
        for record in run_data.log.rounds
        if (mean := record.get("accuracy_after_mean")) is not None and (rounds is None or record["round"] in rounds)
    ]
    times_us, flying = bytes_in_flight(run_data, rounds)
    keep = np.unique(np.linspace(0, len(times_us) - 1, min(most, len(times_us))).astype(np.int64))
    for place in keep.tolist():
        amount = {"bytes": int(flying[place])}
        events.append({"ph": "C", "pid": _RUN, "name": "bytes in flight", "ts": int(times_us[place]), "args": amount})
    return events


def bytes_in_flight(run_data: RunData, rounds: Sequence[int] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns all send and arrival times of messages that arrive, and the bytes in flight just after each."""
    messages = run_data.log.messages
    chosen = np.isfinite(messages["arrived_s"])
    if rounds is not None:
        chosen &= np.isin(messages["round"], rounds)
    rows = np.flatnonzero(chosen)
    moments = np.concatenate([messages["sent_s"][rows], messages["arrived_s"][rows]])
    times_us = np.rint(moments * 1e6).astype(np.int64)
    changes = np.concatenate([messages["size_bytes"][rows], -messages["size_bytes"][rows]])
    order = np.argsort(times_us, kind="stable")
    # Several changes at one time count as one: the sum after the last of them.
    distinct, first = np.unique(times_us[order], return_index=True)
    ends = np.append(first[1:], len(order)) - 1 if len(order) else first
    return distinct, np.cumsum(changes[order])[ends] if len(order) else distinct
