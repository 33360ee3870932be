"""The partner graph: a directed regular graph of share exchanges.

The tracker knows the round's addresses and keys; it never sees noise and supplies no seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodes.noise_shares.plan import NoiseSharePlan
from nodes.protocols.api import RoundPlan
from p2p.random_streams import stream
from topologies.round_graph import round_graph

if TYPE_CHECKING:
    from nodes.protocols.central import Central
    from nodes.protocols.gossip import Gossip
    from nodes.protocols.rotating_leader import RotatingLeader

Edges = NDArray[np.int64]
_NO_EDGES: Edges = np.empty((0, 2), dtype=np.int64)


class Tracker:
    """Adds the exchange to a round's plan."""

    def __init__(self, plan: NoiseSharePlan, protocol: Gossip | RotatingLeader | Central, seed: int) -> None:
        self._plan, self._protocol, self._seed = plan, protocol, seed
        self._groups = plan.group_of()

    def weight_total(self, members: Sequence[int], leader: int) -> float:
        """Returns the denominator of the weights of updates that meet at an aggregator: members, or records."""
        # In gossip a member averages as many updates as it expects, and its own if that is included.
        exchange = getattr(self._protocol, "exchange_with", None)
        if exchange is not None:
            return float(exchange + self._protocol.include_own)
        adding = [node for node in members if self._protocol.include_own or node != leader]
        return float(len(adding) if self._plan.settings.weights == "equal" else self._plan.records[adding].sum())

    def add_to(self, round_plan: RoundPlan, round_number: int, members: Sequence[int]) -> None:
        """Adds the edges of shares and corrections to a round; a leader has no partners."""
        # A leader that held shares could remove noise from the uploads that it aggregates.
        sharers = [node for node in members if node != round_plan.leader]
        weight_total = self.weight_total(members, round_plan.leader)
        round_plan.edges["share"] = self.partners(sharers, weight_total, round_number, round_plan.edges["update"])
        self.let_correct(round_plan)

    def let_correct(self, round_plan: RoundPlan) -> None:
        """Adds edges for correction requests to the senders of updates, and for their answers."""
        updates = round_plan.edges.get("update", _NO_EDGES)
        if self._plan.settings.policy == "correct" and len(updates):
            # Both ways: the question goes to those who sent an update, and the answer comes back.
            round_plan.edges["correction"] = np.concatenate([updates, updates[:, ::-1]])

    def to_be_told(self, round_plan: RoundPlan, lost: int) -> list[int]:
        """Returns the partners of a lost member, which need not send it a share nor wait for one."""
        edges = round_plan.edges.get("share", _NO_EDGES)
        return sorted({*edges[edges[:, 0] == lost, 1].tolist(), *edges[edges[:, 1] == lost, 0].tolist()})

    def partners(self, sharers: Sequence[int], weight_total: float, round_number: int, updates: Edges) -> Edges:
        """Returns the edges of the exchange: one regular graph per coalition, and one for all other members."""
        rng = stream(self._seed, "shares", round_number)
        found = [_NO_EDGES]
        for circle in self._circles(sharers):
            wanted = {node: self._plan.wanted(node, weight_total, len(circle)) for node in circle}
            found.append(self._graph(np.array(circle, dtype=np.int64), wanted, updates, rng))
        return np.concatenate(found)

    def _circles(self, sharers: Sequence[int]) -> list[list[int]]:
        """Returns the coalitions with two or more members present, and all other members together if two or more."""
        circles: dict[int, list[int]] = {}
        for node in sharers:
            circles.setdefault(self._groups.get(node, -1), []).append(node)
        others = circles.pop(-1, [])
        for group in [group for group, members in circles.items() if len(members) < 2]:
            # A coalition of one has no partner of its own and joins the rest, or it would go without noise.
            others += circles.pop(group)
        return [members for members in [*circles.values(), sorted(others)] if len(members) >= 2]

    def _graph(self, circle: Edges, wanted: Mapping[int, int], updates: Edges, rng: np.random.Generator) -> Edges:
        # With `pad` all get the largest number, which hides the differences between their sigmas.
        most = max(wanted.values())
        if len(set(wanted.values())) > 1 and self._plan.settings.unequal == "list":
            return _as_many_as_wanted(circle, wanted, rng)
        if self._plan.settings.partners == "co_recipients":
            return co_recipients(circle, most, updates, rng)
        return round_graph(circle, most, rng)


def _as_many_as_wanted(circle: Edges, wanted: Mapping[int, int], rng: np.random.Generator) -> Edges:
    """Returns a graph with the wanted out-degrees; in-degrees are random."""
    edges = []
    for node in circle.tolist():
        others = circle[circle != node]
        edges += [(node, int(other)) for other in np.sort(rng.choice(others, wanted[node], replace=False))]
    return np.array(edges, dtype=np.int64)


def co_recipients(circle: Edges, degree: int, updates: Edges, rng: np.random.Generator) -> Edges:
    """A regular graph between members whose updates go to many common receivers, so that their noise meets.

    Each layer is the best one-to-one assignment of partners that are still free; ties are broken at random.
    """
    from scipy.optimize import linear_sum_assignment

    count = len(circle)
    place = {node: index for index, node in enumerate(circle.tolist())}
    reaches = np.zeros((count, int(updates.max(initial=0)) + 1))
    for sender, receiver in updates.tolist():
        if sender in place:
            reaches[place[sender], receiver] = 1.0
            if receiver in place:
                # A member also aggregates its own update, so it counts as one of its receivers.
                reaches[place[receiver], receiver] = 1.0
    # Below 1, so that the random term only breaks ties between equal counts.
    common = reaches @ reaches.T + 0.5 * rng.random((count, count))
    np.fill_diagonal(common, -1e9)
    edges = []
    for _ in range(degree):
        rows, columns = linear_sum_assignment(common, maximize=True)
        edges.append(np.column_stack([circle[rows], circle[columns]]))
        # A used pair is last choice, but better than a self-loop (-1e9).
        common[rows, columns] = -1e6
    joined: Edges = np.concatenate(edges)
    return joined[np.lexsort((joined[:, 1], joined[:, 0]))]
