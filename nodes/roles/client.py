"""A client: one process that registers, answers invitations, and takes part when chosen."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

from nodes.learning.deferred_learning import Learning, Vector
from nodes.messaging.control_messages import Assignment, Close, Done
from nodes.messaging.round_session import Received
from nodes.protocols.api import PeerProtocol, Steps
from nodes.roles.first_model import Newcomer
from nodes.roles.participant import EVERY_ROUND
from nodes.roles.registration import follow_orders
from nodes.roles.slowdown import Slow, finish_s
from nodes.round_record import RoundRecord
from nodes.world import World
from privacy.accounting.ledger import Ledger

Training = Generator[simpy.Event, Any, bool]
Protecting = Generator[simpy.Event, Any, bool]


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """A client's training time, and what protects it.

    Attributes:
        train_s: how long it trains in a round.
        noise_std: deviation of the noise on its updates.
        sensitivity: how far its clipped update may move.
        per_sample: whether its training protects single records.
        most_trainings: trainings that its records' budget allows; None without limit.
    """

    train_s: float
    noise_std: float
    sensitivity: float
    per_sample: bool = False
    most_trainings: int | None = None


class Client(Newcomer):
    """A peer with its own privacy ledger; it declines to join when the next release would exceed its budget."""

    __slots__ = (
        *("_charged", "_logged_call_s", "_phase", "_training"),
        *("ledger", "profile", "protocol", "slow", "trainings"),
    )

    def __init__(
        self,
        node: int,
        world: World,
        learning: Learning,
        records: dict[int, RoundRecord],
        protocol: PeerProtocol,
        profile: ClientProfile,
        ledger: Ledger | None,
    ) -> None:
        super().__init__(node, world, learning, records)
        self.protocol, self.profile, self.ledger = protocol, profile, ledger
        self._logged_call_s = -1.0
        self.slow: Sequence[Slow] = ()
        self._training = (-1, 0.0)
        # While it trains and waits to send: the round, and the begin and the end of its training.
        self._phase: tuple[int, float, float] | None = None
        self.trainings = 0
        """Trainings begun so far, also those that a crash or the deadline ended: their noise and coins are used up."""
        self._charged = 0

    def run(self) -> Steps:
        """Runs the client until it crashes or the simulation ends."""
        return follow_orders(self)

    def lose_state(self) -> None:
        """Discards what a crash destroys, including the training in progress."""
        Newcomer.lose_state(self)
        self._training = (-1, 0.0)
        self.log_open_spans()

    def train(self, assignment: Assignment, deadline_s: float = np.inf) -> Training:
        """Trains for its training time, then waits for the common sending time if there is one.

        Returns False at the deadline if the update is not ready by then; training then ends for this round. A round
        that was re-planned after this member finished training uses the same update, not another one with new noise.
        """
        # Once per round: two releases of one round's data with independent noise would cost privacy twice.
        if self._training[0] != assignment.round_number:
            # A crash destroys an update; training again means another release, which the ledger may not allow.
            if self.ledger is not None and not self.ledger.may_release(assignment.round_number):
                return False
            if self._has_spent_records():
                return False
            self.world.phase_hooks.notify(self.node, assignment.round_number, "train")
            self.learning.start_training(self.node, assignment.round_number)
            self.trainings += 1
            self._training = (assignment.round_number, finish_s(self.now_s, self.profile.train_s, self.slow))
        deadline_s = min(deadline_s, assignment.closes_s)
        ready_s = max(self._training[1], self.now_s)
        if ready_s > deadline_s:
            # Given up for the whole round: it must not go on where a newer plan sets a later deadline.
            self._training = (assignment.round_number, np.inf)
        if ready_s == np.inf:
            return False
        # A late member sends when it is ready: the barrier delays early ones but stops none.
        send_s = ready_s if assignment.barrier_s is None else max(ready_s, assignment.barrier_s)
        end_s = min(send_s, deadline_s)
        number, start_s, trained_s = assignment.round_number, self.now_s, min(ready_s, deadline_s)
        # One sleep for both phases: the end of the training changes nothing until the update leaves.
        if end_s > start_s:
            self._phase = number, start_s, trained_s
            yield self.endpoint.inbox.sleep(end_s)
            self._phase = None
        self.world.log.span(self.node, number, "train", start_s, trained_s)
        self.world.log.span(self.node, number, "idle", max(start_s, trained_s), end_s)
        return send_s <= deadline_s

    def log_open_spans(self) -> None:
        """Logs the training that is over of a node that waits for the common sending time."""
        phase, self._phase = self._phase, None
        # Faults come first at an instant, so a training that would end in it does not.
        if phase is not None and phase[2] < self.now_s:
            self.world.log.span(self.node, phase[0], "train", *phase[1:])

    def protect(self, assignment: Assignment, deadline_s: float) -> Protecting:
        """Exchanges noise shares if the scenario has them; returns False if the update must not be sent."""
        if self.shares is None:
            return True
        return (yield from self.shares.exchange(self, assignment, deadline_s))

    def wait_until(self, end_s: float, assignment: Assignment, span: str) -> Steps:
        """Waits until `end_s` and logs the interval as `span`."""
        start_s = self.now_s
        if end_s > start_s:
            yield self.endpoint.inbox.sleep(end_s)
            self.world.log.span(self.node, assignment.round_number, span, start_s, end_s)

    def release(self, assignment: Assignment) -> Vector:
        """Returns this round's clipped and noised update."""
        return self.learning.release(self.node, assignment.round_number)

    def publish(self, assignment: Assignment, update: Vector, give_up_s: float) -> None:
        """Sends the identical noisy update to all successors; the ledger is charged once, at the first hand-over."""
        if self.shares is not None and not self.shares.protects(assignment.round_number):
            raise RuntimeError("an update was about to leave without noise shares; `yield from client.protect(...)`")
        self.charge(assignment)
        self.send(assignment, "update", update, give_up_s)

    def charge(self, assignment: Assignment) -> None:
        """Charges this round's release to the ledger and logs the charge."""
        std = self.profile.noise_std if self.shares is None else self.shares.charged_std(assignment)
        if self.ledger is not None:
            std *= self.ledger.rule.noise_factor(assignment.round_number)
        self._charge(assignment.round_number, std)

    def _charge(self, round_number: int, std: float) -> None:
        if self.ledger is None:
            self._log_record_charge(round_number)
            return
        if self.ledger.charge(round_number, std, self.profile.sensitivity, self.trainings):
            published = self.ledger.published_epsilon
            self.world.log.privacy.append(
                round=round_number,
                node=self.node,
                release=self.ledger.releases,
                noise_std=std,
                mu2=self.ledger.mu2,
                published=np.nan if published is None else published,
                rigorous=np.nan,
                budget_left=self.ledger.budget_left,
                trainings=self.trainings if self.profile.per_sample else 0,
                record=np.nan,
            )

    def _log_record_charge(self, round_number: int) -> None:
        """Logs a release that is protected record by record only; a client's update as a whole is not."""
        # An update that is sent again, as to a new leader, is no new release.
        if self.profile.per_sample and self.trainings > self._charged:
            self._charged = self.trainings
            self.world.log.privacy.append(
                round=round_number,
                node=self.node,
                release=self.trainings,
                noise_std=0.0,
                mu2=np.inf,
                published=np.nan,
                rigorous=np.inf,
                budget_left=np.nan,
                trainings=self.trainings,
                record=np.nan,
            )

    def _has_spent_records(self) -> bool:
        """Returns whether one more training would cost its records more than they may lose."""
        most = self.profile.most_trainings
        return most is not None and self.trainings >= most

    def catch_up(self, assignment: Assignment, deadline_s: float) -> Steps:
        """Sends the current model if this node is the holder; waits for it if its own is stale."""
        if assignment.send_to.get("handover"):
            self.send(assignment, "handover", self.learning.model(self.node), deadline_s)
        received: list[Received] = yield from self.collect(assignment, "handover", deadline_s)
        if received:
            self.adopt(received[0], assignment.round_number - 1)

    @property
    def train_s(self) -> float:
        """How long it trains in a round."""
        return self.profile.train_s

    @property
    def last_round(self) -> int:
        """The last round in which one more release stays within the budget, as far as known now."""
        if self._has_spent_records():
            return 0
        return EVERY_ROUND if self.ledger is None else int(min(self.ledger.exhausted_from - 1, EVERY_ROUND))

    def take_part(self, assignment: Assignment) -> Steps:
        """Opens a session, runs the protocol's part or hands the model over for the final one, and reports."""
        round_number, this, world, endpoint = assignment.round_number, assignment.order, self.world, self.endpoint
        if self.has_reported(assignment):
            return
        if self.now_s >= assignment.closes_s or self._taken >= this:
            return  # too late, or handed out twice (by a standby that could not know)
        self._taken = this
        assignment = self.accept(assignment)
        held = endpoint.enter(assignment)
        if held is None:
            return
        # While `active_round` is set, new orders for the round interrupt its waits instead of queueing behind them.
        endpoint.active_round, self.skipped = round_number, False
        world.phase_hooks.notify(self.node, round_number, "appointed")
        if assignment.send_to.get("collect"):
            self.send(assignment, "collect", self.learning.model(self.node), assignment.closes_s)
        else:
            self._log_invitation(round_number)
            order: Assignment | Close | None = assignment
            # Again for each newer plan that the protocol itself has not taken up.
            while isinstance(order, Assignment):
                self.skipped = False
                yield from self.protocol.take_part(self, order)
                order = self.new_order(order)
        self._free_s = self.now_s
        endpoint.end_part(round_number)
        world.log.end_wait(self.node)
        has_loss = world.reported_loss != "" and self._reports_loss(round_number)
        self.report(Done(round_number, self.node, self.model_round, self.skipped, held.assignment.epoch, has_loss))

    def _reports_loss(self, round_number: int) -> bool:
        """Returns whether its report carries a loss: the leader's of the new model, or its own if that is charged."""
        if self.world.reported_loss == "noisy_losses":
            return self.ledger is not None and self.ledger.last_round == round_number
        return self.has_public_loss(round_number)

    def _log_invitation(self, round_number: int) -> None:
        """Logs the time since it answered its invitation, or since it was free if another part came between."""
        called_s = self.world.network.called_s(self.node)
        # Once per invitation: a newer plan may reach a member whose part was done.
        if called_s != self._logged_call_s:
            self._logged_call_s = called_s
            self.world.log.span(self.node, round_number, "invite", max(called_s, self._free_s), self.now_s)
