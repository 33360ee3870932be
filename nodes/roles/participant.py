"""The operations of a protocol process in a round: send, collect, average, hand a model on.

Protocols are written in these verbs (see nodes/protocols/). The verbs do the logging, so that a protocol reads like
its paper: every wait has a deadline, every aggregation is logged, every message used is marked.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from nodes.aggregation.aggregator import weigh
from nodes.learning.averaging import Weight
from nodes.learning.deferred_learning import Learning, Vector
from nodes.messaging.control_batches import report_note, report_number
from nodes.messaging.control_messages import Answer, Assignment, Close, CommitReply, CommitRequest, Control, Done
from nodes.messaging.endpoint import Endpoint
from nodes.messaging.round_session import Received
from nodes.phase_hooks import Phase
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.transport.core.layout import JOINS, NO_MODEL, SPENT
from p2p.transport.messages import CallAnswer

if TYPE_CHECKING:
    from nodes.noise_shares.client_exchange import NoiseShareClient

Collecting = Generator[simpy.Event, Any, list[Received]]
Committing = Generator[simpy.Event, Any, bool]
Repairing = Generator[simpy.Event, Any, list[Vector]]
EVERY_ROUND = 2**31 - 1
_WHY_NOT = {JOINS: "", NO_MODEL: "declined", SPENT: "budget"}
_PHASE_OF_KIND: dict[str, Phase] = {"update": "send", "model": "broadcast", "share": "share"}


class Participant:
    """A node that takes part in rounds, with its endpoint, its model and the rounds' records.

    Attributes:
        shares: this node's side of the noise-share exchange, if there is one
    """

    @property
    def train_s(self) -> float:
        """How long it trains in a round; 0 for a node that does not train."""
        return 0.0

    @property
    def last_round(self) -> int:
        """The last round that its budget allows; a node without a budget may join all."""
        return EVERY_ROUND

    __slots__ = ("_records", "_reported", "endpoint", "learning", "model_round", "node", "shares", "skipped", "world")

    def __init__(self, node: int, world: World, learning: Learning, records: dict[int, RoundRecord]) -> None:
        self.node = node
        self.world = world
        self.learning = learning
        self.endpoint = Endpoint(node, world)
        self.model_round = -1
        self.skipped = False
        self.shares: NoiseShareClient | None = None
        self._records = records
        self._reported: Done | None = None

    def share_noise(self, exchange: NoiseShareClient) -> None:
        """Enables the noise-share exchange, and answers to correction requests about lost partners."""
        self.shares = exchange
        self.endpoint.answer = self._answer_for_the_lost

    def lose_state(self) -> None:
        """Discards what a crash destroys; only the model, the ledger and the count of noise drawn survive."""
        self.endpoint.lose_state()
        if self.shares is not None:
            self.shares.lose_state()

    def log_open_spans(self) -> None:
        """Logs what is over of an activity that ends with the process."""

    def follow_kept_order(self) -> None:
        """Follows an order that had to wait until the process is free; see `Newcomer`."""

    if TYPE_CHECKING:

        @property
        def now_s(self) -> float:
            """Simulated time."""
    else:
        now_s = property(attrgetter("world.clock._now"), doc="Simulated time.")

    def accept(self, assignment: Assignment) -> Assignment:
        """Accepts an assignment, whose time runs from its receipt, and acknowledges it to the proxy."""
        # A slow control link must not shorten a member's time, so the proxy extends the round to this instant.
        closes_s = max(assignment.closes_s, self.now_s + assignment.lasts_s)
        if assignment.acknowledge is not None:
            assignment.acknowledge(closes_s)
        return assignment.closing(closes_s)

    def deadline_s(self, assignment: Assignment, within_s: float) -> float:
        """Returns the instant `within_s` from now, or the closing of the round if that is earlier."""
        return min(self.now_s + within_s, assignment.closes_s)

    def tell_proxy(self, round_number: int, control: Control) -> None:
        """Sends a control message to the proxy."""
        self.endpoint.send_control([self.world.proxy], round_number, control)

    def report(self, done: Done) -> None:
        """Reports to the proxy that this node's part of a round is done."""
        self._reported = done
        world = self.world
        note = report_note(world.sealed, done.has_loss)
        world.network.tell(self.node, world.proxy, done.round_number, note, report_number(done))

    def has_public_loss(self, round_number: int) -> bool:
        """Returns whether it reports the loss of the round's model, which it made, on public records."""
        record = self._records.get(round_number) if self.world.reported_loss == "public_loss" else None
        return record is not None and record.leader == self.node and self.node in record.aggregated_s

    def has_reported(self, assignment: Assignment) -> bool:
        """Returns whether its part is done already; if so, repeats the report, which the proxy may have lost."""
        done = self._reported
        if done is None or (done.round_number, done.epoch) < assignment.order:
            return False
        if done.round_number == assignment.round_number:
            self.report(done)
        return True

    def answer(self, call: CallAnswer) -> Answer:
        """Returns the content of this node's answer to an invitation, as its rule gave it."""
        # A client without budget still gives a key: it may hold the current model and hand it on.
        keyed = self.world.sealed is not False
        why_not = _WHY_NOT[call.refuses]
        return Answer(call.round_number, self.node, why_not, keyed, call.model_round, self.train_s, call.life)

    def new_order(self, assignment: Assignment) -> Assignment | Close | None:
        """Returns the proxy's latest order for this round, if any: a new plan, which is accepted, or its end."""
        orders = self.endpoint.inbox.take(("reorder", assignment.round_number))
        newer = [order for order in orders if isinstance(order, Close) or order.epoch > assignment.epoch]
        if not newer:
            return None
        # Only the last order counts: each one replaces the plan before it.
        last: Assignment | Close = newer[-1]
        self.world.log.end_wait(self.node)
        if isinstance(last, Assignment):
            last = self.accept(last)
            self.endpoint.enter(last)
        return last

    def is_superseded(self, assignment: Assignment) -> bool:
        """Returns whether an order that replaces this assignment has arrived and is not taken up yet."""
        return self.endpoint.inbox.has(("reorder", assignment.round_number))

    def send(self, assignment: Assignment, kind: str, vector: Vector, give_up_s: float = np.inf) -> None:
        """Seals a vector for every peer the assignment names for this kind and sends it."""
        hooks = self.world.phase_hooks
        if hooks.listeners and kind in _PHASE_OF_KIND and assignment.send_to.get(kind):
            hooks.notify(self.node, assignment.round_number, _PHASE_OF_KIND[kind])
        self.endpoint.send(assignment.round_number, kind, vector.payload(), give_up_s)

    def collect(self, assignment: Assignment, kind: str, deadline_s: float, quorum: float = 1.0) -> Collecting:
        """Waits for one message of a kind from each peer expected; at the deadline returns what has arrived.

        Returns early, with what has arrived, when the proxy has re-planned or closed the round.

        Args:
            quorum: the fraction of the expected messages that is enough.
        """
        start_s = self.now_s
        # The tolerance keeps a product such as 0.07 * 100 = 7.000000000000001 from demanding one message more.
        expected = math.ceil(quorum * len(assignment.expect_from.get(kind, ())) - 1e-9)
        # Shares are exchanged once per round, whatever plan comes; see `Endpoint._take_new_order`.
        if not expected or (kind != "share" and self.is_superseded(assignment)):
            return []
        key = (kind, assignment.round_number)
        received: list[Received] = yield self.endpoint.inbox.expect(key, expected, deadline_s)
        self.world.log.span(self.node, assignment.round_number, "wait", start_s, self.now_s)
        return received

    def repair(self, assignment: Assignment, received: Sequence[Received]) -> Repairing:
        """Returns vectors that cancel the noise left by lost share partners in the received updates; usually none."""
        if self.shares is None:
            return []
        return (yield from self.shares.repair(self, assignment, received))

    def _answer_for_the_lost(self, kind: str, round_number: int, item: Received) -> bool:
        return kind == "correction" and self.shares is not None and self.shares.answer(self, round_number, item)

    def average(
        self,
        assignment: Assignment,
        received: Sequence[Received],
        own: Vector | None,
        min_updates: int = 1,
        repairs: Sequence[Vector] = (),
    ) -> bool:
        """Subtracts from this node's model the mean of the received updates, and of its own if given.

        Where updates carry their weights (noise shares), subtracts their sum and that of `repairs` instead. Where the
        assignment has weights of peers, subtracts the weighted mean.
        Returns False, and moves nothing, if fewer than `min_updates` were received.
        """
        if self.has_too_few(received, own, min_updates):
            return False
        vectors = [item.value for item in received] + ([own] if own is not None else [])
        weight = self._weights(assignment, received, own)
        self.learning.step(self.node, [*vectors, *repairs], weight, round_number=assignment.round_number)
        self.model_round = assignment.round_number
        self._write_down(assignment, received, own is not None)
        return True

    def _weights(self, assignment: Assignment, received: Sequence[Received], own: Vector | None) -> Weight:
        """Returns the weights of what arrived, and of the own update at the end; None means their mean."""
        rule = self.world.weights
        if assignment.weight_total:
            return 1.0
        if rule == "uniform" or assignment.mixing is None:
            return _mixing_weights(assignment, received, own is not None)
        senders = [item.sender for item in received] + ([] if own is None else [assignment.address])
        shares = [assignment.mixing[sender] for sender in senders]
        losses = [vector.loss for vector in (*(item.value for item in received), own) if vector is not None]
        # Losses are known when training is computed, so the weights are asked for then.
        return lambda: weigh(rule, shares, [0.0 if loss is None else loss() for loss in losses])

    def has_too_few(self, received: Sequence[Received], own: Vector | None, min_updates: int) -> bool:
        """Returns whether the updates are too few to average; if so, this node's aggregation is skipped."""
        self.skipped = len(received) < min_updates or not (received or own is not None)
        return self.skipped

    def commit(
        self, assignment: Assignment, received: Sequence[Received], own: Vector | None, patience_s: float
    ) -> Committing:
        """Asks the proxy to make the average of these updates the round's model; returns whether it is.

        If not, the average must not be used: another node leads the round, or the round is over. The request is
        repeated after `patience_s` without an answer, then after twice as long, and so on.
        """
        number, closes_s = assignment.round_number, assignment.closes_s
        contributors = self._contributors(number, received, own is not None)
        self._records[number].propose(self.node, contributors, self.now_s)
        while self.now_s < closes_s and not self.is_superseded(assignment):
            self.tell_proxy(number, CommitRequest(number, self.node, assignment.epoch))
            until_s, patience_s = min(self.now_s + patience_s, closes_s), 2 * patience_s
            verdicts: list[CommitReply] = yield self.endpoint.inbox.expect(("verdict", number), 1, until_s)
            for verdict in verdicts:
                if verdict.until_s >= self.now_s:
                    verdict.acknowledge()
                    return True
                if not verdict.until_s:
                    return False
        return False

    def mix_models(
        self,
        assignment: Assignment,
        received: Sequence[Received],
        own: Vector | None,
        min_updates: int = 1,
        include_own: bool = True,
    ) -> bool:
        """Replaces this node's model by the mean of the received models and its own, weighted as in `average`.

        A node without a local step of this round (`own` is None) mixes the model that it has. Without enough received
        models it keeps its own, after the local step if there is one; returns False then.
        """
        if self.has_too_few(received, None, min_updates):
            if own is not None and include_own:
                self.learning.mix(self.node, [own], None)
                # No aggregation, but the release is in the model now, which its privacy account must know.
                row = (assignment.round_number, self.node, self.node, self.now_s, False)
                self.world.log.aggregations.add_all([row])
            return False
        models = [item.value for item in received]
        if include_own:
            models.append(self.learning.model(self.node) if own is None else own)
        self.learning.mix(self.node, models, _mixing_weights(assignment, received, include_own))
        self.model_round = assignment.round_number
        self._write_down(assignment, received, include_own and own is not None)
        return True

    def adopt(self, received: Received, model_round: int) -> None:
        """Replaces this node's model by a received one."""
        self.learning.adopt(self.node, received.value)
        self.endpoint.mark_used([received])
        self.model_round = model_round

    def _write_down(self, assignment: Assignment, received: Sequence[Received], own: bool) -> None:
        log, round_number = self.world.log, assignment.round_number
        self.endpoint.mark_used(received)
        node, record = self.node, self._records[round_number]
        contributors = self._contributors(round_number, received, own)
        record.add_aggregation(log, node, contributors, self.now_s)
        if received:
            log.span(node, round_number, "aggregate", min([item.arrived_s for item in received]), self.now_s)

    def _contributors(self, round_number: int, received: Sequence[Received], own: bool) -> list[int]:
        # The contributor is the node that sealed the update: an intruder can replay a message but not make one.
        contributors = self._records[round_number].nodes_of([item.sender for item in received])
        return contributors + ([self.node] if own else [])


def _mixing_weights(assignment: Assignment, received: Sequence[Received], own: bool) -> list[float] | None:
    """Returns the weights of what arrived, and of the node's own vector at the end; None means equal ones.

    The own weight is the rest to one, so that of vectors that did not arrive is added to it.
    """
    if assignment.mixing is None:
        return None
    weights = [assignment.mixing[item.sender] for item in received]
    return [*weights, 1.0 - sum(weights)] if own else weights
