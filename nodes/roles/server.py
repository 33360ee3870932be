"""The server: hands out the first model, collects the final one, and is the centre of the `central` baseline."""

from __future__ import annotations

from nodes.learning.deferred_learning import Learning
from nodes.messaging.control_messages import Assignment, Done
from nodes.messaging.round_session import Received
from nodes.protocols.api import Steps
from nodes.protocols.central import Central
from nodes.roles.participant import Participant
from nodes.roles.registration import follow_orders
from nodes.round_record import RoundRecord
from nodes.world import World


class Server(Participant):
    """The server process; it waits for the proxy's orders like any other node."""

    def __init__(
        self, node: int, world: World, learning: Learning, records: dict[int, RoundRecord], protocol: object
    ) -> None:
        super().__init__(node, world, learning, records)
        self._protocol = protocol
        self.model_round = 0  # it has the first model from the beginning
        self.collected: list[Received] = []

    def run(self) -> Steps:
        """Runs the server until it crashes or the simulation ends."""
        return follow_orders(self)

    def take_part(self, order: Assignment) -> Steps:
        """Hands out the first model, collects the final one, or serves as the centre, as ordered; then reports."""
        # The proxy may repeat an assignment after a failover; a finished part is reported again, not run again.
        if self.has_reported(order) or self.now_s >= order.closes_s:
            return
        order = self.accept(order)
        self.endpoint.enter(order)
        self.skipped = False
        # Sends nothing unless the assignment names receivers of this kind.
        self.send(order, "bootstrap", self.learning.first_model(), order.closes_s)
        if order.expect_from.get("collect"):
            self.collected = yield from self.collect(order, "collect", order.closes_s)
            self.endpoint.mark_used(self.collected)
        elif order.role == "leader" and isinstance(self._protocol, Central):
            yield from self._protocol.serve(self, order)
        has_loss = self.has_public_loss(order.round_number)
        self.report(Done(order.round_number, self.node, -1, self.skipped, order.epoch, has_loss))
