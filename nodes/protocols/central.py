"""Central: ordinary federated averaging with a server, as the baseline to compare peers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nodes.protocols.api import Assignment, Client, RoundContext, RoundPlan, RoundRules, Steps

if TYPE_CHECKING:
    from nodes.roles.participant import Participant


@dataclass(frozen=True, slots=True, kw_only=True)
class Central(RoundRules):
    """The server sends its model to the cohort, which trains and sends updates back (FedAvg, DP-FedAvg).

    Guarantees:
        a round costs m models and m updates. The server is not anonymous and sees every update.
    """

    def plan_round(self, context: RoundContext) -> RoundPlan:
        """A star with the server in the middle."""
        centre = np.full_like(context.members, context.server)
        updates = np.column_stack([context.members, centre])
        return RoundPlan({"model": updates[:, ::-1], "update": updates}, context.server)

    def take_part(self, client: Client, assignment: Assignment) -> Steps:
        """Take the server's model, train, send the update."""
        deadline_s = client.deadline_s(assignment, self.deadline)
        models = yield from client.collect(assignment, "model", deadline_s)
        if not models:
            return
        client.adopt(models[0], assignment.round_number - 1)
        if (yield from client.train(assignment, deadline_s)) and (yield from client.protect(assignment, deadline_s)):
            client.publish(assignment, client.release(assignment), deadline_s)

    def serve(self, server: Participant, assignment: Assignment) -> Steps:
        """The server's part: send the model, average the updates."""
        deadline_s = server.deadline_s(assignment, self.deadline)
        server.send(assignment, "model", server.learning.model(server.node), deadline_s)
        received = yield from server.collect(assignment, "update", deadline_s, self.quorum)
        repairs = yield from server.repair(assignment, received)
        server.average(assignment, received, None, self.min_updates, repairs)
