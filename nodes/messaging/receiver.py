"""The receiving side of a node: checks arrivals against its sessions before its process reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple, Protocol

from nodes.messaging.control_messages import (
    Assignment,
    Close,
    CommitRequest,
    Control,
    LeaderProbe,
    LeaderTimeout,
    Register,
)
from nodes.messaging.round_session import Received, RoundSession
from nodes.world import World
from p2p.clock import Rank
from p2p.log.records import KINDS
from p2p.transport.core.layout import BY_RULE, CARRIED, COPY, CORRUPTED, DOUBLED, FETCH, FIRST_TOPIC
from p2p.transport.inbox import Inbox
from p2p.transport.messages import TOPICS, Delivery, Message
from privacy.sealing.envelopes import Envelope, Rejected
from privacy.sealing.keys import KeyPair

# Shared empty defaults: most endpoints hold nothing most of the time, and a run may have very many of them.
_NO_EARLY: Mapping[int, Message] = MappingProxyType({})
_NO_CONTROLS: frozenset[tuple[int, int]] = frozenset()
_ORDERS, _REGISTER = TOPICS["orders"], TOPICS["register"]
_FILED_TOPICS = {TOPICS[name] for name in ("register", "orders", "answer", "done")}
_SPECIAL = CORRUPTED | CARRIED | DOUBLED | COPY | FETCH
EARLY_S = 10.0
"""How long a message that overtook its receiver's assignment is kept."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A control message corrupted in transit; the connection's own integrity check rejects it."""

    content: Control


class Arrival(NamedTuple):
    """How a control message arrived."""

    sender: int
    sequence: int
    flags: int
    arrived_s: float


class Fetcher(Protocol):
    """A node's part in fetching the first model; `by_rule`: the core has followed the order, or taken the model."""

    def take_fetch_order(self, order: Assignment, arrived_s: float, by_rule: bool) -> None:
        """Follows an order to fetch the first model."""

    def take_first_model(self, round_number: int, item: Received, by_rule: bool) -> None:
        """Takes the first model, if it is fetched in this round."""

    def close_fetch(self, round_number: int) -> None:
        """Ends a fetch, because the proxy has closed the round."""


