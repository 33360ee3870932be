"""Gossip: every member sends its noisy update to some others and averages what it receives (thesis, chapter 5).

With `exchange: model` members send their models after a noisy local step, and average models: decentralised SGD
(Lian et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Gt, Le

from nodes.protocols.api import Assignment, Client, Disclosure, RoundContext, RoundPlan, RoundRules, Steps
from nodes.protocols.graphs import GraphKind
from nodes.protocols.redraws import EveryRound, GraphOrder, RedrawKind
from topologies.random_graphs import RandomRegular

if TYPE_CHECKING:
    from topologies.edge_arrays import Edges, Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Gossip(RoundRules):
    """Each member sends the identical vector to its successors in the round's graph.

    Attributes:
        exchange_with: how many members each one sends to and hears from (on average, if the graph is not regular);
            give this or `mer`, unless the graph fixes it
        mer: the same as a share of all clients
        graph: who exchanges with whom
        redraw: when the graph changes: every_round, never, swaps of some edges, or one_peer_exponential
        mixing: uniform averages what arrived with equal weights, metropolis by the degrees of both ends; the weight of
            what did not arrive is added to the own one
        exchange: update sends noisy updates and averages them, model sends models after a noisy local step
        collect: the final model is one random client's, or the mean of all

    Guarantees:
        a vector is used at most once by each receiver, and only before the deadline; own contributions enter noisy;
        with the default graph in-degree = out-degree = exchange_with.
    """

    exchange_with: Annotated[int, Ge(1)] | None = None
    mer: Annotated[float, Gt(0), Le(1)] | None = None
    graph: GraphKind = field(default_factory=RandomRegular)
    redraw: RedrawKind = field(default_factory=EveryRound)
    mixing: Literal["uniform", "metropolis"] = "uniform"
    exchange: Literal["update", "model"] = "update"
    collect: Literal["random", "mean"] = "random"

    def edges_of(self, seed: int, clients: int, members: Ids, round_number: int) -> Edges:
        """Returns the graph of a round; `members` are sorted."""
        order = GraphOrder(self.graph, self.exchange_with, seed, clients)
        return self.redraw.edges_of(order, members, round_number)

    def plan_round(self, context: RoundContext) -> RoundPlan:
        """Plans the round's graph, with the weights of its edges if these are not equal."""
        edges = self.edges_of(context.seed, context.clients, context.members, context.round_number)
        if self.mixing == "uniform":
            return RoundPlan({"update": edges})
        from topologies.mixing import metropolis_edge_weights

        return RoundPlan({"update": edges}, weights=metropolis_edge_weights(edges))

    def disclosure(self) -> Disclosure:
        """Declares updates that travel on inside their receivers' models."""
        return Disclosure(spread="by_path", sends_first=True)

    def take_part(self, client: Client, assignment: Assignment) -> Steps:
        """Trains, sends its update or model, and averages those received by the deadline."""
        deadline_s = client.deadline_s(assignment, self.deadline)
        own = None
        if (yield from client.train(assignment, deadline_s)) and (yield from client.protect(assignment, deadline_s)):
            own = client.release(assignment)
            if assignment.send_to.get("update"):
                client.publish(assignment, own, deadline_s)
        # Also without an update of its own: a member that trained too slowly still averages those of its peers.
        received = yield from client.collect(assignment, "update", deadline_s, self.quorum)
        if self.exchange == "model":
            client.mix_models(assignment, received, own, self.min_updates, self.include_own)
            kept = self.include_own
        else:
            kept = client.average(assignment, received, own if self.include_own else None, self.min_updates)
        # A member without neighbours in its round releases nothing, unless its update lives on in its own model.
        if own is not None and self.include_own and kept and not assignment.send_to.get("update"):
            client.charge(assignment)
