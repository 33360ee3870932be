"""Fetching the first model: how a client without one gets it from the server, before it can train.

The proxy orders it, the server sends the model, the client reports. The client's process takes no part: while it waits
for orders, a rule in the event core follows the order and reports (see p2p/transport/core/fetches.py). Here is what the
client learns of that when its inbox is read, and what is done about orders and models that are irregular in some way:
handled on arrival, damaged, sent twice, or too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodes.learning.deferred_learning import Learning, Vector
from nodes.messaging.control_messages import Assignment, Done
from nodes.messaging.round_session import Received
from nodes.roles.participant import Participant
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.transport.messages import FirstModels


@dataclass(frozen=True, slots=True)
class Fetch:
    """A fetch under way: which order it follows, and when that arrived."""

    round_number: int
    epoch: int
    arrived_s: float


class Newcomer(Participant):
    """A participant that can fetch the first model."""

    __slots__ = ("_fetch", "_free_s", "_kept_order", "_taken")

    def __init__(self, node: int, world: World, learning: Learning, records: dict[int, RoundRecord]) -> None:
        super().__init__(node, world, learning, records)
        self.endpoint.fetcher = self
        self._taken = (0, -1)
        self._free_s = 0.0
        self._fetch: Fetch | None = None
        self._kept_order: Assignment | None = None

    def lose_state(self) -> None:
        """Discards what a crash destroys; a first model that has arrived is kept."""
        super().lose_state()
        self._fetch = self._kept_order = None

    def take_fetch_order(self, order: Assignment, arrived_s: float, by_rule: bool) -> None:
        """Follows an order to fetch the first model, at once or when the process waits for orders."""
        if by_rule:
            self._begin(order, arrived_s, by_rule)
        elif self.endpoint.inbox.awaits("orders"):
            self._follow(order)
        else:
            self._kept_order = order

    def follow_kept_order(self) -> None:
        """Follows the latest order to fetch the first model that arrived while the process was busy."""
        order, self._kept_order = self._kept_order, None
        if order is not None:
            self._follow(order)

    def _follow(self, order: Assignment) -> None:
        if self.has_reported(order) or self.now_s >= order.closes_s or self._taken >= order.order:
            return
        if self._fetch is not None:
            self._log_wait(self._fetch, self.now_s)
            self.world.network.end_fetch(self.node)
        self._begin(self.accept(order), self.now_s, by_rule=False)
        # Not if the model has overtaken its order, and was taken with it.
        if self._fetch is not None:
            self.world.network.begin_fetch(self.node, order.round_number)

    def _begin(self, order: Assignment, arrived_s: float, by_rule: bool) -> None:
        self._taken = order.order
        # Before it enters: that opens what has overtaken the order.
        self._fetch = Fetch(*order.order, arrived_s)
        # The rule follows orders for the life that has joined; it may have joined the next round before this is read.
        if self.endpoint.enter(order, has_joined=by_rule) is None:
            self._fetch = None  # crashed since it joined: the keys are lost
        for item in self.endpoint.inbox.take(("bootstrap", order.round_number)):
            self.take_first_model(order.round_number, item, by_rule=False)

    def take_first_model(self, round_number: int, item: Received, by_rule: bool) -> None:
        """Takes the first model; reports unless the core has done so.

        A model that comes too late is kept for the next order of its round.
        """
        fetch = self._fetch
        # A fetch has ended by the time at which a late model is read (see `end_late_fetch`).
        if fetch is None or fetch.round_number != round_number:
            self.endpoint.inbox.put(("bootstrap", round_number), item)
            return
        self.adopt(item, 0)
        self._end(fetch, item.arrived_s)
        self._reported = Done(round_number, self.node, 0, epoch=fetch.epoch)
        if not by_rule:
            self._report_end(self._reported)

    def take_by_rule(self, round_number: int, model: Vector, arrived_s: float) -> None:
        """Takes the first model where the core has done all else that there is to do."""
        self.endpoint.note_round(round_number)
        self.learning.adopt(self.node, model)
        self.model_round = 0
        self._free_s, self._taken = arrived_s, (round_number, 0)
        self._reported = Done(round_number, self.node, 0)

    def close_fetch(self, round_number: int) -> None:
        """Ends a fetch that the proxy has closed, or whose time is up, and reports that there is no model."""
        fetch = self._fetch
        if fetch is not None and fetch.round_number == round_number:
            self._end(fetch, self.now_s)
            self._report_end(Done(round_number, self.node, self.model_round, epoch=fetch.epoch))

    def end_late_fetch(self) -> None:
        """Ends a fetch whose time is up."""
        self.endpoint.inbox.read()  # the order may be unread
        if self._fetch is not None:
            self.close_fetch(self._fetch.round_number)
        else:
            self.world.network.end_fetch(self.node)

    def _report_end(self, done: Done) -> None:
        self.report(done)
        self.world.network.set_rule(self.node, self.model_round, self.last_round)
        self.world.network.end_fetch(self.node)

    def _end(self, fetch: Fetch, end_s: float) -> None:
        self._fetch = None
        self._free_s = max(end_s, fetch.arrived_s)  # the model may have come before its order
        self._log_wait(fetch, end_s)
        held = self.endpoint.session(fetch.round_number)
        if held is not None:
            held.drop_derived()

    def _log_wait(self, fetch: Fetch, end_s: float) -> None:
        self.world.log.span(self.node, fetch.round_number, "wait", fetch.arrived_s, end_s)
        self.world.log.end_wait(self.node)


def take_first_models(models: FirstModels, newcomers: Sequence[Newcomer]) -> None:
    """Gives nodes the first models that have arrived, unencrypted, and logs how long they waited for them."""
    number, log = models.round_number, newcomers[0].world.log
    log.span_each(models.nodes, number, "wait", models.ordered_s, models.arrived_s)
    log.mark_used(models.rows.tolist())
    for node, bundle, arrived_s in zip(models.nodes.tolist(), models.contents, models.arrived_s.tolist(), strict=True):
        newcomers[node].take_by_rule(number, bundle.content.value, arrived_s)
