"""When nodes were down, and why: crashed by a fault, or offline by their own schedule; who was elected instead.

The log names the round in which a node came back, and none for one that never did. A picture shows an outage in every
round that it falls into, so times decide here, not rounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.report.data.run_data import RunData

_TOLERANCE_S = 1e-6


class Outage(NamedTuple):
    """A stretch in which a node was down."""

    node: int
    start_s: float
    end_s: float
    crashed: bool

    @property
    def words(self) -> str:
        """What happened: it crashes, or goes offline."""
        return "crashes" if self.crashed else "goes offline"


def outages(run_data: RunData) -> list[Outage]:
    """Returns every outage, in order of time."""
    spans = run_data.log.spans
    rows = np.flatnonzero(spans["name"] == records.SPAN["down"])
    crashes_s = sorted(start_s for start_s, _, kind, _ in run_data.faults if kind == "crash")
    found = []
    for row in rows[np.argsort(spans["start_s"][rows], kind="stable")].tolist():
        start_s = float(spans["start_s"][row])
        # A fault's record names its nodes in words; its instant is enough to tell it from churn.
        crashed = any(abs(start_s - at_s) < _TOLERANCE_S for at_s in crashes_s)
        found.append(Outage(int(spans["node"][row]), start_s, float(spans["end_s"][row]), crashed))
    return found


def down_rows(run_data: RunData) -> dict[str, NDArray[Any]]:
    """Returns rows of `down` spans, one for each round that an outage falls into, cut to that round."""
    columns: dict[str, list[Any]] = {name: [] for name in ("round", "node", "name", "start_s", "end_s")}
    for record in run_data.log.rounds:
        begin_s, until_s = float(record["start_s"]), float(record["end_s"])
        for outage in outages(run_data):
            start_s, end_s = max(outage.start_s, begin_s), min(outage.end_s, until_s)
            # Outages that only touch the round at its border have no length in it.
            if start_s < end_s:
                row = (int(record["round"]), outage.node, records.SPAN["down"], start_s, end_s)
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    kinds = {name: kind for name, kind in records.SPAN_COLUMNS.items() if name in columns}
    return {name: np.array(values, dtype=kinds[name]) for name, values in columns.items()}


def events_of_rounds(run_data: RunData) -> list[list[Any]]:
    """Returns rows `[round, node, at_s, text]` of what has a label: leaders that go, and those elected for them."""
    found: list[list[Any]] = []
    down = outages(run_data)
    for record in run_data.log.rounds:
        number, last = int(record["round"]), record.get("leader", records.NO_NODE)
        leaders = _leaders(run_data.log, number)
        found += [
            [number, outage.node, outage.start_s, f"leader {outage.node} {outage.words}"]
            for outage in down
            if outage.node in leaders and float(record["start_s"]) <= outage.start_s <= float(record["end_s"])
        ]
        if len(leaders) > 1 and last in leaders:
            found.append([number, int(last), _first_order_s(run_data, number, int(last)), f"{last} elected"])
    return found


def _leaders(log: Log, number: int) -> list[int]:
    """Returns the nodes that led a round: receivers of its updates, where the round has a leader at all."""
    if not any(record["round"] == number and record.get("leader", -1) >= 0 for record in log.rounds):
        return []
    here = log.graphs["round"] == number
    return list(dict.fromkeys(log.graphs["receiver"][here].tolist()))


def _first_order_s(run_data: RunData, number: int, node: int) -> float:
    """Returns when the first update of a round was sent to a node that was elected in it."""
    messages = run_data.log.messages
    rows = (messages["round"] == number) & (messages["destination"] == node)
    rows &= messages["kind"] == records.KIND["update"]
    sent_s = messages["sent_s"][rows]
    ends_s = [float(record["end_s"]) for record in run_data.log.rounds if record["round"] == number]
    return float(sent_s.min()) if len(sent_s) else ends_s[0]


def happened_s(run_data: RunData) -> NDArray[np.float64]:
    """Returns for each row of the dropouts table when it happened; the log has the closing of the round for dropouts.

    A node that went down dropped out then; a lost update when it was lost; a late one when its receiver went on.
    """
    log, table = run_data.log, run_data.log.dropouts
    at_s = table["at_s"].astype(np.float64).copy()
    bounds = {int(record["round"]): (float(record["start_s"]), float(record["end_s"])) for record in log.rounds}
    down: dict[int, list[float]] = {}
    for outage in outages(run_data):
        down.setdefault(outage.node, []).append(outage.start_s)
    for row in np.flatnonzero(table["what"] == records.WHAT["dropout"]).tolist():
        number, node = int(table["round"][row]), int(table["node"][row])
        low_s, high_s = bounds.get(number, (-np.inf, np.inf))
        reason = records.DROPOUT_REASONS[table["reason"][row]]
        times = [one_s for one_s in down.get(node, ()) if low_s <= one_s <= high_s] if reason == "crashed" else []
        if reason in ("lost", "partitioned", "rejected"):
            times = _ends_of_updates(log, number, node)
        if reason == "late":
            missed = (table["round"] == number) & (table["node"] == node) & (table["what"] == records.WHAT["missing"])
            times = table["at_s"][missed].tolist()
        if times:
            # The last of them: until then the update could still have been used.
            at_s[row] = min(max(times), high_s)
    return at_s


def _ends_of_updates(log: Log, number: int, node: int) -> list[float]:
    messages = log.messages
    rows = (messages["round"] == number) & (messages["origin"] == node)
    rows &= messages["kind"] == records.KIND["update"]
    ends_s = np.where(np.isnan(messages["arrived_s"][rows]), messages["left_s"][rows], messages["arrived_s"][rows])
    return [float(end_s) for end_s in ends_s if np.isfinite(end_s)]
