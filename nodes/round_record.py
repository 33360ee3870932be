"""The record of one round, and the log rows derived from it when the round ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.log import Log
from p2p.log.records import KIND, MISSING, NO_NODE, OUTCOME, REASON, UNCONNECTED
from topologies.edge_arrays import group_starts, stable_order

Nodes = NDArray[np.int64]
Edges = NDArray[np.int64]

_SPAN_OF_KIND = {"update": "send", "handover": "send", "share": "share", "model": "broadcast"}


@dataclass(slots=True)
class RoundRecord:
    """One round as it happened: its cohort, its planned edges, and the time of each aggregation.

    Attributes:
        addresses: the round's addresses, also of nodes to which its set-up gave one
        assigned: the nodes that have an assignment of the round, for each of its plans
        proposed: the averages for which leaders have asked for a commit and have none: contributors and time, by leader
    """

    round_number: int
    start_s: float
    cohort: Nodes
    leader: int
    edges: Mapping[str, Edges]
    addresses: Mapping[int, bytes] = field(default_factory=dict)
    assigned: list[Sequence[int]] = field(default_factory=list)
    aggregated_s: dict[int, float] = field(default_factory=dict)
    proposed: dict[int, tuple[list[int], float]] = field(default_factory=dict)
    crashed: set[int] = field(default_factory=set)
    first_row: int = 0
    first_aggregation: int = 0
    end_s: float = np.nan
    skipped: bool = False
    used: int = 0
    missing: int = 0
    _nodes: dict[bytes, int] = field(default_factory=dict)

    def nodes_of(self, addresses: Sequence[bytes]) -> list[int]:
        """Returns the node behind each address of this round."""
        try:
            return [self._nodes[address] for address in addresses]
        except KeyError:
            # Addresses are added when a round is re-planned, so the inverse is made again at the first unknown one.
            self._nodes = {address: node for node, address in self.addresses.items()}
        return [self._nodes[address] for address in addresses]

    def propose(self, leader: int, contributors: list[int], at_s: float) -> None:
        """Records that a leader has averaged these contributions and asks the proxy to commit the result."""
        # After the round has closed this has no effect: a deposed leader may average without having learned of it.
        self.proposed[leader] = contributors, at_s

    def add_aggregation(self, log: Log, aggregator: int, contributors: Sequence[int], now_s: float) -> None:
        """Logs an aggregation; one that had to be committed first took place when it was proposed."""
        _, at_s = self.proposed.pop(aggregator, ((), now_s))
        self._log_aggregation(log, aggregator, contributors, at_s, void=False)
        self.aggregated_s[aggregator] = at_s

    def _log_aggregation(
        self, log: Log, aggregator: int, contributors: Sequence[int], at_s: float, *, void: bool
    ) -> None:
        rows = [(self.round_number, aggregator, contributor, at_s, void) for contributor in contributors]
        log.aggregations.add_all(rows)

    def close(self, log: Log, end_s: float) -> None:
        """Derives void aggregations, sending spans, missing updates and dropouts from what happened; logs them."""
        self.end_s = end_s
        for leader, (contributors, at_s) in self.proposed.items():
            self._log_aggregation(log, leader, contributors, at_s, void=True)
        self.skipped = not self.aggregated_s
        rows = self.first_row + np.flatnonzero(log.messages["round"][self.first_row :] == self.round_number)
        _record_sending(log, self.round_number, rows, end_s)
        self._record_missing(log, rows)

    def _record_missing(self, log: Log, rows: NDArray[np.int64]) -> None:
        columns = log.messages
        updates = rows[columns["kind"][rows] == KIND["update"]]
        self.crashed |= self._unreachable(log, rows)
        heard = self._contributions(log)
        self.used = len(heard)
        reasons: dict[int, set[str]] = {}
        edges = self.edges.get("update", np.empty((0, 2), dtype=np.int64))
        for sender, receiver in edges[~_among(_pairs(edges[:, 0], edges[:, 1]), heard)].tolist():
            # A crash explains everything that follows from it, so it comes before the fate of single messages.
            reason = "crashed" if sender in self.crashed else _why_missing(log, updates, sender, receiver)
            reasons.setdefault(sender, set()).add(reason)
            if receiver in self.aggregated_s:
                at_s = self.aggregated_s[receiver]
                log.dropout("missing", self.round_number, sender, reason, at_s, receiver)
                self.missing += 1
        # The upper half of a pair is the sender (see `_pairs`).
        self._record_dropouts(log, heard >> 32, reasons)

    def _unreachable(self, log: Log, rows: NDArray[np.int64]) -> set[int]:
        """Returns the members that went down between their answer and their assignment, and so never took part."""
        columns = log.messages
        missed = rows[(columns["kind"][rows] == KIND["control"]) & (columns["reason"][rows] == REASON["receiver_down"])]
        if not len(missed):
            return set()  # the usual case: nothing to look up among all updates
        sent = columns["origin"][rows[columns["kind"][rows] == KIND["update"]]]
        return set(np.setdiff1d(np.intersect1d(columns["destination"][missed], self.cohort), sent).tolist())

    def _contributions(self, log: Log) -> NDArray[np.int64]:
        """Returns the distinct pairs (contributor, aggregator) without void aggregations and own updates."""
        contributors, aggregators = self.averaged(log).T
        pairs: NDArray[np.int64] = np.sort(_pairs(contributors, aggregators)[contributors != aggregators])
        twice = np.flatnonzero(pairs[1:] == pairs[:-1])
        return np.delete(pairs, twice) if len(twice) else pairs

    def averaged(self, log: Log, *, void: bool = False) -> Edges:
        """Returns rows (contributor, aggregator) of this round's aggregations, without void ones unless asked for."""
        table, here = log.aggregations, slice(self.first_aggregation, None)
        rows = table["round"][here] == self.round_number
        if not void:
            rows &= ~table["void"][here]
        ends = [table[end][here][rows] for end in ("contributor", "aggregator")]
        return np.column_stack(ends).astype(np.int64)

    def _record_dropouts(self, log: Log, contributors: Nodes, reasons: dict[int, set[str]]) -> None:
        unconnected = self._unconnected()
        for member in self.cohort[~_among(self.cohort, contributors)].tolist():
            leads = member == self.leader and member in self.aggregated_s
            if not leads:
                late = UNCONNECTED if member in unconnected else "late"
                usual = "crashed" if member in self.crashed else late
                # `MISSING` is in order of precedence: a member with several reasons counts under the first.
                reason = next((word for word in MISSING if word in reasons.get(member, ())), usual)
                log.dropout("dropout", self.round_number, member, reason, self.end_s)

    def _unconnected(self) -> set[int]:
        """Returns the members whom the graph gives no neighbour to send to."""
        # Not with a leader: a plan after an election has no edges of members that have sent before.
        if self.leader != NO_NODE or "update" not in self.edges:
            return set()
        return set(self.cohort[~np.isin(self.cohort, self.edges["update"][:, 0])].tolist())

    def row(self) -> dict[str, Any]:
        """Returns the round's row in `rounds.parquet`, without the columns that learning adds."""
        return {
            "round": self.round_number,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "cohort": len(self.cohort),
            "leader": self.leader,
            "updates_used": self.used,
            "updates_missing": self.missing,
            "skipped": self.skipped,
        }


