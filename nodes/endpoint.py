"""A node's handle on the network: it seals and sends, and checks everything that comes before anyone reads it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

import numpy as np

from nodes.controls import CAN_WAIT, Assignment, Close, Complaint, Control, Peer, Probe, Register
from nodes.passes import Pass
from nodes.passes import Received as Received
from nodes.triggers import Triggers
from p2p.clock import Clock
from p2p.log import Log
from p2p.mailbox import Mailbox
from p2p.network import Network, Parcel
from p2p.parcels import Letter
from p2p.records import KINDS, NOBODY
from privacy.anonymity import Sealed
from privacy.envelopes import Envelope, Payload, Rejected, message_size
from privacy.keys import KeyPair
from privacy.pseudonyms import Pseudonyms
from privacy.sealing import Sealer

_SEQUENCE_BITS = 40
_NOTHING_EARLY: Mapping[int, Parcel] = MappingProxyType({})
# What most endpoints hold most of the time, once for all of them.
_NO_KEYS: Mapping[int, KeyPair] = MappingProxyType({})
_NO_PASSES: Mapping[int, Pass] = MappingProxyType({})
EARLY_S = 10.0
"""How long a message that overtook its receiver's assignment is kept."""


@dataclass(frozen=True, slots=True)
class World:
    """What every process shares. `router` is the proxy's book: only it turns addresses into nodes."""

    clock: Clock
    network: Network
    log: Log
    seed: int
    sealed: Sealed
    sealer: Sealer
    router: Pseudonyms
    triggers: Triggers
    proxy: int
    standby: int
    server: int
    first_life: int = 0
    """Where endpoints begin to count their lives: a resumed run starts beyond those of the run it goes on with."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A control message whose bytes changed on the way; the connection's own check will notice."""

    content: Control