class Receiver:
    """Rejects altered, replayed, foreign and stale messages, with the reason; files the others in the inbox.

    Attributes:
        active_round: the round that the process takes part in; new orders for it interrupt its waits; else -1
        answer: called with every opened payload; returns True for one that it handles itself, which skips the inbox
        on_commit: called with every commit request at its arrival; the proxy's
        fetcher: what follows orders to fetch the first model; a client's
    """

    __slots__ = (
        *("_controls", "_early", "_joined", "_latest_round", "_left_s", "_probes", "_sessions", "_world"),
        *("active_round", "answer", "fetcher", "inbox", "node", "on_commit"),
    )

    def __init__(self, node: int, world: World) -> None:
        self.node = node
        self._world = world
        self._latest_round = -1
        self.answer: Callable[[str, int, Received], bool] = _answers_nothing
        self.on_commit: Callable[[CommitRequest], None] = _ignores
        self.fetcher: Fetcher | None = None
        self.forget_all()

    def forget_all(self) -> None:
        """Begins with an empty inbox, without keys, and without anything kept from earlier arrivals."""
        # The round that it has registered for, or that keys were drawn for, and these keys; a session has its own.
        self._joined: tuple[int, KeyPair | None] | None = None
        # When it has left the round that it had joined by an answer.
        self._left_s = -1.0
        # Rounds that overlap are few, and a tuple of one takes less memory and time than a dictionary.
        self._sessions: tuple[RoundSession, ...] = ()
        self._keep_early(_NO_EARLY)
        self._probes: Sequence[LeaderProbe] = ()
        self._controls = _NO_CONTROLS
        self.active_round = -1
        network = self._world.network
        self.inbox = Inbox(network, self.node, self._open)
        network.attach(self.node, self.receive, self.inbox)

    def _keep_early(self, early: Mapping[int, Message]) -> None:
        """Replaces what is kept of messages that have overtaken their assignment, by row."""
        self._early = early
        self._world.network.note_early(self.node, bool(early))

    def session(self, round_number: int) -> RoundSession | None:
        """Returns its session of a round."""
        for held in self._sessions:
            if held.round_number == round_number:
                return held
        return None

    def has_session(self, round_number: int) -> bool:
        """Returns whether it has an address in a round."""
        return self.session(round_number) is not None

    def _has_joined(self, round_number: int) -> bool:
        """Returns whether it has joined a round and neither left it nor joined another.

        It joins by its answer to an invitation, or as it registers.
        """
        network = self._world.network
        # Asked in the core: the content of an answer is made when the proxy reads it, whenever that is.
        answered = network.answered_round(self.node)
        if answered >= 0:
            return answered == round_number and network.called_s(self.node) > self._left_s
        return self._joined is not None and self._joined[0] == round_number

    def note_round(self, round_number: int) -> None:
        """Notes that it has an assignment of a round: messages of earlier rounds are stale from now on."""
        self._latest_round = max(self._latest_round, round_number)

    def epoch(self, round_number: int) -> int:
        """Returns the epoch of the latest assignment for a round; -1 without one."""
        held = self.session(round_number)
        return -1 if held is None else held.assignment.epoch

    def receive(self, message: Message) -> str | None:
        """Files a message on arrival, or returns why it is rejected.

        A message of a round that this node has joined may overtake its assignment; it is kept until that arrives.
        """
        self.inbox.read()
        if message.kind == "control":
            arrival = Arrival(message.sender, message.sequence, message.flags, message.arrived_s)
            return self._receive_control(arrival, message.content)
        envelope: Envelope = message.content
        held = self.session(envelope.round)
        if held is None and self._has_joined(envelope.round):
            self._keep_early({**self._early, message.row: message})
            clock = self._world.clock
            # None leaves the outcome open; a message whose assignment never comes is rejected after a while.
            clock.call_at(clock.now + EARLY_S, Rank.DEADLINE, self.node, partial(self._refuse_early, message.row))
            return None
        if held is None:
            return "stale_round" if envelope.round < self._latest_round else "unknown_address"
        return self._file_envelope(held, envelope, message.row, message.arrived_s, message.flags)

    def _file_envelope(self, held: RoundSession, envelope: Envelope, row: int, arrived_s: float, flags: int) -> str:
        kind = envelope.kind
        try:
            value = held.open(self._world.sealer, self._world.router, envelope, kind)
        except Rejected as refusal:
            return refusal.reason
        item = Received(envelope.sender, value, row, arrived_s)
        # A correction request is answered on arrival, even while the process waits for something else.
        if kind == "bootstrap" and self.fetcher is not None:
            self.fetcher.take_first_model(envelope.round, item, bool(flags & BY_RULE))
        elif not self.answer(kind, envelope.round, item):
            self.inbox.put((kind, envelope.round), item)
        if kind == "update":
            self._world.phase_hooks.notify(self.node, envelope.round, "aggregate")
        return ""

    def _open(self, deliveries: Sequence[Delivery]) -> None:
        """Checks and files messages from the inbox; every change of sessions reads the inbox first."""
        # Most inboxes hold messages of one topic and round.
        for topic, round_number, group in _by_topic(deliveries):
            if topic >= FIRST_TOPIC:
                self._open_controls(topic, group)
            else:
                self._open_sealed(KINDS[topic], round_number, group)

    def _open_sealed(self, kind: str, round_number: int, deliveries: Sequence[Delivery]) -> None:
        world, network = self._world, self._world.network
        held = self.session(round_number)
        # The common case, in bulk; one irregular message sends the whole group through the individual checks.
        if held is not None and kind != "bootstrap":
            items = held.open_unaltered(self.node, kind, deliveries, network.contents.of_round(round_number))
            if items is not None:
                self.inbox.put_all((kind, round_number), items)
                return
        for delivery in deliveries:
            reason = self._open_one(network.contents.as_arrived(delivery), delivery)
            if reason:
                world.network.refuse(delivery.row, reason)

    def _open_one(self, envelope: Envelope, delivery: Delivery) -> str:
        """Opens one message by its own header, which corruption may have changed."""
        held = self.session(envelope.round)
        if held is None:
            return "stale_round" if envelope.round < self._latest_round else "unknown_address"
        return self._file_envelope(held, envelope, delivery.row, delivery.arrived_s, delivery.flags)

    def _open_controls(self, topic: int, deliveries: Sequence[Delivery]) -> None:
        network = self._world.network
        # The common case, in bulk, as for sealed messages.
        if self._are_plain(topic, deliveries):
            contents = network.take_contents(deliveries)
            self.inbox.put_all(contents[0].key, contents)
            return
        for delivery in deliveries:
            content = network.contents.as_arrived(delivery)
            arrival = Arrival(delivery.sender, abs(delivery.sequence), delivery.flags, delivery.arrived_s)
            reason = self._receive_control(arrival, content)
            if reason:
                network.refuse(delivery.row, reason)

    def _are_plain(self, topic: int, deliveries: Sequence[Delivery]) -> bool:
        """Returns whether control messages of one topic are unaltered, from known senders, and need only be filed."""
        if topic not in _FILED_TOPICS or (topic == _ORDERS and self.active_round >= 0):
            return False
        world = self._world
        for delivery in deliveries:
            if delivery[7] & _SPECIAL:  # its flags, by place, which is faster than by name
                return False
        senders = {delivery[4] for delivery in deliveries}
        if not self._is_service(self.node):
            return senders <= {world.proxy, world.standby}
        return topic == _REGISTER or world.router.knows_all(senders)

    def _receive_control(self, arrival: Arrival, control: Control | Damaged) -> str:
        """Files a control message, or returns why it is rejected."""
        sender, sequence, flags, _ = arrival
        # One end must be the proxy (or its standby), the other a registered node.
        serves, by_proxy = self._is_service(self.node), self._is_service(sender)
        if isinstance(control, Damaged):
            return "corrupt" if serves or by_proxy else "not_neighbour"
        if not serves and not by_proxy:
            return "not_neighbour"
        if serves and not isinstance(control, Register) and not self._world.router.knows(sender):
            return "unknown_address"
        # Only a duplicated message can arrive twice: lost ones are sent again, delivered ones are not.
        if flags & DOUBLED:
            if (sender, sequence) in self._controls:
                return "replay"
            self._controls |= {(sender, sequence)}
        self._file(control, arrival)
        return ""

    def _is_service(self, node: int) -> bool:
        world = self._world
        return node == world.proxy or node == world.standby

    def _file(self, control: Control, arrival: Arrival) -> None:
        """Files a control message by its key; one about the active round wakes the process that runs it."""
        if isinstance(control, LeaderProbe):
            self._probes = [*self._probes, control]
            self._answer_probes()
        elif isinstance(control, Assignment) and control.fetches and self.fetcher is not None:
            self.fetcher.take_fetch_order(control, arrival.arrived_s, bool(arrival.flags & BY_RULE))
        elif isinstance(control, (Assignment, Close)) and control.round_number == self.active_round:
            self._take_new_order(control)
        elif isinstance(control, CommitRequest):
            # Decided at arrival: whatever the proxy waits for, a leader must not wait for its process.
            self.on_commit(control)
        else:
            self.inbox.put(control.key, control)
            if isinstance(control, Close) and self.fetcher is not None:
                self.fetcher.close_fetch(control.round_number)
            if isinstance(control, LeaderTimeout):
                # The proxy waits for reports; a complaint must not wait for the last of them.
                self.inbox.wake_if_waiting(("done", control.round_number))

    def _take_new_order(self, order: Assignment | Close) -> None:
        round_number = order.round_number
        verdict = ("verdict", round_number)
        if isinstance(order, Assignment) and self.epoch(round_number) >= order.epoch:
            # Handed out twice, by a proxy that was down and has lost what was sent to it: a leader asks again.
            self.inbox.wake_if_waiting(verdict)
            return
        self.inbox.put(("reorder", round_number), order)
        # Whatever the process waits for in this round, the wait belongs to the old plan; except for shares, whose
        # exchange is the same under every plan of a round.
        self.inbox.wake_if_waiting(verdict, *((kind, round_number) for kind in KINDS if kind != "share"))

    def mark_used(self, received: Sequence[Received]) -> None:
        """Marks messages as used in the message log."""
        self._world.log.mark_used([item.row for item in received])

    def _answer_probes(self) -> None:
        """Acknowledges probes whose assignment has arrived; a probe may overtake it."""
        answered = [probe for probe in self._probes if self.epoch(probe.round_number) >= probe.epoch]
        self._probes = [probe for probe in self._probes if probe not in answered]
        for probe in answered:
            probe.acknowledge()

    def _judge_early(self) -> None:
        """Judges messages that arrived before their assignment; those that are still early stay."""
        early = self._early
        self._keep_early(_NO_EARLY)
        for row, message in early.items():
            round_number = message.content.round
            if self._has_joined(round_number) and not self.has_session(round_number):
                self._keep_early({**self._early, row: message})
            else:
                self._world.network.settle(message, self.receive(message))

    def _refuse_early(self, row: int) -> None:
        message = self._early.get(row)
        if message is not None:
            self._keep_early({other: one for other, one in self._early.items() if other != row})
            self._world.network.settle(message, "unknown_address")


def _answers_nothing(kind: str, round_number: int, item: Received) -> bool:
    return False


def _ignores(request: CommitRequest) -> None:
    """Receives a commit request that reached a node other than the proxy."""


def _by_topic(deliveries: Sequence[Delivery]) -> Sequence[tuple[int, int, Sequence[Delivery]]]:
    """Groups consecutive messages of one topic and round, in the order of arrival."""
    number, topic = deliveries[0][5:7]  # by place, which is faster than by name
    for one in deliveries:
        if one[6] != topic or one[5] != number:
            groups = groupby(deliveries, key=lambda delivery: (delivery.topic, delivery.round_number))
            return [(*name, list(group)) for name, group in groups]
    return ((topic, number, deliveries),)  # the usual case
