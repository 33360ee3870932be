"""A node's session of one round: its address and keys, and the checks of messages to that address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nodes.messaging.control_messages import Assignment, Peer
from nodes.messaging.planned_messages import Routes
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
_Senders = Mapping[str, dict[bytes, bytes]]
_Accepted = Mapping[str, dict[bytes, tuple[tuple[int, int], ...]]]
# Shared empty defaults: there is a session for every member, and most need neither.
_NO_SENDERS: _Senders = MappingProxyType({})
_NONE_ACCEPTED: _Accepted = MappingProxyType({})


class RoundSession:
    """A node's admission to a round, until the round's last message has ended.

    Attributes:
        earlier: the peers whose messages of each kind were expected by the round's earlier plans
        has_planned_keys: whether its keys are those that the current plan's other members know
        sequence: the number of the last message that was sealed
    """

    __slots__ = (
        *("_accepted", "_groups", "_senders"),
        *("assignment", "earlier", "has_planned_keys", "keys", "round_number", "sequence"),
    )

    def __init__(self, assignment: Assignment, keys: KeyPair) -> None:
        self.assignment, self.keys, self.round_number = assignment, keys, assignment.round_number
        self.has_planned_keys = keys.public == assignment.public_key
        self.earlier: tuple[Mapping[str, Sequence[Peer]], ...] = ()
        self.sequence = 0
        # By kind and sender, the sequence number and epoch of each accepted message. Messages that were opened together
        # are added when it is read: kind, epoch and bundles of one group after another.
        self._accepted = _NONE_ACCEPTED
        self._groups: tuple[Any, ...] = ()
        self._senders = _NO_SENDERS

    def update(self, assignment: Assignment) -> None:
        """Adds the peers of a re-planned round; peers that have sent already may send again."""
        self.earlier += (self.assignment.expect_from,)
        self.assignment, self.has_planned_keys = assignment, self.keys.public == assignment.public_key
        self.drop_derived()

    def senders(self, kind: str) -> Mapping[bytes, bytes]:
        """Returns the addresses and keys of the peers whose messages of a kind are expected."""
        known = self._senders.get(kind)
        if known is None:
            known = {}
            # Peers of earlier plans stay welcome: their messages may be in flight when the round is re-planned.
            for expected in (*self.earlier, self.assignment.expect_from):
                known.update(expected.get(kind, ()))
            self._senders = {**self._senders, kind: known}
        return known

    def drop_derived(self) -> None:
        """Drops what was derived from the plans, to save memory; a late message derives it again."""
        self._senders = _NO_SENDERS

    def record_accepted(self, sender: bytes, kind: str, sequence: int) -> None:
        """Records an accepted message by sequence number and epoch, for the replay check."""
        self._record(sender, kind, sequence, self.assignment.epoch)

    def _record(self, sender: bytes, kind: str, sequence: int, epoch: int) -> None:
        if kind not in self._accepted:
            self._accepted = {**self._accepted, kind: {}}
        heard = self._accepted[kind]
        heard[sender] = (*heard.get(sender, ()), (sequence, epoch))

    def _heard(self, kind: str) -> Mapping[bytes, tuple[tuple[int, int], ...]]:
        """Returns the sequence numbers and epochs of the accepted messages of a kind, by sender."""
        groups, self._groups = self._groups, ()
        for kind_of_group, epoch, bundles in zip(groups[::3], groups[1::3], groups[2::3], strict=True):
            for bundle in bundles:
                self._record(bundle.sender, kind_of_group, bundle.sequence, epoch)
        return self._accepted.get(kind, {})

    def open(self, sealer: Sealer, router: Pseudonyms, envelope: Envelope, kind: str) -> Any:
        """Returns a message's value; raises `Rejected` if a check fails."""
        public_key = self._check(router, kind, envelope.sender, envelope.receiver, envelope.sequence)
        # Accepted only after it opens: a forged copy must not block the genuine message as a replay.
        value = sealer.open(envelope, self.keys, public_key)
        self.record_accepted(envelope.sender, kind, envelope.sequence)
        return value

    def open_unaltered(
        self, node: int, kind: str, deliveries: Sequence[Delivery], contents: Mapping[int, Contents]
    ) -> list[Received] | None:
        """Opens messages of one kind together, if all are as the current plan foresees them; else returns None.

        They are unaltered, not enciphered, from different senders that were not heard before, and each is one of the
        plan's messages for this node: sealed for it by a member with the keys of the plan (see `Endpoint.send`).
        """
        expected = self.assignment.expect_from
        planned = expected.messages(kind) if isinstance(expected, Routes) and self.has_planned_keys else None
        if planned is None:
            return None
        opened, bundles, receivers = [], [], planned.receivers
        new = tuple.__new__  # `Received(...)` takes twice as long
        for row, batch, place, _, _, _, _, flags, _, arrived_s in deliveries:
            bundle = contents[batch]
            if not isinstance(bundle, Bundle) or bundle.planned is not planned or flags & _DAMAGED:
                return None
            if receivers[bundle.first + place] != node or bundle.plain is ENCIPHERED:
                return None
            opened.append(new(Received, (bundle.sender, bundle.plain, row, arrived_s)))
            bundles.append(bundle)
        senders = {item[0] for item in opened}
        if len(senders) < len(opened):
            return None  # a sender's second message
        # Most members read all their messages of a kind at once, and have heard nothing before.
        if (self._groups or self._accepted) and not self._heard(kind).keys().isdisjoint(senders):
            return None
        # Recorded for all or none: the checks have passed for the whole group.
        self._groups += (kind, self.assignment.epoch, bundles)
        return opened

    def _check(self, router: Pseudonyms, kind: str, sender: bytes, receiver: bytes, sequence: int) -> bytes:
        """Returns the sender's expected key; raises `Rejected` if the header alone disqualifies the message."""
        if receiver != self.assignment.address:
            raise Rejected("unknown_address")
        public_key = self.senders(kind).get(sender)
        if public_key is None:
            raise Rejected("unknown_address" if router.node_of(sender) is None else "not_neighbour")
        # A sequence number is used once, and a sender contributes once per plan.
        heard, epoch = self._heard(kind).get(sender, ()), self.assignment.epoch
        if any(number == sequence or when == epoch for number, when in heard):
            raise Rejected("replay")
        return public_key