class Endpoint:
    """Sends under this round's address; refuses what is altered, replayed, foreign or stale, with the reason.

    Attributes:
        life: how often it has begun anew: another life has other keys
        answer: asked about every payload that was opened; what it answers itself does not go to the mailbox
    """

    __slots__ = (
        *("_controls", "_early", "_keys", "_latest_round", "_passes", "_probes", "_world"),
        *("active_round", "answer", "life", "mailbox", "node"),
    )

    def __init__(self, node: int, world: World) -> None:
        self.node = node
        self.mailbox = Mailbox(world.clock, node, self._open_letters)
        self._world = world
        self._keys: Mapping[int, KeyPair] = _NO_KEYS
        self._passes: Mapping[int, Pass] = _NO_PASSES
        self._early: Mapping[int, Parcel] = _NOTHING_EARLY  # by the number of the deadline until which it is kept
        self._probes: Sequence[Probe] = ()
        self._controls: set[int] | None = None  # made when the first message comes that may come twice
        self._latest_round = -1
        self.life = world.first_life
        self.active_round = -1
        self.answer: Callable[[str, int, Received], bool] = _answers_nothing
        world.network.attach(node, self.receive, self.take_control)

    def draw_keys(self, round_number: int) -> bytes:
        """Draws this round's one-time pair and returns the public half; keys of a round that went on without it go."""
        self.mailbox.read()
        if self._keys:
            self._keys = {number: keys for number, keys in self._keys.items() if number in self._passes}
        if self._early:
            self._judge_early()
        keys = self._keys.get(round_number)
        if keys is None:
            world = self._world
            keys = world.sealer.draw_keys(world.seed, self.node, round_number, self.life)
            self._keys = {**self._keys, round_number: keys}
        return keys.public

    def lose_state(self) -> None:
        """A crash: mailbox, keys and addresses are gone; what had come and was not read is lost."""
        self.mailbox.read()
        for number, parcel in self._early.items():
            self._world.clock.call_off(number)
            self._world.network.lose(parcel, "receiver_down")
        for round_number in self._passes:
            self._world.network.close_box(self.node, round_number)
        self.mailbox.close()
        self.mailbox = Mailbox(self._world.clock, self.node, self._open_letters)
        self._keys, self._passes, self._early = _NO_KEYS, _NO_PASSES, _NOTHING_EARLY
        self._controls, self._probes = None, ()
        # Another life draws other keys: the old ones may have sealed something already.
        self.life += 1
        self.active_round = -1

    def enter(self, assignment: Assignment) -> None:
        """Takes up an address for a round; the peers named in the assignment may send from now on."""
        self.mailbox.read()
        round_number = assignment.round_number
        known = self._passes.get(round_number)
        if known is None:
            keys = self._keys.get(round_number)
            if keys is None:
                return  # it crashed between joining and being assigned: the keys are gone
            self._passes = {**self._passes, round_number: Pass(assignment, keys, (assignment.expect_from,))}
            self._world.network.open_box(self.node, round_number, self.mailbox)
        else:
            known.renew(assignment)
        self._latest_round = max(self._latest_round, round_number)
        if self._early:
            self._judge_early()
        if self._probes:
            self._answer_probes()

    def leave(self, round_number: int) -> None:
        """Drops the round's address and keys, and what came too late for a round it is no longer in."""
        self.mailbox.read()
        if round_number in self._passes:
            self._passes = {number: held for number, held in self._passes.items() if number != round_number}
            self._world.network.close_box(self.node, round_number)
        if round_number in self._keys:
            self._keys = {number: keys for number, keys in self._keys.items() if number != round_number}
        if self.active_round != round_number:
            self.mailbox.clear(round_number, KINDS)

    def has_pass(self, round_number: int) -> bool:
        """Whether it has an address in a round."""
        return round_number in self._passes

    def send(self, round_number: int, kind: str, payload: Payload, give_up_s: float = np.inf) -> None:
        """Seals one payload for all peers the assignment names for this kind, and hands the messages over."""
        held = self._passes.get(round_number)
        peers = held.assignment.send_to.get(kind, ()) if held else ()
        if not held or not peers:
            return
        held.sequence += 1
        bundle = self._world.sealer.seal_many(
            kind, round_number, held.sequence, held.keys, held.assignment.address, peers, payload
        )
        receivers = self._find([address for address, _ in peers])
        sizes = bundle.size_bytes, bundle.overhead_bytes
        # A correction calls for an answer at once, and whoever watches wants to know when things happen.
        unread = kind != "correction" and not self._world.triggers.watches
        self._world.network.send(self.node, receivers, kind, round_number, *sizes, bundle, give_up_s, unread=unread)

    def send_each(
        self, round_number: int, kind: str, items: Sequence[tuple[Peer, Payload]], give_up_s: float = np.inf
    ) -> None:
        """Seals a payload of its own for each peer; all of the same size."""
        held = self._passes.get(round_number)
        if held is None or not items:
            return
        seal, sender, envelopes = self._world.sealer.seal_one, held.assignment.address, []
        for peer, payload in items:
            held.sequence += 1
            envelopes.append(seal(kind, round_number, held.sequence, held.keys, sender, peer, payload))
        self.send_envelopes(envelopes, kind, round_number, give_up_s)

    def agree(self, round_number: int, peer: Peer, purpose: bytes) -> bytes:
        """A secret with a peer from this round's one-time keys; nothing is sent."""
        return self._world.sealer.agree(round_number, self._passes[round_number].keys, peer.public_key, purpose)

    def send_envelopes(
        self, envelopes: Sequence[Envelope], kind: str, round_number: int, give_up_s: float = np.inf
    ) -> None:
        """Hands over sealed messages."""
        receivers = self._find([envelope.receiver for envelope in envelopes])
        first = envelopes[0]
        sizes = first.size_bytes, first.overhead_bytes
        self._world.network.send(self.node, receivers, kind, round_number, *sizes, envelopes, give_up_s)

    def _find(self, addresses: Sequence[bytes]) -> list[int]:
        """The router finds who is behind each address."""
        return [NOBODY if node is None else node for node in self._world.router.nodes_of(addresses)]

    def tell(self, nodes: Sequence[int], round_number: int, control: Control, give_up_s: float = np.inf) -> None:
        """Sends one control message to each of some nodes; only the proxy, or a node speaking to it, does that."""
        if not nodes:
            return
        sealed = self._world.sealed
        size_bytes = message_size(control.payload_bytes, many=False, sealed=sealed)
        overhead = size_bytes - control.payload_bytes
        contents = [control] * len(nodes)
        self._world.network.send(
            *(self.node, nodes, "control", round_number, size_bytes, overhead, contents, give_up_s),
            unread=isinstance(control, CAN_WAIT),
        )

    def tell_each(
        self, nodes: Sequence[int], round_number: int, controls: Sequence[Control], give_up_s: float = np.inf
    ) -> None:
        """Sends each of some nodes a control message of its own."""
        payloads = [control.payload_bytes for control in controls]
        whole = [message_size(payload, many=False, sealed=self._world.sealed) for payload in payloads]
        sizes = [(size, size - payload) for size, payload in zip(whole, payloads, strict=True)]
        self._world.network.send_each(self.node, nodes, "control", round_number, sizes, controls, give_up_s)

    def receive(self, parcel: Parcel) -> str | None:
        """Files an arrived message, or returns why it is refused.

        A message of a round this node has joined may overtake its assignment: it is kept until that comes.
        """
        if parcel.kind == "control":
            return self._receive_control(parcel)
        self.mailbox.read()
        envelope: Envelope = parcel.content
        held = self._passes.get(envelope.round)
        if held is None and envelope.round in self._keys:
            clock = self._world.clock
            number = clock.call_by(clock.now + EARLY_S, self.node, self._refuse_early)
            self._early = {**self._early, number: parcel}
            return None
        if held is None:
            return "stale_round" if envelope.round < self._latest_round else "unknown_address"
        kind = envelope.kind
        try:
            value = held.open(self._world.sealer, self._world.router, envelope, kind)
        except Rejected as refusal:
            return refusal.reason
        item = Received(envelope.sender, value, parcel.row, parcel.arrived_s)
        if not self.answer(kind, envelope.round, item):
            self.mailbox.put((kind, envelope.round), item)
        if kind == "update":
            self._world.triggers.reach(self.node, envelope.round, "aggregate")
        return ""

    def _open_letters(self, letters: Sequence[Letter]) -> None:
        """Checks and files messages that were taken in unread; since then nothing has changed for this node."""
        for (kind, round_number), group in _files(letters):
            if kind == "control":
                self._open_controls(group)
                continue
            held, world = self._passes[round_number], self._world
            items, refused = held.open_group(world.sealer, world.router, kind, group)
            for row, reason in refused:
                world.network.refuse(row, reason)
            world.network.deliver([item[2] for item in items])
            self.mailbox.put_all((kind, round_number), items)

    def _open_controls(self, letters: Sequence[Letter]) -> None:
        """Files control messages that were taken in unread."""
        refuses, network, files = self._refuses_control, self._world.network, dict[Hashable, list[Control]]()
        welcome = []
        for _, sender, row, wave in letters:
            control: Control = wave.contents[row - wave.row]
            reason = refuses(sender, control)
            if reason:
                network.refuse(row, reason)
            else:
                files.setdefault(control.key, []).append(control)
                welcome.append(row)
        network.deliver(welcome)
        for key, controls in files.items():
            self.mailbox.put_all(key, controls)

    def mark_used(self, received: Sequence[Received]) -> None:
        """Notes in the books that these messages served their purpose."""
        self._world.log.mark_used([item.row for item in received])

    def _answer_probes(self) -> None:
        """Says that it leads, once it knows: the question may overtake the assignment."""
        answered = [probe for probe in self._probes if self.epoch(probe.round_number) >= probe.epoch]
        self._probes = [probe for probe in self._probes if probe not in answered]
        for probe in answered:
            probe.acknowledge()

    def epoch(self, round_number: int) -> int:
        """How often a round had been arranged anew when its last assignment came; -1 if it has none."""
        held = self._passes.get(round_number)
        return -1 if held is None else held.assignment.epoch

    def _judge_early(self) -> None:
        """Looks again at what came too early; what is still too early is kept no longer than it was to be."""
        early, self._early = self._early, _NOTHING_EARLY
        for number, parcel in early.items():
            round_number = parcel.content.round
            if round_number in self._keys and round_number not in self._passes:
                self._early = {**self._early, number: parcel}
            else:
                self._world.clock.call_off(number)
                self._world.network.settle(parcel, self.receive(parcel))

    def _refuse_early(self, number: int) -> None:
        parcel = self._early[number]
        self._early = {other: kept for other, kept in self._early.items() if other != number}
        self._world.network.settle(parcel, "unknown_address")

    def _receive_control(self, parcel: Parcel) -> str:
        content = parcel.content
        if isinstance(content, Damaged):
            known = self._is_service(parcel.sender) or self._is_service(self.node)
            return "corrupt" if known else "not_neighbour"
        if self._controls is None:
            self._controls = set()
        name = parcel.sender << _SEQUENCE_BITS | parcel.sequence
        reason = self._refuses_control(parcel.sender, content) or ("replay" if name in self._controls else "")
        if not reason:
            self._controls.add(name)
            self._file(content)
        return reason

    def take_control(self, sender: int, control: Control) -> str:
        """Files a control message that came as it was sent, and for the first time; or returns why it is refused."""
        reason = self._refuses_control(sender, control)
        if not reason:
            self._file(control)
        return reason

    def _refuses_control(self, sender: int, control: Control) -> str:
        """Only the proxy speaks to nodes, and nodes speak to it once they are known."""
        if not self._is_service(self.node):
            return "" if self._is_service(sender) else "not_neighbour"
        return "" if isinstance(control, Register) or self._world.router.knows(sender) else "unknown_address"

    def _is_service(self, node: int) -> bool:
        return node in (self._world.proxy, self._world.standby)

    def _file(self, control: Control) -> None:
        """Puts a control message where it is read; what concerns the round under way wakes whoever waits in it."""
        if isinstance(control, Probe):
            self._probes = [*self._probes, control]
            self._answer_probes()
        elif isinstance(control, (Assignment, Close)) and control.round_number == self.active_round:
            self._take_new_order(control)
        else:
            self.mailbox.put(control.key, control)
            if isinstance(control, Complaint):
                self.mailbox.wake(("done", control.round_number))

    def _take_new_order(self, order: Assignment | Close) -> None:
        round_number = order.round_number
        if isinstance(order, Assignment) and self.epoch(round_number) >= order.epoch:
            return  # handed out twice, by a standby that could not know
        self.mailbox.put(("reorder", round_number), order)
        self.mailbox.wake(*((kind, round_number) for kind in KINDS))


def _answers_nothing(kind: str, round_number: int, item: Received) -> bool:
    return False


def _files(letters: Sequence[Letter]) -> list[tuple[tuple[str, int], Sequence[Letter]]]:
    """Letters of one kind and round that came one after the other, together."""
    files = [(letter[3].kind, letter[3].round_number) for letter in letters]
    if files.count(files[0]) == len(files):
        return [(files[0], letters)]
    pairs = groupby(zip(files, letters, strict=True), key=lambda pair: pair[0])
    return [(file, [letter for _, letter in group]) for file, group in pairs]
