"""Assignments: a round plan as seen by each member, with its own address and its peers' addresses and keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nodes.messaging.control_messages import Assignment, Peer
from nodes.protocols.api import RoundPlan
from topologies.edge_arrays import group_starts

_LOWER_HALF = (1 << 32) - 1
Routes = dict[int, dict[str, list[Peer]]]
_NO_ROUTES: Mapping[str, list[Peer]] = MappingProxyType({})  # shared: most holders only receive


@dataclass(frozen=True, slots=True)
class RoundTerms:
    """The terms common to all assignments of a round.

    Attributes:
        whole_graph: whether every member is given all members and edges
        weight_total: the denominator of the updates' weights, where updates carry weights
        lasts_s, acknowledge, planned_rounds: see Assignment
    """

    round_number: int
    closes_s: float
    barrier_s: float | None = None
    epoch: int = 0
    whole_graph: bool = False
    weight_total: float = 0.0
    lasts_s: float = 0.0
    acknowledge: Callable[[float], None] | None = None
    planned_rounds: float = 0.0


def make_assignments(
    round_plan: RoundPlan,
    terms: RoundTerms,
    addresses: Mapping[int, bytes],
    keys: Mapping[int, bytes],
    members: Collection[int],
) -> dict[int, Assignment]:
    """Returns one assignment for each node that has an address in the round."""
    peers = {node: Peer(address, keys[node]) for node, address in addresses.items()}
    send_to, expect_from = _routes(round_plan, peers)
    mixing = _mixing(round_plan, peers)
    members = frozenset(members)
    edges = len(round_plan.edges.get("update", ())) if terms.whole_graph else 0
    neighbours = _count_neighbours(round_plan)
    number, barrier_s, closes_s, epoch = terms.round_number, terms.barrier_s, terms.closes_s, terms.epoch
    times = terms.lasts_s, terms.acknowledge
    assignments = {}
    for node, (address, public_key) in peers.items():
        sends, expects = send_to.get(node, _NO_ROUTES), expect_from.get(node, _NO_ROUTES)
        role = _role(node, round_plan.leader, members, serves="model" in sends)
        # Only the size on the wire depends on `known` and `edges`: a whole graph lists peers the node never contacts.
        sizes = len(members) if edges else neighbours.get(node, 0), edges, bool(public_key)
        weights = mixing.get(node)
        # By place: twice as fast as by name, and there is one for every member.
        assignments[node] = Assignment(
            *(number, role, address, sends, expects, barrier_s, *sizes),
            *(closes_s, epoch, terms.weight_total, *times, public_key, weights, terms.planned_rounds),
        )
    return assignments


def _routes(round_plan: RoundPlan, peers: Mapping[int, Peer]) -> tuple[Routes, Routes]:
    send_to: Routes = {}
    expect_from: Routes = {}
    for kind, edges in round_plan.edges.items():
        # Each edge is seen from both ends: the sender's routes, then the receiver's.
        for routes, mine, theirs in ((send_to, 0, 1), (expect_from, 1, 0)):
            for node, others in _grouped(edges[:, mine], edges[:, theirs]):
                routes.setdefault(node, {})[kind] = [peers[other] for other in others]
    return send_to, expect_from


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


def _grouped(nodes: NDArray[np.int64], others: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
    """Yields each node with its peers, in the order of the edges."""
    if not len(nodes):
        return  # no two members of the round are neighbours
    # Stable: peers keep the order of the plan's edges, which fixes the order of sending and so the message rows.
    order = np.argsort(nodes, kind="stable")
    ordered = nodes[order]
    firsts = group_starts(ordered)
    ends = [*firsts[1:].tolist(), len(nodes)]
    sorted_others = others[order].tolist()
    for node, first, end in zip(ordered[firsts].tolist(), firsts.tolist(), ends, strict=True):
        yield node, sorted_others[first:end]


def _count_neighbours(round_plan: RoundPlan) -> dict[int, int]:
    """Returns for each node the number of distinct nodes that it sends to or hears from."""
    if not round_plan.edges:
        return {}
    ends = np.sort(np.concatenate(list(round_plan.edges.values())), axis=1)
    # One number for each pair, whatever its direction: node numbers fit in 31 bits.
    pairs = np.unique(ends[:, 0] << 32 | ends[:, 1])
    counts = np.bincount(np.concatenate([pairs >> 32, pairs & _LOWER_HALF]))
    found = np.flatnonzero(counts)
    return dict(zip(found.tolist(), counts[found].tolist(), strict=True))


def _role(node: int, leader: int, members: Collection[int], serves: bool) -> str:
    """Returns the role; a node that serves a model without leading is a holder, even if it is a finished member."""
    if node == leader:
        return "leader"
    return "member" if node in members and not serves else "holder"
