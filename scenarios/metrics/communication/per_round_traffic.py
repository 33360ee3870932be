"""What a round costs one client: bytes up and down, for the client in the middle and for the worst off."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.roles import leaders


def traffic_per_round(log: Log, clients: int) -> dict[str, Any]:
    """Returns for `up` and `down`: the median over clients of their mean round, and the most in one round, with whose.

    Only messages of rounds count, not those of set-up and collection.
    """
    numbers = np.array([record["round"] for record in log.rounds], dtype=np.int64)
    messages = log.messages
    in_rounds = np.isin(messages["round"], numbers)
    arrived = np.isin(messages["outcome"], (records.OUTCOME["delivered"], records.OUTCOME["rejected"]))
    return {
        "up": _spread(log, "sender", in_rounds, clients, len(numbers)),
        "down": _spread(log, "receiver", in_rounds & arrived, clients, len(numbers)),
    }


def _spread(log: Log, end: str, rows: NDArray[np.bool_], clients: int, rounds: int) -> dict[str, Any]:
    messages = log.messages
    node = messages[end][rows].astype(np.int64)
    known = (node >= 0) & (node < clients)
    node, sizes = node[known], messages["size_bytes"][rows][known]
    number = messages["round"][rows][known].astype(np.int64)
    if not rounds or not clients:
        return {"median": None, "worst": None, "worst_is": None}
    totals = np.zeros(clients, dtype=np.int64)
    np.add.at(totals, node, sizes)
    found: dict[str, Any] = {"median": float(np.median(totals) / rounds), "worst": None, "worst_is": None}
    if len(node):
        # One key per client and round; sums stay whole numbers.
        width = int(number.max()) + 1
        keys, place = np.unique(node * width + number, return_inverse=True)
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, place, sizes)
        worst = int(sums.argmax())
        who, when = divmod(int(keys[worst]), width)
        role = "leader" if leaders(log).get(when) == who else "member"
        found |= {"worst": int(sums[worst]), "worst_is": {"node": who, "round": when, "role": role}}
    return found
