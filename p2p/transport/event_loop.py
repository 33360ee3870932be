"""The event loop between SimPy and the compiled event core: runs the core, and gives it what only Python has.

The clock lets it work up to SimPy's next event. The core returns early when a process resumes, when a message is to be
handled on arrival, and when it needs room, delays or states of bursts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from p2p.clock import Clock
from p2p.config.distributions import Distribution, rounded
from p2p.links.link_table import Links
from p2p.log.log import Log
from p2p.log.records import KINDS, OUTCOME, REASON
from p2p.transport.contents import Alter, BatchContents
from p2p.transport.core import event_core as core
from p2p.transport.core import layout as at
from p2p.transport.core.memory import RECEIVER, TAKEN, Memory
from p2p.transport.impairment_table import ImpairmentTable
from p2p.transport.inbox import Inbox
from p2p.transport.message_table import MessageTable
from p2p.transport.messages import Delivery, FirstModels, Message
from p2p.transport.sessions import Sessions

Receive = Callable[[Message], str | None]
"""Handles a message on arrival: returns the reason of a rejection, "" to accept, None to `settle` it later."""

_DELIVERED, _LOST, _REJECTED = OUTCOME["delivered"], OUTCOME["lost"], OUTCOME["rejected"]
_FLUSH_AT = 1 << 13
# Arrays grow by half when they are full, so a small margin is enough.
_ROOM = 1 << 10
# Read for every event that returns to Python, and an attribute of a module costs twice as much.
_REACHED, _WOKEN, _WOKEN_DUE, _STATUS_BITS = at.REACHED, at.WOKEN, at.WOKEN_DUE, at.STATUS_BITS
_ADVANCE = core.ADVANCE
_STATUS = (1 << _STATUS_BITS) - 1
_UNKNOWN_S = -np.inf
_DELIVERY_FIELDS = at.OUTPUT.names or ()
_make_delivery = partial(tuple.__new__, Delivery)  # `Delivery._make` is a Python function that does the same


class EventLoop:
    """Owns the core's memory; wakes processes, hands urgent messages over, and writes the message log.

    Attributes:
        contents: the contents of messages that may still be read
        sessions: which nodes read a round's messages from their inboxes
        inbox_counts: how many messages lie in each node's inbox
        next_s: a lower bound on the time of the next event; minus infinity if unknown
    """

    def __init__(
        self, clock: Clock, links: Links, log: Log, seed: int, rounds: int, jitter: Distribution | None, alter: Alter
    ) -> None:
        self._clock, self._links, self._jitter, self._log = clock, links, jitter, log
        nodes = len(links.up)
        self._memory = memory = Memory(nodes, rounds)
        self._impairments = ImpairmentTable(memory, seed)
        self._table = MessageTable(log, memory, self._show_passed)
        self.contents = BatchContents(seed, alter, self._table.damages)
        self.sessions = Sessions(memory, nodes)
        # A memoryview: reading one element takes a third of the time of a numpy array.
        self.inbox_counts = memoryview(memory.nodes["inbox_count"])
        self._inboxes: list[Inbox | None] = [None] * nodes
        self._receivers: dict[int, Receive] = {}
        self._listeners: list[Callable[[Message], None]] = []
        self._before_answer: Callable[[int, int], None] | None = None
        self._on_fetch_over: Callable[[int], None] = _ignores
        # By round, what takes first models that are read together.
        self._take_first_models: dict[int, Callable[[FirstModels], None]] = {}
        self._when_drained: dict[int, Callable[[], None]] = {}
        self._unwritten = False
        self.next_s = -np.inf
        clock.core = self
        log.messages.before_read = self.write

    def work(self, until_s: float, until_key: int) -> bool:
        """Handles network events up to an instant and key; returns True if a process may have changed the queue."""
        memory, clock, inboxes = self._memory, self._clock, self._inboxes
        first = clock.first_event()
        while True:
            # Every time: what is done for a process may write the log, and clear this mark.
            self._unwritten = True
            status = memory.call(_ADVANCE, until_s, until_key)
            if status == _REACHED:
                self.next_s = memory.next_event_s()
                return False
            clock._now = memory.seconds[0]
            what, status = status >> _STATUS_BITS, status & _STATUS
            if status in (_WOKEN, _WOKEN_DUE):
                count = memory.words[TAKEN]
                inboxes[what].wake(status == _WOKEN_DUE, self._read_outputs(count) if count else ())  # type: ignore[union-attr]
            else:
                self._serve(status, what)
            # A process may have queued an earlier event, or an interrupt may have come.
            if clock.first_event() is not first or clock.stopping:
                self.next_s = _UNKNOWN_S
                return True

    def _serve(self, status: int, what: int) -> None:
        """Does what the core needs, other than waking a process."""
        memory, clock = self._memory, self._clock
        if status == at.ARRIVED:
            self._on_arrived(what)
        elif status == at.ROUND_DRAINED:
            self._on_drained(what)
        elif status == at.CALLED:
            if self._before_answer is not None:
                self._before_answer(what, int(memory.nodes["call_round"][what]))
            self._enter(core.ANSWER_NOW, 0.0, what)
        elif status == at.FETCH_OVER:
            self._on_fetch_over(what)
        elif status == at.NEEDS_DELAY:
            self._fill()
        elif status == at.NEEDS_BURST:
            self._impairments.draw_bursts(what, clock.now)
        else:
            self._make_room()

    def _enter(self, operation: int, x: float, a: int, b: int = 0, c: int = 0, d: int = 0) -> None:
        self._memory.call(operation, x, a, b, c, d)
        self.next_s, self._unwritten = -np.inf, True

    def _make_room(self, messages: int = 0) -> None:
        if int(self._memory.record["passed"]):
            self._show_passed()
        # Ended messages hold their slots until they are written, so writing them comes before enlarging arrays.
        if int(self._memory.record["ended"]) > _FLUSH_AT // 2:
            self._table.write_ended()
        self._memory.reserve(messages + _ROOM)

    def _fill(self) -> None:
        """Fills in the missing delays of all messages: the latency of the pair, and jitter drawn by name."""
        memory = self._memory
        memory.grow("delays", int(memory.record["unfilled"]))
        some: Any = memory.delays[: memory.call(core.DRAW)]
        # For many messages at once: the quantile functions are numpy's, and cost as much for one as for many.
        delays_s = self._links.drawn_latencies(some["pair_draw"], some["sender"], some["receiver"])
        if self._jitter is not None:
            delays_s = delays_s + rounded(self._jitter.quantiles(some["jitter_draw"]), "s")
        memory.slots["delay_s"][some["slot"]] = delays_s
        memory.reserve(len(some))
        memory.call(core.FILLED)

    def _on_arrived(self, slot: int) -> None:
        (delivery,), receiver = self._read_outputs(1), self._memory.words[RECEIVER]
        message = self._message(slot, receiver, delivery)
        self.settle(message, self._receivers[receiver](message))

    def _message(self, slot: int, receiver: int, delivery: Delivery) -> Message:
        row, _, _, sequence, sender, round_number, topic, flags, _, arrived_s = delivery
        kind = KINDS[topic] if topic < at.FIRST_TOPIC else "control"
        content = self.contents.as_arrived(delivery)
        return Message(slot, row, kind, round_number, sender, receiver, abs(sequence), flags, content, arrived_s)

    def _on_drained(self, round_number: int) -> None:
        # Not earlier: until then a node that reads its model keeps a session, against copies of it.
        taken = self._take_first_models.pop(round_number, None)
        if taken is not None:
            self._read_first_models(round_number, taken)
        self.read_inboxes()
        self._show_passed()
        # Inboxes and listeners come first: they still need the contents that are dropped below.
        self.sessions.close_all(round_number)
        self._when_drained.pop(round_number)()
        self.contents.drop(round_number)

    def take(self, node: int) -> list[Delivery]:
        """Empties a node's inbox; returns its messages in the order of arrival."""
        count, memory = self.inbox_counts[node], self._memory
        if count > len(memory.outputs):
            memory.grow("outputs", count)
        if count > memory.spare_ended():
            memory.grow("ended", int(memory.record["ended"]) + count + _FLUSH_AT)
        memory.call(core.TAKE_INBOX, 0.0, node, count)
        return self._read_outputs(count)

    def _read_outputs(self, count: int) -> list[Delivery]:
        return list(map(_make_delivery, self._memory.read_outputs(count))) if count else []

    def settle(self, message: Message, reason: str | None) -> None:
        """Gives an urgent message its outcome; None leaves it open."""
        if reason is not None:
            self._settle(message.slot, _REJECTED if reason else _DELIVERED, REASON[reason])

    def lose(self, message: Message, reason: str) -> None:
        """Loses an urgent message that was kept, when its receiver goes down before reading it."""
        self._settle(message.slot, _LOST, REASON[reason])

    def _settle(self, slot: int, outcome: int, reason: int) -> None:
        self._memory.reserve(1)
        self._enter(core.SETTLE, 0.0, slot, outcome, reason)

    def listen(self, overhear: Callable[[Message], None]) -> None:
        """Registers a listener that sees every message after its last byte, at the next `read_wire`."""
        self._show_passed()  # earlier messages belong to earlier listeners only
        self._memory.record["listening"] = 1
        self._listeners.append(overhear)

    def read_wire(self) -> None:
        """Shows listeners the messages that have passed since the last call, in the order of their end."""
        self._show_passed()

    def _show_passed(self) -> None:
        memory = self._memory
        count = int(memory.record["passed"])
        if not count:
            return
        slots = memory.passed["value"][:count].tolist()
        memory.record["passed"] = 0
        # Copies: reading a corrupted message writes the log, which may free slots.
        for slot, one in zip(slots, memory.gather_slots(slots), strict=True) if self._listeners else ():
            delivery = Delivery(*(one[name].item() for name in _DELIVERY_FIELDS))
            message = self._message(slot, int(one["receiver"]), delivery)
            for overhear in self._listeners:
                overhear(message)

    def read_inboxes(self) -> None:
        """Opens all arrived messages, so that no logged outcome depends on when the log is read."""
        memory, first = self._memory, 0
        while count := memory.call(core.WAITING_NODES, 0.0, first, len(memory.outputs)):
            for node in memory.outputs["row"][:count].tolist():
                inbox = self._inboxes[node]
                if inbox is not None:
                    inbox.read()
                first = node + 1

    def _read_first_models(self, round_number: int, taken: Callable[[FirstModels], None]) -> None:
        """Reads the first models of a round where nothing else lies in the inbox, many at once."""
        memory, of_round, first = self._memory, self.contents.of_round(round_number), 0
        most = len(memory.outputs) // 2
        while True:
            memory.grow("ended", int(memory.record["ended"]) + 2 * most + _FLUSH_AT)
            count = memory.call(core.TAKE_FETCHED, 0.0, round_number, first, most)
            if not count:
                return
            orders, models = memory.outputs[: 2 * count : 2], memory.outputs[1 : 2 * count : 2]
            nodes = models["sender"].astype(np.int64)
            contents = [of_round[batch] for batch in models["batch"].tolist()]
            times_s = orders["arrived_s"].copy(), models["arrived_s"].copy()
            taken(FirstModels(round_number, nodes, *times_s, models["row"].copy(), contents))
            first = int(nodes[-1]) + 1

    def close(self) -> None:
        """Completes the message log at the end of a run, and frees the event core: nothing moves any more."""
        self.write()
        self._memory.free()

    def write(self) -> None:
        """Brings the message log up to date; called before any read of it."""
        if self._unwritten:
            self.read_inboxes()
            self._table.write_all()
            self._unwritten = False
        else:
            self._log.write_used()


def _ignores(node: int) -> None:
    """Does nothing about a fetch that is over: nothing fetches in a network whose nodes follow no such orders."""
