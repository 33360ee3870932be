"""Where the bytes of a run went: by kind and role, by the link that held them back, by dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p import records
from p2p.log import Log
from p2p.table import Table
from scenarios.roles import Roles, leaders, led_by
from scenarios.traffic import bytes_by_round, late, stalls, wasted_per_message

_PHRASES = {
    "uplink": "their senders' uplinks",
    "downlink": "receivers' downlinks",
    "latency": "nothing but distance",
}


def by_kind(log: Log) -> dict[str, dict[str, Any]]:
    """For each kind that was sent: bytes, mean per round, share of all, overhead and waste."""
    messages = log.messages
    rounds = np.array([record["round"] for record in log.rounds], dtype=np.int64)
    in_rounds = bytes_by_round(messages, rounds).sum(axis=0)
    wasted, everything = wasted_per_message(messages), max(int(messages["size_bytes"].sum()), 1)
    told = {}
    for code, kind in enumerate(records.KINDS):
        rows = messages["kind"] == code
        if rows.any():
            sent = int(messages["size_bytes"][rows].sum())
            told[kind] = {
                "messages": int(rows.sum()),
                "sent": sent,
                "per_round": float(in_rounds[code] / len(rounds)) if len(rounds) else None,
                "share": sent / everything,
                "overhead": int(messages["overhead_bytes"][rows].sum()),
                "wasted": int(wasted[rows].sum()),
            }
    return told


def by_role(log: Log, roles: Roles) -> dict[str, dict[str, dict[str, int]]]:
    """Bytes sent and received by kind, for every role; a client counts as leader in the rounds it leads."""
    messages = log.messages
    arrived = np.isin(messages["outcome"], (records.OUTCOME["delivered"], records.OUTCOME["rejected"]))
    told: dict[str, dict[str, dict[str, int]]] = {}
    for direction, end, rows in (("sent", "sender", arrived | True), ("received", "receiver", arrived)):
        role = _role_of(log, roles, end)
        for name in np.unique(role[rows]).tolist():
            mine = rows & (role == name)
            sizes = np.bincount(messages["kind"][mine], messages["size_bytes"][mine], len(records.KINDS))
            kinds = {kind: int(size) for kind, size in zip(records.KINDS, sizes, strict=True) if size}
            told.setdefault(name, {"sent": {}, "received": {}})[direction] = kinds
    told.pop("nobody", None)
    return told


def _role_of(log: Log, roles: Roles, end: str) -> NDArray[np.str_]:
    nodes = log.messages[end]
    distinct, place = np.unique(nodes, return_inverse=True)
    names = ["nobody" if node == records.NOBODY else roles.role(node) for node in distinct.tolist()]
    role = np.array(names, dtype="<U8")[place]
    role[led_by(log.messages["round"], nodes, leaders(log)) & (role == "client")] = "leader"
    return role


def held_back(log: Log) -> dict[str, Any]:
    """Which links held data back: shares of all data bytes that arrived, and of those that came too late."""
    messages = log.messages
    delivered = messages["outcome"] == records.OUTCOME["delivered"]
    data = delivered & (messages["kind"] != records.KIND["control"])
    told = {"all": _shares(messages, data), "late": _shares(messages, late(messages))}
    return told | {"sentence": _sentence(told)}


def _shares(messages: Table, rows: NDArray[np.bool_]) -> dict[str, float]:
    sizes = np.bincount(messages["bottleneck"][rows], messages["size_bytes"][rows], len(records.BOTTLENECKS))
    whole = sizes.sum()
    named = zip(records.BOTTLENECKS, sizes, strict=True)
    return {word or "unknown": float(size / whole) for word, size in named if size}


def _sentence(told: dict[str, dict[str, float]]) -> str:
    what, shares = ("late", told["late"]) if told["late"] else ("data", told["all"])
    if not shares:
        return "no data arrived."
    link = max(shares, key=lambda word: shares[word])
    return f"{shares[link]:.0%} of the {what} bytes waited for {_PHRASES.get(link, 'an unknown link')}."


def dropout_costs(log: Log) -> list[dict[str, Any]]:
    """What each dropout cost: updates that aggregations lacked, bytes wasted on them, seconds waited for them.

    Seconds: the longest stall among the aggregations that lacked the update, and among those who had sent theirs in
    vain to a leader that was lost. Several dropouts of one round can have cost the same seconds: these do not add up.
    """
    dropouts, stalled_s = log.dropouts, _stalled(log)
    wasted, in_vain = _wasted_updates(log, "origin"), _wasted_updates(log, "destination")
    missing: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero(dropouts["what"] == records.WHAT["missing"]).tolist():
        key = (int(dropouts["round"][row]), int(dropouts["node"][row]))
        missing.setdefault(key, []).append(int(dropouts["aggregator"][row]))
    costs = []
    for row in np.flatnonzero(dropouts["what"] == records.WHAT["dropout"]).tolist():
        number, node = int(dropouts["round"][row]), int(dropouts["node"][row])
        lacking = missing.get((number, node), [])
        costs.append(
            {
                "round": number,
                "node": node,
                "reason": records.DROPOUT_REASONS[dropouts["reason"][row]],
                "at_s": float(dropouts["at_s"][row]),
                "lost_updates": len(lacking),
                "wasted_bytes": wasted.get((number, node), 0) + in_vain.get((number, node), 0),
                "stalled_s": max(
                    (stalled_s.get((number, other), 0.0) for other in {*lacking, *_sent_in_vain(log, number, node)}),
                    default=0.0,
                ),
            }
        )
    return costs


def _sent_in_vain(log: Log, round_number: int, aggregator: int) -> list[int]:
    """Whose updates to this node were of no use in a round."""
    messages = log.messages
    rows = (messages["round"] == round_number) & (messages["destination"] == aggregator) & ~messages["used"]
    found: list[int] = np.unique(messages["origin"][rows & (messages["kind"] == records.KIND["update"])]).tolist()
    return found


def _wasted_updates(log: Log, end: str) -> dict[tuple[int, int], int]:
    """Bytes wasted on updates, by round and by who sent them or whom they were for."""
    messages, sums = log.messages, dict[tuple[int, int], int]()
    wasted = np.where(messages["kind"] == records.KIND["update"], wasted_per_message(messages), 0)
    for row in np.flatnonzero(wasted).tolist():
        key = (int(messages["round"][row]), int(messages[end][row]))
        sums[key] = sums.get(key, 0) + int(wasted[row])
    return sums


def _stalled(log: Log) -> dict[tuple[int, int], float]:
    found, longest = stalls(log), dict[tuple[int, int], float]()
    columns = (found[name].tolist() for name in ("round", "node", "stalled_s"))
    for number, node, stalled_s in zip(*columns, strict=True):
        longest[number, node] = max(longest.get((number, node), 0.0), stalled_s)
    return longest
