"""Gossip: every member sends its noisy update to some others and averages what it receives (thesis, chapter 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from nodes.protocols.api import Assignment, Client, Disclosure, RoundContext, RoundPlan, RoundRules, Steps, stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Gossip(RoundRules):
    """Each member sends the identical update to `exchange_with` others of a graph drawn anew every round.

    Attributes:
        exchange_with: how many members each one sends to and hears from; give this or `mer`
        mer: the same as a share of all clients
        collect: the final model is one random client's, or the mean of all

    Guarantees:
        in-degree = out-degree = exchange_with; an update is used at most once by each receiver, and only before the
        deadline; own contributions enter noisy.
    """

    exchange_with: Annotated[int, Ge(1)] | None = None
    mer: Annotated[float, Gt(0), Le(1)] | None = None
    collect: Literal["random", "mean"] = "random"

    def plan_round(self, context: RoundContext) -> RoundPlan:
        """Plans a random regular directed graph."""
        from topologies.round_graph import round_graph

        rng = stream(context.seed, "graph", context.round_number)
        return RoundPlan({"update": round_graph(context.members, self.exchange_with or 1, rng)})

    def disclosure(self) -> Disclosure:
        """Declares updates that travel on inside their receivers' models."""
        return Disclosure(spread="by_path")

    def take_part(self, client: Client, assignment: Assignment) -> Steps:
        """Trains, sends its update, and averages the updates received by the deadline."""
        deadline_s = client.deadline_s(assignment, self.deadline)
        own = None
        if (yield from client.train(assignment, deadline_s)) and (yield from client.protect(assignment, deadline_s)):
            own = client.release(assignment)
            client.publish(assignment, own, deadline_s)
        # Also without an update of its own: a member that trained too slowly still averages those of its peers.
        received = yield from client.collect(assignment, "update", deadline_s, self.quorum)
        client.average(assignment, received, own if self.include_own else None, self.min_updates)
