"""Bytes of a run by kind, by role, by bottleneck link and by dropout; its seconds by step and node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.column_table import Table
from p2p.log.log import Log
from scenarios.metrics.communication.critical_path import CriticalStep, critical_paths
from scenarios.metrics.communication.roles import Roles, leaders, led_by
from scenarios.metrics.communication.traffic import (
    bytes_by_round,
    late,
    message_totals,
    stalled_s,
    stalls,
    wasted_per_message,
)

_NO_NODE = "no node"
"""Receiver of messages to an address that no node has."""
_PHRASES = {
    "uplink": "their senders' uplinks",
    "downlink": "receivers' downlinks",
    "latency": "nothing but distance",
}


def cost_by_cause(log: Log, roles: Roles) -> dict[str, Any]:
    """Returns messages, bytes and seconds of a log by cause, and the cost of its dropouts, as plain data."""
    counts, sizes = message_totals(log.messages)
    return {
        "rounds": [record["round"] for record in log.rounds],
        "messages": counts,
        "bytes": sizes | {"goodput_bytes_per_s": _goodput(log)},
        "by_kind": by_kind(log),
        "by_role": by_role(log, roles),
        "seconds": _seconds(log, roles),
        "links": bytes_by_bottleneck(log),
        "dropouts": dropout_costs(log),
    }


def by_kind(log: Log) -> dict[str, dict[str, Any]]:
    """Returns for each message kind its bytes, mean per round, share of the total, overhead and waste."""
    messages = log.messages
    rounds = np.array([record["round"] for record in log.rounds], dtype=np.int64)
    # Messages outside the rounds, such as those with the first model, are in `sent` and not in the mean per round.
    in_rounds = bytes_by_round(messages, rounds).sum(axis=0)
    wasted, everything = wasted_per_message(messages), max(int(messages["size_bytes"].sum()), 1)
    costs = {}
    for code, kind in enumerate(records.KINDS):
        rows = messages["kind"] == code
        if rows.any():
            sent = int(messages["size_bytes"][rows].sum())
            costs[kind] = {
                "messages": int(rows.sum()),
                "sent": sent,
                "per_round": float(in_rounds[code] / len(rounds)) if len(rounds) else None,
                "share": sent / everything,
                "overhead": int(messages["overhead_bytes"][rows].sum()),
                "wasted": int(wasted[rows].sum()),
            }
    return costs


def by_role(log: Log, roles: Roles) -> dict[str, dict[str, dict[str, int]]]:
    """Returns bytes sent and received by kind for every role; a client counts as leader in the rounds it leads."""
    messages = log.messages
    arrived = np.isin(messages["outcome"], (records.OUTCOME["delivered"], records.OUTCOME["rejected"]))
    totals: dict[str, dict[str, dict[str, int]]] = {}
    # Everything sent counts for the sender, only arrivals for the receiver.
    for direction, end, rows in (("sent", "sender", arrived | True), ("received", "receiver", arrived)):
        role = _role_of(log, roles, end)
        for name in np.unique(role[rows]).tolist():
            mine = rows & (role == name)
            sizes = np.bincount(messages["kind"][mine], messages["size_bytes"][mine], len(records.KINDS))
            kinds = {kind: int(size) for kind, size in zip(records.KINDS, sizes, strict=True) if size}
            totals.setdefault(name, {"sent": {}, "received": {}})[direction] = kinds
    # Messages to an unknown address have no receiving node.
    totals.pop(_NO_NODE, None)
    return totals


def _role_of(log: Log, roles: Roles, end: str) -> NDArray[np.str_]:
    nodes = log.messages[end]
    distinct, place = np.unique(nodes, return_inverse=True)
    names = [_NO_NODE if node == records.NO_NODE else roles.role(node) for node in distinct.tolist()]
    role = np.array(names, dtype="<U8")[place]
    # Only clients: a server that aggregates keeps its own role.
    role[led_by(log.messages["round"], nodes, leaders(log)) & (role == "client")] = "leader"
    return role


def bytes_by_bottleneck(log: Log) -> dict[str, Any]:
    """Returns the bottleneck links as fractions of all delivered data bytes, and of the late ones."""
    messages = log.messages
    delivered = messages["outcome"] == records.OUTCOME["delivered"]
    data = delivered & (messages["kind"] != records.KIND["control"])
    fractions = {"all": _fractions(messages, data), "late": _fractions(messages, late(messages))}
    return fractions | {"sentence": _sentence(fractions)}


def _fractions(messages: Table, rows: NDArray[np.bool_]) -> dict[str, float]:
    sizes = np.bincount(messages["bottleneck"][rows], messages["size_bytes"][rows], len(records.BOTTLENECKS))
    total = sizes.sum()
    named = zip(records.BOTTLENECKS, sizes, strict=True)
    return {word or "unknown": float(size / total) for word, size in named if size}


def _sentence(fractions: dict[str, dict[str, float]]) -> str:
    # Late bytes say more about a problem than all bytes do.
    what, links = ("late", fractions["late"]) if fractions["late"] else ("data", fractions["all"])
    if not links:
        return "no data arrived."
    link = max(links, key=lambda word: links[word])
    return f"{links[link]:.0%} of the {what} bytes waited for {_PHRASES.get(link, 'an unknown link')}."


def dropout_costs(log: Log) -> list[dict[str, Any]]:
    """Returns the cost of each dropout: missing updates, bytes wasted on them, and seconds stalled.

    The seconds are the longest stall among the aggregations that lacked the update, and among the nodes that had sent
    theirs to a lost leader. Dropouts of one round may share the same stall, so these seconds do not add up.
    """
    dropouts, longest_s = log.dropouts, _stalled(log)
    wasted, unused = _wasted_updates(log, "origin"), _wasted_updates(log, "destination")
    missing: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero(dropouts["what"] == records.WHAT["missing"]).tolist():
        key = (int(dropouts["round"][row]), int(dropouts["node"][row]))
        missing.setdefault(key, []).append(int(dropouts["aggregator"][row]))
    costs = []
    for row in np.flatnonzero(dropouts["what"] == records.WHAT["dropout"]).tolist():
        number, node = int(dropouts["round"][row]), int(dropouts["node"][row])
        # The aggregators that should have had this node's update.
        lacking = missing.get((number, node), [])
        costs.append(
            {
                "round": number,
                "node": node,
                "reason": records.DROPOUT_REASONS[dropouts["reason"][row]],
                "at_s": float(dropouts["at_s"][row]),
                "lost_updates": len(lacking),
                "wasted_bytes": wasted.get((number, node), 0) + unused.get((number, node), 0),
                "stalled_s": max(
                    (longest_s.get((number, other), 0.0) for other in {*lacking, *_unused_senders(log, number, node)}),
                    default=0.0,
                ),
            }
        )
    return costs


def _unused_senders(log: Log, round_number: int, aggregator: int) -> list[int]:
    """Returns the nodes whose updates to this aggregator were not used in a round."""
    messages = log.messages
    rows = (messages["round"] == round_number) & (messages["destination"] == aggregator) & ~messages["used"]
    found: list[int] = np.unique(messages["origin"][rows & (messages["kind"] == records.KIND["update"])]).tolist()
    return found


def _wasted_updates(log: Log, end: str) -> dict[tuple[int, int], int]:
    """Returns the bytes wasted on updates, by round and origin or destination node."""
    messages, sums = log.messages, dict[tuple[int, int], int]()
    # Updates alone, since dropouts are about them.
    wasted = np.where(messages["kind"] == records.KIND["update"], wasted_per_message(messages), 0)
    for row in np.flatnonzero(wasted).tolist():
        key = (int(messages["round"][row]), int(messages[end][row]))
        sums[key] = sums.get(key, 0) + int(wasted[row])
    return sums


def _stalled(log: Log) -> dict[tuple[int, int], float]:
    """Returns the longest stall by round and node."""
    found, longest = stalls(log), dict[tuple[int, int], float]()
    columns = (found[name].tolist() for name in ("round", "node", "stalled_s"))
    for number, node, stall_s in zip(*columns, strict=True):
        # A node can wait several times in a round, for shares and then for updates.
        longest[number, node] = max(longest.get((number, node), 0.0), stall_s)
    return longest


def _goodput(log: Log) -> float | None:
    """Returns used data bytes, without sealing overhead, per simulated second of the rounds."""
    duration_s = sum(record["end_s"] - record["start_s"] for record in log.rounds)
    messages = log.messages
    delivered = messages["outcome"] == records.OUTCOME["delivered"]
    useful = delivered & (messages["kind"] != records.KIND["control"]) & ~late(messages)
    # What users asked to have moved: neither control messages nor the bytes of sealing.
    payload_bytes = (messages["size_bytes"] - messages["overhead_bytes"])[useful].sum()
    return float(payload_bytes / duration_s) if duration_s > 0 else None


def _seconds(log: Log, roles: Roles) -> dict[str, Any]:
    paths = list(critical_paths(log, roles.node("proxy")))
    duration_s = sum(record["end_s"] - record["start_s"] for record, _ in paths)
    steps = [step for _, path in paths for step in path]
    return {
        "per_round_s": duration_s / len(paths) if paths else None,
        "stalled_s": stalled_s(log),
        "by_what": _by_what(steps, len(paths), duration_s),
        "who": _who([path for _, path in paths], roles),
        "paths": [{"round": record["round"], "steps": [_plain(step) for step in path]} for record, path in paths],
    }


def _by_what(steps: Sequence[CriticalStep], rounds: int, duration_s: float) -> dict[str, dict[str, float]]:
    """Returns the seconds of the critical paths by type of step, largest first."""
    sums: dict[str, float] = {}
    for step in steps:
        sums[step.what] = sums.get(step.what, 0.0) + step.duration_s
    # Stable: equal sums stay in the order in which their steps came.
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    return {what: {"per_round_s": sum_s / rounds, "share": sum_s / duration_s} for what, sum_s in ordered if sum_s}


def _who(paths: Sequence[Sequence[CriticalStep]], roles: Roles) -> list[dict[str, Any]]:
    """Returns nodes by their seconds on critical paths, longest first, with the longest type of step at each."""
    nodes: dict[int, dict[str, float]] = {}
    rounds: dict[int, set[int]] = {}
    for number, path in enumerate(paths):
        for step in path:
            sums = nodes.setdefault(step.blamed, {})
            sums[step.what] = sums.get(step.what, 0.0) + step.duration_s
            rounds.setdefault(step.blamed, set()).add(number)
    entries: list[dict[str, Any]] = []
    for node, by_what in nodes.items():
        # On a tie the step that came first.
        mostly = max(by_what, key=by_what.__getitem__)
        at = {"node": node, "role": roles.role(node), "rounds": len(rounds[node])}
        entries.append(at | {"seconds": sum(by_what.values()), "mostly": mostly})
    return sorted(entries, key=lambda entry: (-entry["seconds"], entry["node"]))


def _plain(step: CriticalStep) -> dict[str, Any]:
    entry = {"what": step.what, "node": step.node, "start_s": step.start_s, "end_s": step.end_s}
    return entry if step.receiver is None else entry | {"receiver": step.receiver, "held_back_by": step.held_back_by}
