"""Chart data: bytes by node, and dropouts by reason and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.traffic import bytes_by_node, node_count
from scenarios.report.data.outages import happened_s, outages
from scenarios.report.data.run_data import RunData

MOST_BARS = 200
_BINS = 40
_MOST_MOMENTS = 5000


def traffic_by_node(run_data: RunData) -> dict[str, Any]:
    """Returns bytes sent and received: one bar per node, or a histogram over clients if there are too many."""
    # Services count even if no message names them.
    nodes = max(node_count(run_data.log), run_data.roles.node("server") + 1)
    sent, received = bytes_by_node(run_data.log.messages, nodes)
    busy = np.flatnonzero(sent + received)
    services = busy[busy >= run_data.roles.clients]
    if len(busy) <= MOST_BARS:
        return {"bars": _bars(run_data, busy, sent, received)}
    clients = (sent + received)[: run_data.roles.clients]
    counts, edges = np.histogram(clients, bins=_BINS)
    histogram = {"clients": counts.tolist(), "from_bytes": edges[:-1].tolist(), "to_bytes": edges[1:].tolist()}
    # Services stay visible as bars next to the histogram of clients.
    return {"histogram": histogram, "bars": _bars(run_data, services[:MOST_BARS], sent, received)}


def _bars(run_data: RunData, nodes: NDArray[np.int64], sent: NDArray[Any], received: NDArray[Any]) -> dict[str, Any]:
    return {
        "name": [run_data.label(node) for node in nodes.tolist()],
        "sent": sent[nodes].tolist(),
        "received": received[nodes].tolist(),
    }


def dropout_data(run_data: RunData) -> dict[str, Any]:
    """Returns counts by type, reason and round, and the time within the round of each (evenly sampled if many)."""
    table, word = run_data.log.dropouts, reason_in_words(run_data)
    counts: dict[str, dict[str, dict[str, int]]] = {what: {} for what in records.WHATS}
    keys = np.stack([table["what"], table["reason"], table["round"]], axis=1).astype(np.int64)
    for (what, reason, number), count in zip(*np.unique(keys, axis=0, return_counts=True), strict=True):
        by_round = counts[records.WHATS[what]].setdefault(word(records.DROPOUT_REASONS[reason]), {})
        by_round[str(number)] = int(count)
    return {"counts": counts, "moments": _moments(run_data)}


def reason_in_words(run_data: RunData) -> Callable[[str], str]:
    """Returns how a run's pictures name a reason: without a crash among its faults, nodes went offline by schedule."""
    crashes = any(outage.crashed for outage in outages(run_data))
    return lambda reason: "went offline" if reason == "crashed" and not crashes else reason


def _moments(run_data: RunData) -> dict[str, list[Any]]:
    log, table, word = run_data.log, run_data.log.dropouts, reason_in_words(run_data)
    rows = np.arange(len(table))
    if len(rows) > _MOST_MOMENTS:
        # Evenly spaced and not random: the same run gives the same page.
        rows = np.linspace(0, len(table) - 1, _MOST_MOMENTS).astype(np.int64)
    start_s = {record["round"]: record["start_s"] for record in log.rounds}
    began_s = np.array([start_s.get(number, 0.0) for number in table["round"][rows].tolist()], dtype=np.float64)
    after_s = np.round(happened_s(run_data)[rows] - began_s, 6)
    return {
        "what": [records.WHATS[code] for code in table["what"][rows]],
        "reason": [word(records.DROPOUT_REASONS[code]) for code in table["reason"][rows]],
        "round": table["round"][rows].tolist(),
        "node": table["node"][rows].tolist(),
        "after_s": [float(value) if np.isfinite(value) else None for value in after_s],
    }


def load_by_round(log: Log, clients: int) -> dict[str, Any]:
    """Returns for each round what its busiest client sent and who that is, and what the median sender sent."""
    found: dict[str, Any] = {"round": [], "most": [], "who": [], "median": []}
    messages = log.messages
    sent = messages["sender"] < clients
    for record in log.rounds:
        rows = sent & (messages["round"] == record["round"])
        nodes, place = np.unique(messages["sender"][rows], return_inverse=True)
        sums = np.zeros(len(nodes), dtype=np.int64)
        # In integers, so that byte counts stay exact.
        np.add.at(sums, place, messages["size_bytes"][rows])
        busiest = int(sums.argmax()) if len(nodes) else None
        found["round"].append(int(record["round"]))
        found["most"].append(None if busiest is None else int(sums[busiest]))
        found["who"].append(None if busiest is None else int(nodes[busiest]))
        found["median"].append(None if busiest is None else float(np.median(sums)))
    return found
