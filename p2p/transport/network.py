"""The network of one run: the interface of the event core to processes, faults and the message log.

Every transmission has one row, is counted at full size when handed over, and has one final outcome. A message without
an outcome is in flight, so `sent = delivered + lost + rejected + in_flight` holds at every instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.clock import Clock
from p2p.config.distributions import Distribution, rounded
from p2p.links.link_table import Links
from p2p.links.settings import Retransmit
from p2p.log.log import Log
from p2p.log.records import KIND
from p2p.random_streams import name_word
from p2p.transport.contents import Alter
from p2p.transport.core import event_core as core
from p2p.transport.core import layout as at
from p2p.transport.event_loop import EventLoop, Receive
from p2p.transport.impairments import Impairment, Partition
from p2p.transport.inbox import Inbox
from p2p.transport.messages import Answers, Batch, Delivery, FetchTerms, Note
from p2p.transport.relays import Relays
from p2p.transport.sharing import Fair, Sharing


class Network(EventLoop):
    """Carries batches of messages over access links; nodes attach an inbox and a handler of urgent messages."""

    def __init__(
        self,
        clock: Clock,
        links: Links,
        sharing: Sharing,
        log: Log,
        seed: int,
        retransmit: Retransmit,
        *,
        rounds: int,
        loss: float = 0.0,
        jitter: Distribution | None = None,
        relays: Relays | None = None,
        alter: Alter = lambda content, rng: content,
    ) -> None:
        super().__init__(clock, links, log, seed, rounds, jitter, alter)
        memory, record = self._memory, self._memory.record
        memory.links["capacity"][0::2], memory.links["capacity"][1::2] = links.up, links.down
        record["sharing"] = sharing.code
        record["grid_s"] = (isinstance(sharing, Fair) and sharing.grid) or 0.0
        record["tries"], record["timeout_s"] = retransmit.tries, retransmit.timeout
        record["fail_fast"] = retransmit.receiver_offline == "fail_fast"
        record["loss"], record["loss_name"] = loss, name_word(seed, "loss")
        record["jittered"], record["jitter_name"] = jitter is not None, name_word(seed, "jitter")
        record["latency_name"] = name_word(seed, "latency")
        least_jitter_s = 0.0 if jitter is None else jitter.support()[0]
        record["least_delay_s"] = links.least_latency_s + rounded(np.array(least_jitter_s), "s")
        self._relays, self._routes = relays, 0
        if relays is not None:
            record["hops"], record["layer_bytes"] = relays.hops, relays.layer_bytes
            memory.nodes["relay"][list(relays.nodes)] = 1
        # Memoryviews, as above.
        self._down, self._due = memoryview(memory.nodes["down"]), memoryview(memory.nodes["due"])
        self._model_rounds = memoryview(memory.nodes["model_round"])
        self._last_rounds = memoryview(memory.nodes["last_round"])
        self._called_s = memoryview(memory.nodes["called_s"])
        self._answered_rounds = memoryview(memory.nodes["called_round"])
        self._early = memoryview(memory.nodes["early"])
        self._redirects: dict[int, int] = {}
        self._delays_to: dict[int, memoryview] = {}

    # Sending

    def call(self, batch: Batch, answers: Answers, before: Callable[[int, int], None] | None = None) -> None:
        """Sends requests that the core answers by the receivers' rules, while their processes wait for orders.

        Args:
            before: called with node and round before each answer, if given.
        """
        record = self._memory.record
        record["answer_bytes"], record["answer_overhead"] = answers.size_bytes, answers.overhead_bytes
        record["refusal_bytes"], record["calls_watched"] = answers.refusal_bytes, before is not None
        self._before_answer = before
        self._set_reply_delays(batch)
        self.contents.make_with(at.ANSWER_TOPIC, answers.of)
        batch.call = True
        self.send(batch)

    def hand_out(self, batch: Batch, fetch: FetchTerms) -> None:
        """Sends orders, some to fetch the first model: the core follows those while processes wait for orders."""
        record, one = self._memory.record, self._memory.rounds[batch.round_number]
        one["closes_s"], one["lasts_s"], one["first_from"] = fetch.closes_s, fetch.lasts_s, fetch.sender
        one["report"], one["orders"] = fetch.report, self.contents.next_number
        record["proxy"], record["report_bytes"] = fetch.proxy, fetch.note.size_bytes
        record["report_overhead"] = fetch.note.overhead_bytes
        self._on_fetch_over = fetch.over
        if fetch.taken is not None:
            self._take_first_models[batch.round_number] = fetch.taken
        self._set_reply_delays(batch)
        self.sessions.prepare(batch.round_number)
        self.send(batch)
        self._memory.inputs["fetch_life"] = -1  # no other message is such an order

    def _set_reply_delays(self, batch: Batch) -> None:
        """Sets how long replies to a batch take from each receiver to its sender; NaN where jitter is drawn."""
        receivers = list(batch.receivers)
        delays_s = np.nan if self._jitter is not None else self._links.latencies_to(batch.sender)[receivers]
        self._memory.nodes["answer_delay_s"][receivers] = delays_s

    def begin_fetch(self, node: int, round_number: int) -> None:
        """Lets a node, whose process waits for orders, fetch the first model in a round."""
        self._memory.reserve(1)
        self._enter(core.BEGIN_FETCH, 0.0, node, round_number)

    def end_fetch(self, node: int) -> None:
        """Ends a node's fetch without a report, if it is not over yet."""
        self._enter(core.END_FETCH, 0.0, node)

    def note_early(self, node: int, keeps: bool) -> None:
        """Notes whether a node keeps messages that have overtaken its order: it then reads the order at once."""
        self._early[node] = keeps

    def promised_s(self, round_number: int) -> float:
        """Returns until when nodes of a round have been given time to fetch the first model."""
        return float(self._memory.rounds["promised_s"][round_number])

    def set_rule(self, node: int, model_round: int, last_round: int) -> None:
        """Sets how a node answers calls: the round of its model (-1 without one), and the last round that it joins."""
        self._model_rounds[node], self._last_rounds[node] = model_round, last_round

    def answered_round(self, node: int) -> int:
        """Returns the round of the last call that a node has answered since it is up; -1 without one."""
        return self._answered_rounds[node]

    def called_s(self, node: int) -> float:
        """Returns when a node answered its last call."""
        return self._called_s[node]

    def send(self, batch: Batch) -> None:
        """Hands a batch over to the core; a node that is down sends nothing."""
        count, memory, sender = len(batch.receivers), self._memory, batch.sender
        if not count or self._down[sender]:
            return
        receivers = batch.receivers
        if self._redirects:
            receivers = [self._redirects.get(node, node) for node in receivers]
        if count > len(memory.inputs):
            memory.reserve_inputs(count)
        # Single messages are the most frequent case, and numpy's field access on one row is slow.
        if count == 1:
            size, overhead = batch.size_bytes, batch.overhead_bytes
            if not isinstance(size, int):
                size = int(size[0])
            if not isinstance(overhead, int):
                overhead = int(overhead[0])
            delay_s = np.nan if self._jitter is not None else self._links.latency(sender, receivers[0])
            life = -1 if batch.fetch_lives is None else batch.fetch_lives[0]
            memory.write_input(receivers[0], size, overhead, delay_s, life)
        else:
            some: Any = memory.inputs[:count]
            if self._relays is not None:
                some["route"] = -1  # of messages that go over no relay; without relays it stays so
            if batch.fetch_lives is not None:
                some["fetch_life"] = batch.fetch_lives  # see `hand_out`
            some["receiver"], some["size_bytes"], some["overhead"] = receivers, batch.size_bytes, batch.overhead_bytes
            some["delay_s"] = np.nan if self._jitter is not None else self._links.latencies_of(sender, receivers)
        kind = KIND[batch.kind]
        if self._relays is not None and kind:
            self._wrap(batch, receivers)
        number = self.contents.add(batch.round_number, batch.contents)
        topic = batch.topic if kind == 0 else kind
        # One integer for six fields: the entry point of the core takes four; `send` in core/starts.py unpacks it.
        packed = kind + (topic << 4) + (batch.immediate << 10) + (batch.separate << 14)
        packed += (batch.call << 16) + (batch.round_number << 17)
        self._hand_over(sender, count, packed, number, batch.give_up_s)

    def tell(self, sender: int, receiver: int, round_number: int, note: Note, number: int) -> None:
        """Sends one control message whose content is a number, which its reader turns into the content."""
        if self._down[sender]:
            return
        receiver = self._redirects.get(receiver, receiver)
        delays_s = self._delays_to.get(receiver)
        if delays_s is None:
            delays_s = self._delays_to[receiver] = self._find_delays(receiver)
        self._memory.write_input(receiver, note.size_bytes, note.overhead_bytes, delays_s[sender])
        packed = (note.topic << 4) + (note.outlives_round << 15) + (round_number << 17)
        self._hand_over(sender, 1, packed, at.MADE - number, np.inf)

    def _find_delays(self, receiver: int) -> memoryview:
        """Returns the delays of all nodes to a node that many of them tell something; NaN where jitter is drawn."""
        known_s: Any = self._links.latencies_to(receiver)
        return memoryview(known_s if self._jitter is None else np.full_like(known_s, np.nan))

    def _hand_over(self, sender: int, count: int, packed: int, number: int, give_up_s: float) -> None:
        self._unwritten = True
        # The core checks its needs before it changes anything, so the call can simply be repeated.
        while status := self._memory.call(core.SEND, give_up_s, count, sender, packed, number):
            if status == at.NEEDS_ROOM:
                self._make_room(2 * count)
            else:
                self._impairments.draw_bursts(sender, self._clock.now)
        self.next_s = -np.inf

    def _wrap(self, batch: Batch, receivers: Sequence[int]) -> None:
        """Routes data messages over relays: addressed to the first relay, with one layer per hop."""
        relays, memory, count = self._relays, self._memory, len(receivers)
        if relays is None:
            return
        # The number that the core is about to give: relays are drawn by the message's name.
        sequence = int(memory.nodes["sequence"][batch.sender]) + 1
        ways = relays.ways(batch.kind, batch.round_number, batch.sender, sequence, receivers)
        first, width = self._routes, relays.hops + 1
        memory.grow("routes", (first + count) * width)
        routes = memory.routes["value"][first * width : (first + count) * width].reshape(count, width)
        routes[:, :-1], routes[:, -1] = ways, receivers
        self._routes += count
        some: Any = memory.inputs[:count]
        some["route"] = np.arange(first, first + count)
        some["receiver"] = ways[:, 0]
        some["size_bytes"] += relays.hops * relays.layer_bytes
        some["overhead"] += relays.hops * relays.layer_bytes
        some["delay_s"] = np.nan

    # Waits of processes

    def attach(self, node: int, receive: Receive, inbox: Inbox) -> None:
        """Connects a node: its messages go to `inbox`, urgent ones to `receive`."""
        self._memory.nodes["attached"][node] = 1
        self._receivers[node] = receive
        self._inboxes[node] = inbox

    def expect(self, node: int, topic: int, round_number: int, needed: int, deadline_s: float) -> None:
        """Starts a wait of a node's process for `needed` more messages, or until a deadline."""
        self._memory.call(core.EXPECT, deadline_s, node, topic, round_number, needed)
        self.next_s, self._unwritten = -np.inf, True

    def wait_on(self, node: int, topic: int, round_number: int, needed: int) -> None:
        """Continues a wait for `needed` more messages, up to the same deadline."""
        self._enter(core.WAIT_ON, 0.0, node, topic, round_number, needed)

    def sleep(self, node: int, until_s: float) -> None:
        """Starts a wait of a node's process for an instant."""
        self._enter(core.SLEEP, until_s, node)

    def ask_wake(self, node: int, *, due: bool = False) -> None:
        """Wakes a node's process at this instant; with `due` it receives what has arrived so far."""
        if due:
            self._due[node] = 1
        self._enter(core.ASK_WAKE, 0.0, node)

    def call_off(self, node: int) -> None:
        """Cancels the wait of a node's process."""
        one: Any = self._memory.nodes[node]
        # Queued deadlines and wake-ups carry the old version, so they are ignored when their time comes.
        one["version"] += 1
        one["wait_topic"], one["waking"] = at.NO_TOPIC, 0

    def take_contents(self, deliveries: Sequence[Delivery]) -> list[Any]:
        """Returns the contents of messages that arrived once and unaltered; nothing may read them again."""
        return self.contents.take(deliveries, keep=bool(self._listeners))

    def refuse(self, row: int, reason: str) -> None:
        """Rejects a message that was taken from an inbox."""
        self._table.refuse(row, reason)

    # Rounds

    def close_round(self, round_number: int) -> None:
        """Stops retransmissions of a round's messages, except those that outlive the round."""
        self._memory.rounds["closed"][round_number] = 1

    def reopen_round(self, round_number: int) -> None:
        """Reopens a round: retransmissions resume, and a pending drain notification is cancelled."""
        one: Any = self._memory.rounds[round_number]
        one["closed"] = one["watched"] = 0
        self._when_drained.pop(round_number, None)

    def when_drained(self, round_number: int, then: Callable[[], None]) -> None:
        """Calls `then` once no message of the round is in flight, immediately if that is so now."""
        self._when_drained[round_number] = then
        if self._memory.rounds["open"][round_number] == 0:
            self._on_drained(round_number)
        else:
            self._memory.rounds["watched"][round_number] = 1

    # Faults

    def is_down(self, node: int) -> bool:
        """Returns whether a node is down: it neither sends nor receives."""
        return bool(self._down[node])

    def take_down(self, node: int) -> None:
        """Takes a node down: its transfers are aborted, and their bandwidth is free at once."""
        inbox = self._inboxes[node]
        # What has arrived came to a node that was up, whenever it is read.
        if inbox is not None:
            inbox.read()
        self._memory.reserve(self._memory.call(core.COUNT_LISTED, 0.0, node))
        self._enter(core.TAKE_DOWN, 0.0, node)

    def bring_up(self, node: int) -> None:
        """Brings a node up again."""
        self._down[node] = 0

    def redirect(self, node: int, stand_in: int) -> None:
        """Redirects future messages for a node to another one."""
        self._redirects[node] = stand_in
        self._memory.nodes["redirect"][node] = stand_in

    def impair(self, impairment: Impairment) -> None:
        """Activates an impairment; a partition also aborts the messages in flight across it."""
        place = self._impairments.begin(impairment)
        if isinstance(impairment, Partition):
            self._memory.reserve(int(self._memory.record["used_slots"]))
            self._enter(core.CUT, 0.0, place)

    def repair(self, impairment: Impairment) -> None:
        """Deactivates an impairment."""
        self._impairments.end(impairment)

    def scale_links(self, nodes: Iterable[int], up: float, down: float) -> None:
        """Multiplies nodes' rates from now on (a slow link, or its return to normal)."""
        for node in nodes:
            self._links.up[node] *= up
            self._links.down[node] *= down
            self._enter(core.SET_CAPACITY, float(self._links.up[node]), 2 * node)
            self._enter(core.SET_CAPACITY, float(self._links.down[node]), 2 * node + 1)

    # Facts

    @property
    def links(self) -> Links:
        """The rates and latencies of this run."""
        return self._links

    def prefetch(self, edges: NDArray[np.int64]) -> None:
        """Announces pairs (sender, receiver) that will communicate soon; affects speed only."""
        self._links.prefetch(edges)

    @property
    def latest_start_s(self) -> float:
        """The largest delay of a transfer's start by the time grid; 0 without one."""
        return float(self._memory.record["late_s"])
