"""Assignments: a round plan as seen by each member, with its own address and its peers' addresses and keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nodes.messaging.control_messages import Assignment, Peer, assignment_bytes
from nodes.messaging.planned_messages import Routes, both_ways
from nodes.protocols.api import RoundPlan
from topologies.edge_arrays import distinct

_LOWER_HALF = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class RoundTerms:
    """The terms common to all assignments of a round.

    Attributes:
        keyed: whether members have keys: without sealing there are none
        whole_graph: whether every member is given all members and edges
        weight_total: the denominator of the updates' weights, where updates carry weights
        lasts_s, acknowledge, planned_rounds: see Assignment
    """

    round_number: int
    closes_s: float
    keyed: bool
    barrier_s: float | None = None
    epoch: int = 0
    whole_graph: bool = False
    weight_total: float = 0.0
    lasts_s: float = 0.0
    acknowledge: Callable[[float], None] | None = None
    planned_rounds: float = 0.0


class PlanPeers(Mapping[int, Peer]):
    """The nodes of a plan as their peers know them, each made when it is first asked for."""

    __slots__ = ("_addresses", "_known", "_nodes", "_public_key")

    def __init__(
        self, nodes: Sequence[int], addresses: Mapping[int, bytes], public_key: Callable[[int], bytes]
    ) -> None:
        self._nodes, self._addresses, self._public_key = nodes, addresses, public_key
        self._known: dict[int, Peer] = {}

    def __getitem__(self, node: int) -> Peer:
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = Peer(self._addresses[node], self._public_key(node))
        return known

    def __iter__(self) -> Iterator[int]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class PlanAssignments:
    """The assignments of one plan: one for each of its nodes, made when its receiver reads it.

    Attributes:
        epoch: the plan's, see Assignment
        fetching: the nodes that are only to fetch the first model
    """

    __slots__ = (
        *("_edges", "_heard", "_members", "_mixing", "_neighbours", "_numbers", "_peers", "_places"),
        *("_plan", "_sent", "_servers", "_terms", "epoch", "fetching"),
    )

    def __init__(self, plan: RoundPlan, terms: RoundTerms, peers: PlanPeers, members: Collection[int]) -> None:
        self._plan, self._terms, self._peers, self.epoch = plan, terms, peers, terms.epoch
        ways = {kind: both_ways(peers, edges) for kind, edges in plan.edges.items()}
        self._sent, self._heard = ({kind: way[end] for kind, way in ways.items()} for end in (0, 1))
        self._places = {node: place for place, node in enumerate(peers)}
        self._servers = set(plan.edges["model"][:, 0].tolist()) if "model" in plan.edges else ()
        self._mixing, self._members = _mixing(plan, peers), frozenset(members)
        # Only the size on the wire depends on these: a whole graph lists peers the node never contacts.
        self._edges = len(plan.edges.get("update", ())) if terms.whole_graph else 0
        self._neighbours = _count_neighbours(plan)
        self._numbers = bool(terms.weight_total) + bool(terms.planned_rounds)
        self.fetching: Collection[int] = (
            set(plan.edges["bootstrap"][:, 1].tolist()) if "bootstrap" in plan.edges else ()
        )

    def payload_bytes(self, node: int) -> int:
        """Returns the bytes of a node's assignment on the wire without framing."""
        numbers = self._numbers + len(self._mixing.get(node, ()))
        return assignment_bytes(self._known(node), self._edges, self._terms.keyed, numbers)

    def address(self, node: int) -> bytes:
        """Returns a node's address under this plan."""
        return self._peers[node].address

    def of(self, node: int) -> Assignment:
        """Returns a node's assignment."""
        terms, place, (address, public_key) = self._terms, self._places[node], self._peers[node]
        role = _role(node, self._plan.leader, self._members, serves=node in self._servers)
        # As a plain tuple first: a third of the time that names take, and there is one for every member.
        facts = (
            *(terms.round_number, role, address, Routes(self._sent, place), Routes(self._heard, place)),
            *(terms.barrier_s, self._known(node), self._edges, terms.keyed, terms.closes_s, terms.epoch),
            *(terms.weight_total, terms.lasts_s, terms.acknowledge, public_key, self._mixing.get(node)),
            terms.planned_rounds,
        )
        return Assignment._make(facts)

    def _known(self, node: int) -> int:
        """Returns how many peers a node's assignment lists."""
        return len(self._members) if self._edges else self._neighbours.get(node, 0)


class HandedOut:
    """The contents of a batch of assignments.

    Args:
        plans: the plan of each node's assignment.
    """

    __slots__ = ("_nodes", "_plans")

    def __init__(self, nodes: Sequence[int], plans: Sequence[PlanAssignments]) -> None:
        self._nodes, self._plans = nodes, plans

    def __getitem__(self, index: int, /) -> Assignment:
        return self._plans[index].of(self._nodes[index])

    def __iter__(self) -> Iterator[Assignment]:
        return (self[index] for index in range(len(self)))

    def __len__(self) -> int:
        return len(self._nodes)


def _mixing(round_plan: RoundPlan, peers: Mapping[int, Peer]) -> dict[int, dict[bytes, float]]:
    """Returns for each receiver the weights of its predecessors' vectors; empty if they are equal."""
    found: dict[int, dict[bytes, float]] = {}
    if round_plan.weights is not None:
        for (sender, receiver), weight in zip(
            round_plan.edges["update"].tolist(), round_plan.weights.tolist(), strict=True
        ):
            found.setdefault(receiver, {})[peers[sender].address] = weight
        for node, weight in round_plan.own_weights.items():
            if node in found and node in peers:
                found[node][peers[node].address] = weight
    return found


def _count_neighbours(round_plan: RoundPlan) -> dict[int, int]:
    """Returns for each node the number of distinct nodes that it sends to or hears from."""
    if not round_plan.edges:
        return {}
    edges = np.concatenate(list(round_plan.edges.values()))
    # One number for each pair, whatever its direction: node numbers fit in 31 bits.
    pairs = distinct(edges.min(axis=1) << 32 | edges.max(axis=1))
    counts = np.bincount(np.concatenate([pairs >> 32, pairs & _LOWER_HALF]))
    found = np.flatnonzero(counts)
    return dict(zip(found.tolist(), counts[found].tolist(), strict=True))


def _role(node: int, leader: int, members: Collection[int], serves: bool) -> str:
    """Returns the role; a node that serves a model without leading is a holder, even if it is a finished member."""
    if node == leader:
        return "leader"
    return "member" if node in members and not serves else "holder"
