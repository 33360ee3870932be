"""A node's session of one round: its address and keys, and the checks of messages to that address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nodes.messaging.control_messages import Assignment, Peer
from p2p.transport.core.layout import CARRIED, CORRUPTED
from p2p.transport.messages import Contents, Delivery
from privacy.anonymity.pseudonyms import Pseudonyms
from privacy.sealing.envelopes import ENCIPHERED, Bundle, Envelope, Rejected
from privacy.sealing.keys import KeyPair
from privacy.sealing.sealers import Sealer


class Received(NamedTuple):
    """A checked and opened payload: its sender's address, its value, its row in the message log, its arrival time."""

    sender: bytes
    value: Any
    row: int
    arrived_s: float = np.nan


_DAMAGED = CORRUPTED | CARRIED


class RoundSession:
    """A node's admission to a round, until the round's last message has ended.

    Attributes:
        expected: the peers whose messages of each kind are expected, in each plan of the round so far
        sequence: the number of the last message that was sealed
        accepted: by kind and sender, the sequence number and epoch of each accepted message
    """

    __slots__ = ("_senders", "accepted", "assignment", "expected", "keys", "round_number", "sequence")

    def __init__(self, assignment: Assignment, keys: KeyPair) -> None:
        self.assignment, self.keys, self.round_number = assignment, keys, assignment.round_number
        self.expected: tuple[Mapping[str, Sequence[Peer]], ...] = (assignment.expect_from,)
        self.sequence = 0
        self.accepted: dict[str, dict[bytes, tuple[tuple[int, int], ...]]] = {}
        self._senders: dict[str, dict[bytes, bytes]] = {}

    def update(self, assignment: Assignment) -> None:
        """Adds the peers of a re-planned round; peers that have sent already may send again."""
        self.assignment = assignment
        self.expected += (assignment.expect_from,)
        self._senders.clear()

    def senders(self, kind: str) -> Mapping[bytes, bytes]:
        """Returns the addresses and keys of the peers whose messages of a kind are expected."""
        known = self._senders.get(kind)
        if known is None:
            # Peers of earlier plans stay welcome: their messages may be in flight when the round is re-planned.
            known = self._senders[kind] = dict(self.expected[0].get(kind, ()))
            for peers in self.expected[1:]:
                known.update(peers.get(kind, ()))
        return known

    def drop_derived(self) -> None:
        """Drops what was derived from the plans, to save memory; a late message derives it again."""
        self._senders = {}

    def record_accepted(self, sender: bytes, kind: str, sequence: int) -> None:
        """Records an accepted message by sequence number and epoch, for the replay check."""
        heard = self.accepted.setdefault(kind, {})
        heard[sender] = (*heard.get(sender, ()), (sequence, self.assignment.epoch))

    def open(self, sealer: Sealer, router: Pseudonyms, envelope: Envelope, kind: str) -> Any:
        """Returns a message's value; raises `Rejected` if a check fails."""
        public_key = self._check(router, kind, envelope.sender, envelope.receiver, envelope.sequence)
        # Accepted only after it opens: a forged copy must not block the genuine message as a replay.
        value = sealer.open(envelope, self.keys, public_key)
        self.record_accepted(envelope.sender, kind, envelope.sequence)
        return value

    def open_unaltered(
        self, kind: str, deliveries: Sequence[Delivery], contents: Sequence[Contents]
    ) -> list[Received] | None:
        """Opens messages of one kind together, if none is altered, repeated, misdirected or enciphered; else None."""
        senders, heard = self.senders(kind), self.accepted.get(kind)
        mine, epoch = (self.assignment.address, self.keys.public), self.assignment.epoch
        news: dict[bytes, tuple[tuple[int, int], ...]] = {}
        opened: list[Received] = []
        last, accepted = -1, ((-1, epoch),)
        new = tuple.__new__  # `Received(...)` takes twice as long
        for (row, _, place, _, _, _, _, flags, _, arrived_s), bundle in zip(deliveries, contents, strict=True):
            if not isinstance(bundle, Bundle) or flags & _DAMAGED or bundle.plain is ENCIPHERED:
                return None
            name = bundle.sender
            if senders.get(name) != bundle.public or bundle.receivers[place] != mine:
                return None
            if bundle.sequence != last:  # equal for most senders, whose records are then one object
                last, accepted = bundle.sequence, ((bundle.sequence, epoch),)
            news[name] = accepted
            opened.append(new(Received, (name, bundle.plain, row, arrived_s)))
        if len(news) < len(opened) or (heard is not None and not heard.keys().isdisjoint(news)):
            return None  # a sender's second message
        # Recorded for all or none: the checks have passed for the whole group.
        if heard is None:
            self.accepted[kind] = news
        else:
            heard.update(news)
        return opened

    def _check(self, router: Pseudonyms, kind: str, sender: bytes, receiver: bytes, sequence: int) -> bytes:
        """Returns the sender's expected key; raises `Rejected` if the header alone disqualifies the message."""
        if receiver != self.assignment.address:
            raise Rejected("unknown_address")
        public_key = self.senders(kind).get(sender)
        if public_key is None:
            raise Rejected("unknown_address" if router.node_of(sender) is None else "not_neighbour")
        # A sequence number is used once, and a sender contributes once per plan.
        heard, epoch = self.accepted.get(kind, {}).get(sender, ()), self.assignment.epoch
        if any(number == sequence or when == epoch for number, when in heard):
            raise Rejected("replay")
        return public_key