def _record_sending(log: Log, round_number: int, rows: NDArray[np.int64], end_s: float) -> None:
    """Logs one span per sender and kind: from the first hand-over to the last byte off its uplink."""
    columns = log.messages
    for kind, name in _SPAN_OF_KIND.items():
        of_kind = rows[columns["kind"][rows] == KIND[kind]]
        of_kind = of_kind[columns["sender"][of_kind] == columns["origin"][of_kind]]  # relays only pass on
        senders = columns["sender"][of_kind]
        # Bytes that have not left when the round ends keep the sender busy until then.
        left_s = np.where(np.isnan(columns["left_s"][of_kind]), end_s, columns["left_s"][of_kind])
        order = stable_order(senders)
        if len(order):
            firsts = group_starts(senders[order])
            start_s = np.minimum.reduceat(columns["sent_s"][of_kind][order], firsts)
            ends_s = np.maximum.reduceat(left_s[order], firsts)
            log.span_each(senders[order][firsts], round_number, name, start_s, ends_s)


def _pairs(senders: Nodes, receivers: Nodes) -> NDArray[np.int64]:
    """Encodes each edge (sender, receiver) as one integer; node numbers fit in 31 bits."""
    return senders << 32 | receivers


def _among(values: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Returns which values are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(values), dtype=np.bool_)
    found: NDArray[np.bool_] = known[np.searchsorted(known, values).clip(max=len(known) - 1)] == values
    return found


def _why_missing(log: Log, updates: NDArray[np.int64], sender: int, receiver: int) -> str:
    """Returns the first applicable reason for an update that was expected and not used."""
    columns = log.messages
    rows = updates[(columns["origin"][updates] == sender) & (columns["destination"][updates] == receiver)]
    outcomes, reasons = columns["outcome"][rows], columns["reason"][rows]
    first_hop, last_hop = columns["sender"][rows] == sender, columns["receiver"][rows] == receiver
    # A relay that is down loses the message; only an end that is down has crashed.
    if (first_hop & (reasons == REASON["sender_down"])).any() or (
        last_hop & (reasons == REASON["receiver_down"])
    ).any():
        return "crashed"
    if (reasons == REASON["partition"]).any():
        return "partitioned"
    if (outcomes == OUTCOME["rejected"]).any():
        return "rejected"
    arrived = (last_hop & (outcomes == OUTCOME["delivered"])).any()
    if len(rows) and not arrived and not (outcomes == OUTCOME["in_flight"]).any():
        return "lost"
    return "late"
