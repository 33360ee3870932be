"""What a node holds for one round, and how it checks what comes under the round's address."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nodes.controls import Assignment
from p2p.parcels import Letter
from privacy.envelopes import Bundle, Envelope, Rejected
from privacy.keys import KeyPair
from privacy.pseudonyms import Pseudonyms
from privacy.sealing import Sealer


class Received(NamedTuple):
    """A payload that was checked and opened: whose address sealed it, what it holds, its row in the books, and when."""

    sender: bytes
    value: Any
    row: int
    arrived_s: float = np.nan


class Refused(NamedTuple):
    """A message that is refused."""

    row: int
    reason: str


@dataclass(slots=True)
class Pass:
    """A node's admission to a round, until the round's last message has ended.

    Attributes:
        senders: whose messages of each kind are expected: their addresses and keys
        heard: by kind and sender, number and arrangement (epoch) of each message that was accepted
    """

    assignment: Assignment
    keys: KeyPair
    senders: dict[str, dict[bytes, bytes]]
    sequence: int = 0
    heard: dict[str, dict[bytes, tuple[tuple[int, int], ...]]] = field(default_factory=dict)

    def renew(self, assignment: Assignment, senders: dict[str, dict[bytes, bytes]]) -> None:
        """The round was arranged anew: more peers may send, and those who had may again."""
        self.assignment = assignment
        self.senders |= {kind: self.senders.get(kind, {}) | peers for kind, peers in senders.items()}

    def note(self, sender: bytes, kind: str, sequence: int) -> None:
        """Remembers an accepted message by its number, and that its sender has had its say in this arrangement."""
        heard = self.heard.setdefault(kind, {})
        heard[sender] = (*heard.get(sender, ()), (sequence, self.assignment.epoch))

    def open(self, sealer: Sealer, router: Pseudonyms, envelope: Envelope, kind: str) -> Any:
        """A message's value; raises `Rejected` if it is not welcome."""
        public_key = self._check(router, kind, envelope.sender, envelope.receiver, envelope.sequence)
        value = sealer.open(envelope, self.keys, public_key)
        self.note(envelope.sender, kind, envelope.sequence)
        return value

    def open_group(
        self, sealer: Sealer, router: Pseudonyms, kind: str, letters: Iterable[Letter]
    ) -> tuple[list[Received], list[Refused]]:
        """Messages of one kind that lay unread: what is welcome, and what is not."""
        open_in, welcome, refused = sealer.open_in, list[Received](), list[Refused]()
        senders, heard = self.senders.get(kind, {}), self.heard.setdefault(kind, {})
        keys, address, epoch = self.keys, self.assignment.address, self.assignment.epoch
        for arrived_s, _, row, wave in letters:
            bundle: Bundle = wave.contents
            sender, index = bundle.sender, row - wave.row
            public_key, receiver = senders.get(sender), bundle.receivers[index][0]
            before = heard.get(sender, ())
            try:
                # Most are as they should be; what is not is looked at closely.
                if public_key is None or before or receiver != address:
                    public_key = self._check(router, kind, sender, receiver, bundle.sequence)
                value = open_in(bundle, index, keys, public_key)
            except Rejected as refusal:
                refused.append(Refused(row, refusal.reason))
                continue
            heard[sender] = (*before, (bundle.sequence, epoch))
            welcome.append(Received(sender, value, row, arrived_s))
        return welcome, refused

    def _check(self, router: Pseudonyms, kind: str, sender: bytes, receiver: bytes, sequence: int) -> bytes:
        """The key that a message's sender should have; raises `Rejected` if nobody need try to open it."""
        if receiver != self.assignment.address:
            raise Rejected("unknown_address")
        public_key = self.senders.get(kind, {}).get(sender)
        if public_key is None:
            raise Rejected("unknown_address" if router.node_of(sender) is None else "not_neighbour")
        # Nobody sends a message twice, nor has two votes in one arrangement.
        heard, epoch = self.heard.get(kind, {}).get(sender, ()), self.assignment.epoch
        if any(number == sequence or when == epoch for number, when in heard):
            raise Rejected("replay")
        return public_key
