"""The messages and spans of a run as compact columns, reduced to a size a page can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.traffic import late
from scenarios.report.embed import packed

FATES = ("in_flight", "delivered", "lost", "rejected", "late", "not_sent")
"""The fate of a message: its outcome, or `late` (delivered but unused), or `not_sent` for an unused edge."""
MOST_MESSAGES = 250_000
_LATE, _NOT_SENT = FATES.index("late"), FATES.index("not_sent")
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Message columns sorted by round, and a note on how they were reduced."""

    columns: Columns
    note: str


def collect_message_columns(log: Log, shown: NDArray[np.int64], most: int = MOST_MESSAGES) -> MessageColumns:
    """Returns the messages between `shown` nodes, reduced until at most `most` rows are left.

    First step: one row per (round, sender, receiver, fate). Second step: every n-th round only.
    """
    columns, note = _between(_joined(log), shown), ""
    if len(columns["round"]) > most:
        columns = _summed(columns)
        note = "Messages of one round between the same two nodes with the same outcome are drawn as one."
    if len(columns["round"]) > most:
        columns, kept, of = _some_rounds(columns, most)
        note += f" Only {kept} of {of} rounds are in the page; a smaller run, or `peerveil topology`, shows the others."
    # By round first, since the page looks rounds up by their first row.
    order = np.lexsort((columns["sent_s"], columns["round"]))
    return MessageColumns({name: column[order] for name, column in columns.items()}, note.strip())


def _joined(log: Log) -> Columns:
    """Returns messages with their fate, followed by the graph's edges over which nothing was sent."""
    messages = log.messages
    # FATES starts with the outcomes in their order, so an outcome's code is also its fate.
    fate = np.where(late(messages), _LATE, messages["outcome"]).astype(np.int64)
    sent = {name: messages[name] for name in ("round", "sender", "receiver", "kind", "size_bytes", "sent_s")}
    silent = _unused_edges(log)
    zeros = np.zeros(len(silent["round"]), dtype=np.int64)
    start_s = {record["round"]: record["start_s"] for record in log.rounds}
    # An unused edge has no time of its own; it is drawn at the start of its round.
    began_s = np.array([start_s.get(number, 0.0) for number in silent["round"].tolist()], dtype=np.float64)
    more: Columns = {**silent, "kind": zeros, "size_bytes": zeros, "sent_s": began_s}
    columns: Columns = {name: np.concatenate([sent[name], more[name]]) for name in sent}
    columns["fate"] = np.concatenate([fate, np.full(len(zeros), _NOT_SENT)])
    columns["arrived_s"] = np.concatenate([messages["arrived_s"], np.full(len(zeros), np.nan)])
    columns["count"] = np.concatenate([np.ones(len(messages), dtype=np.int64), zeros])
    return columns


def _unused_edges(log: Log) -> Columns:
    data = log.messages["kind"] != records.KIND["control"]
    # Planned edges are those of data; orders and reports go over no edge of the graph.
    used = _keys(*(log.messages[name][data] for name in ("round", "sender", "receiver")))
    planned = _keys(*(log.graphs[name] for name in ("round", "sender", "receiver")))
    rows = np.flatnonzero(~np.isin(planned, used))
    return {name: log.graphs[name][rows] for name in ("round", "sender", "receiver")}


def _keys(rounds: NDArray[Any], sender: NDArray[Any], receiver: NDArray[Any]) -> NDArray[np.int64]:
    # 21 bits each for round, sender and receiver fill a 63-bit key; node ids from two million on could collide.
    width = np.int64(1 << 21)
    keys: NDArray[np.int64] = (rounds.astype(np.int64) * width + sender) * width + receiver
    return keys


def _between(columns: Columns, shown: NDArray[np.int64]) -> Columns:
    inside = np.isin(columns["sender"], shown) & np.isin(columns["receiver"], shown)
    return {name: column[inside] for name, column in columns.items()}


def _summed(columns: Columns) -> Columns:
    """Merges rows of equal (round, sender, receiver, fate): first sent, last arrived, sums of bytes and counts."""
    keys = _keys(columns["round"], columns["sender"], columns["receiver"]) * len(FATES) + columns["fate"]
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    merged = {name: columns[name][first] for name in ("round", "sender", "receiver", "kind", "fate")}
    # Float sums are exact here: the bytes of one pair and round are far below 2^53.
    merged["size_bytes"] = np.bincount(group, weights=columns["size_bytes"]).astype(np.int64)
    merged["count"] = np.bincount(group, weights=columns["count"]).astype(np.int64)
    merged["sent_s"] = np.full(len(first), np.inf)
    np.minimum.at(merged["sent_s"], group, columns["sent_s"])
    # Minus infinity stands for not arrived while maxima are taken, since NaN would win each of them.
    arrived_s = np.full(len(first), -np.inf)
    np.maximum.at(arrived_s, group, np.where(np.isnan(columns["arrived_s"]), -np.inf, columns["arrived_s"]))
    merged["arrived_s"] = np.where(np.isinf(arrived_s), np.nan, arrived_s)
    return merged


def _some_rounds(columns: Columns, most: int) -> tuple[Columns, int, int]:
    """Keeps every n-th round, with the smallest n that fits; returns the columns, rounds kept, and all rounds."""
    rounds, counts = np.unique(columns["round"], return_counts=True)
    # Every round did not fit, so every second one is the first candidate.
    step = 2
    while counts[::step].sum() > most and step < len(rounds):
        step += 1
    inside = np.isin(columns["round"], rounds[::step])
    return {name: column[inside] for name, column in columns.items()}, len(rounds[::step]), len(rounds)


def pack_by_round(columns: Columns, base_s: dict[int, float]) -> dict[str, Any]:
    """Packs columns sorted by round; `starts` holds the first row of each round.

    Times count from the round's base, since float32 would lose precision late in a long run.
    """
    rounds, starts = np.unique(columns["round"], return_index=True)
    base = np.array([base_s[number] for number in columns["round"].tolist()], dtype=np.float64)
    result: dict[str, Any] = {"rounds": rounds.tolist(), "starts": [*starts.tolist(), len(columns["round"])]}
    for name, column in columns.items():
        # Not merged: the page assumes one message per row.
        if name == "count" and (column == 1).all():
            continue
        if name != "round":
            result[name] = packed(column - base if name.endswith("_s") else column)
    return result
