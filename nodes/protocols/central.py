"""Central: federated averaging with a server, the baseline for comparison with peer protocols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nodes.protocols.api import Assignment, Client, Disclosure, RoundContext, RoundPlan, RoundRules, Steps

if TYPE_CHECKING:
    from nodes.roles.participant import Participant


@dataclass(frozen=True, slots=True, kw_only=True)
class Central(RoundRules):
    """The server sends its model to the cohort, which trains and sends updates back (FedAvg, DP-FedAvg).

    Guarantees:
        a round costs m models and m updates. The server is not anonymous and sees every update.
    """

    def plan_round(self, context: RoundContext) -> RoundPlan:
        """Plans a star with the server in the centre."""
        centre = np.full_like(context.members, context.server)
        updates = np.column_stack([context.members, centre])
        return RoundPlan({"model": updates[:, ::-1], "update": updates}, context.server)

    def disclosure(self) -> Disclosure:
        """Declares updates, and aggregates from which everyone trains."""
        return Disclosure(spread="to_all")

    def take_part(self, client: Client, assignment: Assignment) -> Steps:
        """Receives the server's model, trains, and sends the update."""
        deadline_s = client.deadline_s(assignment, self.deadline)
        models = yield from client.collect(assignment, "model", deadline_s)
        if not models:
            return
        # The model carries the round before: it is the aggregate that this round's updates start from.
        client.adopt(models[0], assignment.round_number - 1)
        if (yield from client.train(assignment, deadline_s)) and (yield from client.protect(assignment, deadline_s)):
            client.publish(assignment, client.release(assignment), deadline_s)

    def serve(self, server: Participant, assignment: Assignment) -> Steps:
        """Runs the server's part: sends the model and averages the updates."""
        deadline_s = server.deadline_s(assignment, self.deadline)
        server.send(assignment, "model", server.learning.model(server.node), deadline_s)
        received = yield from server.collect(assignment, "update", deadline_s, self.quorum)
        repairs = yield from server.repair(assignment, received)
        # No update of the server's own (None): it holds no data.
        server.average(assignment, received, None, self.min_updates, repairs)
