"""A node's endpoint: its keys and sessions, and the messages that it seals and sends; see `Receiver` for arrivals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from nodes.messaging.control_batches import answers_to_invitations, same_control
from nodes.messaging.control_messages import (
    Answer,
    Assignment,
    Control,
    Invite,
    Peer,
)
from nodes.messaging.planned_messages import Peers
from nodes.messaging.receiver import Receiver
from nodes.messaging.round_session import RoundSession
from nodes.world import World
from p2p.log.records import KIND, KINDS, NO_NODE
from p2p.transport.messages import Batch, CallAnswer
from privacy.sealing.envelopes import Envelope, Payload
from privacy.sealing.keys import KeyPair


class Endpoint(Receiver):
    """Sends under this round's address, and receives what is sent to it.

    Attributes:
        life: the incarnation, counted by restarts; each incarnation has other keys
    """

    __slots__ = ("life",)

    def __init__(self, node: int, world: World) -> None:
        super().__init__(node, world)
        self.life = world.first_incarnation

    def joining_key(self, round_number: int, life: int) -> bytes:
        """Returns the public key with which this node joined a round, `life` crashes after the beginning."""
        if self.is_life(life):
            held = self.session(round_number)
            if held is not None:
                return held.keys.public
            if self._has_joined(round_number):
                return self._joining_keys(round_number).public
        # It has crashed since, or joined another round: its assignment will find other keys, or the same drawn again.
        return self._draw_keys(round_number, life + self._world.first_incarnation).public

    def is_life(self, life: int) -> bool:
        """Returns whether it has not crashed since its life was `life` crashes after the beginning."""
        return life + self._world.first_incarnation == self.life

    def _draw_keys(self, round_number: int, life: int) -> KeyPair:
        return self._world.sealer.draw_keys(self._world.seed, self.node, round_number, life)

    def join(self, round_number: int) -> None:
        """Keeps messages of a round until its assignment arrives, unless it answers an invitation to another one."""
        self.inbox.read()
        if not self.has_session(round_number):
            self._joined = round_number, None

    def _joining_keys(self, round_number: int) -> KeyPair:
        """Returns the keys of the round that it has joined, which are drawn when they are first needed."""
        number, keys = self._joined or (-1, None)
        if keys is None or number != round_number:
            keys = self._draw_keys(round_number, self.life)
            self._joined = round_number, keys
        return keys

    def lose_state(self) -> None:
        """Discards inbox, keys and addresses at a crash; messages kept for a later assignment are lost."""
        for message in self._early.values():
            self._world.network.lose(message, "receiver_down")
        for held in self._sessions:
            self._world.network.sessions.close(self.node, held.round_number)
        self.inbox.close()
        self.forget_all()
        # The next incarnation draws other keys: the old ones may have sealed messages with the same sequence numbers.
        self.life += 1

    def enter(self, assignment: Assignment, *, has_joined: bool = False) -> RoundSession | None:
        """Opens a session under a round's address; the peers named in the assignment may send from now on.

        Returns None without one: its keys are lost.

        Args:
            has_joined: it is known to have joined, in this life; it may have joined another round since.
        """
        # Earlier arrivals are judged by the sessions that were open when they arrived.
        self.inbox.read()
        round_number = assignment.round_number
        known = self.session(round_number)
        if known is None:
            # Without having joined: a repeated set-up of the round has ended since, and its keys with it. Drawn by
            # name, they are the same again.
            answered = self._world.network.answered_round(self.node) == round_number
            if not has_joined and not answered and not self._has_joined(round_number):
                return None
            keys = self._joining_keys(round_number)
            if assignment.public_key not in (None, keys.public):
                return None  # crashed between joining and its assignment: the keys that peers seal for are lost
            known = RoundSession(assignment, keys)
            self._sessions += (known,)
            self._world.network.sessions.open(self.node, round_number)
        else:
            known.update(assignment)
        self.note_round(round_number)
        if self._early:
            self._judge_early()
        if self._probes:
            self._answer_probes()
        return known

    def end_part(self, round_number: int) -> None:
        """Ends the part of the active round: orders for it queue up like any other from here on."""
        self.active_round = -1
        # Unread orders of the old plan are dropped.
        self.inbox.forget(("reorder", round_number), ("verdict", round_number))
        held = self.session(round_number)
        if held is not None:
            held.drop_derived()

    def leave(self, round_number: int) -> None:
        """Drops a drained round's address and keys, and late messages of a round that it is no longer in."""
        # Its inbox has been read: that was the last message of the round.
        self._sessions = tuple([held for held in self._sessions if held.round_number != round_number])
        if self._joined is not None and self._joined[0] == round_number:
            self._joined = None
        if self._world.network.answered_round(self.node) == round_number:
            self._left_s = self._world.clock.now
        if self.active_round != round_number and not self.inbox.is_empty:
            self.inbox.clear(round_number, KINDS)

    def send(self, round_number: int, kind: str, payload: Payload, give_up_s: float = np.inf) -> None:
        """Seals one payload for all peers the assignment names for this kind, and hands the messages over."""
        held = self.session(round_number)
        peers = held.assignment.send_to.get(kind, ()) if held is not None else ()
        if held is None or not peers:
            return
        held.sequence += 1
        world = self._world
        if not held.has_planned_keys:
            peers = tuple(peers)  # no part of the plan's messages: receivers then check each one by its keys
        bundle = world.sealer.seal_many(
            kind, round_number, held.sequence, held.keys, held.assignment.address, peers, payload
        )
        if isinstance(peers, Peers):
            bundle.planned, bundle.first = peers.messages, peers.first
        if world.sent_payloads is not None:
            self._show(held, kind, NO_NODE, payload)
        receivers = self._find_peers(round_number, peers)
        sizes = bundle.size_bytes, bundle.overhead_bytes
        batch = Batch(self.node, receivers, kind, round_number, *sizes, bundle, give_up_s, immediate=self._urgent(kind))
        world.network.send(batch)

    def send_each(
        self, round_number: int, kind: str, items: Sequence[tuple[Peer, Payload]], give_up_s: float = np.inf
    ) -> None:
        """Seals a separate payload for each peer; all payloads have the same size."""
        held = self.session(round_number)
        if held is None or not items:
            return
        seal, sender, envelopes = self._world.sealer.seal_one, held.assignment.address, []
        for peer, payload in items:
            held.sequence += 1
            if self._world.sent_payloads is not None:
                self._show(held, kind, self._find([peer.address])[0], payload)
            envelopes.append(seal(kind, round_number, held.sequence, held.keys, sender, peer, payload))
        self.send_envelopes(envelopes, kind, round_number, give_up_s)

    def _show(self, held: RoundSession, kind: str, destination: int, payload: Payload) -> None:
        """Shows observers what is sent, by reference."""
        sent = self._world.sent_payloads
        if sent is not None:
            number, address = held.assignment.round_number, held.assignment.address
            sent.add(number, KIND[kind], self.node, destination, float(self._world.clock.now), address, payload.value)

    def agree(self, round_number: int, peer: Peer, purpose: bytes) -> bytes:
        """Derives a shared secret with a peer from this round's one-time keys; sends nothing."""
        held = self.session(round_number)
        if held is None:
            raise RuntimeError(f"node {self.node} has no keys of round {round_number}")
        return self._world.sealer.agree(round_number, held.keys, peer.public_key, purpose)

    def send_envelopes(
        self, envelopes: Sequence[Envelope], kind: str, round_number: int, give_up_s: float = np.inf
    ) -> None:
        """Hands over sealed messages."""
        receivers = self._find([envelope.receiver for envelope in envelopes])
        first = envelopes[0]
        sizes = first.size_bytes, first.overhead_bytes
        urgent = self._urgent(kind)
        batch = Batch(self.node, receivers, kind, round_number, *sizes, envelopes, give_up_s, immediate=urgent)
        self._world.network.send(batch)

    def _urgent(self, kind: str) -> bool:
        """Returns whether receivers handle each message on arrival: corrections, or any if phases have listeners."""
        return kind == "correction" or bool(self._world.phase_hooks.listeners)

    def _find_peers(self, round_number: int, peers: Sequence[Peer]) -> list[int]:
        """Returns the node behind each peer of a round."""
        # The plan has looked them up while the round's addresses are in use.
        if isinstance(peers, Peers) and self._world.router.is_open(round_number):
            return peers.nodes()
        return self._find([address for address, _ in peers])

    def _find(self, addresses: Sequence[bytes]) -> list[int]:
        """Returns the node behind each address, NO_NODE for an unknown one."""
        return [NO_NODE if node is None else node for node in self._world.router.nodes_of(addresses)]

    def send_control(
        self, nodes: Sequence[int], round_number: int, control: Control, give_up_s: float = np.inf
    ) -> None:
        """Sends one control message to each node; one end is always the proxy."""
        if nodes:
            batch = same_control(self.node, nodes, round_number, control, give_up_s, self._world.sealed)
            self._world.network.send(batch)

    def invite(
        self, nodes: Sequence[int], invite: Invite, give_up_s: float, answer: Callable[[CallAnswer], Answer]
    ) -> None:
        """Sends an invitation to each node, whose rule answers it as soon as its process waits for orders."""
        if nodes:
            hooks, sealed = self._world.phase_hooks, self._world.sealed
            batch = same_control(self.node, nodes, invite.round_number, invite, give_up_s, sealed)
            before = partial(hooks.notify, phase="invite") if hooks.listeners else None
            self._world.network.call(batch, answers_to_invitations(answer, sealed), before)
