"""What a node holds for one round, and how it checks what comes under the round's address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nodes.controls import Assignment, Peer
from p2p.parcels import Letter
from privacy.envelopes import ENCIPHERED, Bundle, Envelope, Rejected
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


@lru_cache(maxsize=1024)
def _heard_once(sequence: int, epoch: int) -> tuple[tuple[int, int], ...]:
    """What is noted of a sender's first message; the same for most senders."""
    return ((sequence, epoch),)


@dataclass(slots=True)
class Pass:
    """A node's admission to a round, until the round's last message has ended.

    Attributes:
        expected: whose messages of each kind are expected, in each arrangement of the round so far
        heard: by kind and sender, number and arrangement (epoch) of each message that was accepted
    """

    assignment: Assignment
    keys: KeyPair
    expected: tuple[Mapping[str, Sequence[Peer]], ...]
    sequence: int = 0
    heard: dict[str, dict[bytes, tuple[tuple[int, int], ...]]] = field(default_factory=dict)

    _senders: dict[str, dict[bytes, bytes]] = field(default_factory=dict)

    def renew(self, assignment: Assignment) -> None:
        """The round was arranged anew: more peers may send, and those who had may again."""
        self.assignment = assignment
        self.expected += (assignment.expect_from,)
        self._senders.clear()

    def senders(self, kind: str) -> Mapping[bytes, bytes]:
        """The addresses and keys of those whose messages of a kind are expected."""
        known = self._senders.get(kind)
        if known is None:
            known = self._senders[kind] = {}
            for peers in self.expected:
                known.update(peers.get(kind, ()))
        return known

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
        self, sealer: Sealer, router: Pseudonyms, kind: str, letters: Sequence[Letter]
    ) -> tuple[list[Received], list[Refused]]:
        """Messages of one kind that lay unread: what is welcome, and what is not."""
        found = self._open_as_usual(kind, letters)
        if found is not None:
            return found, []
        welcome, refused = list[Received](), list[Refused]()
        for arrived_s, _, row, wave in letters:
            bundle: Bundle = wave.contents
            try:
                value = self._open_in(sealer, router, kind, bundle, row - wave.row)
            except Rejected as refusal:
                refused.append(Refused(row, refusal.reason))
            else:
                welcome.append(Received(bundle.sender, value, row, arrived_s))
        return welcome, refused

    def _open_as_usual(self, kind: str, letters: Sequence[Letter]) -> list[Received] | None:
        """All at once, if each is as it should be and nothing has to be deciphered; None if they need a closer look."""
        bundles: list[Bundle] = [letter[3].contents for letter in letters]
        names = [bundle.sender for bundle in bundles]
        senders, heard = self.senders(kind), self.heard.setdefault(kind, {})
        if [senders.get(name) for name in names] != [bundle.public for bundle in bundles]:
            return None
        ends = [letter[3].contents.receivers[letter[2] - letter[3].row] for letter in letters]
        if ends.count((self.assignment.address, self.keys.public)) != len(ends):
            return None
        values = [bundle.plain for bundle in bundles]
        if len(set(names)) < len(names) or not heard.keys().isdisjoint(names) or ENCIPHERED in values:
            return None
        epoch, new = self.assignment.epoch, tuple.__new__  # `Received(...)` takes twice as long
        heard.update(zip(names, [_heard_once(bundle.sequence, epoch) for bundle in bundles], strict=True))
        return [
            new(Received, (name, value, letter[2], letter[0]))
            for name, value, letter in zip(names, values, letters, strict=True)
        ]

    def _open_in(self, sealer: Sealer, router: Pseudonyms, kind: str, bundle: Bundle, index: int) -> Any:
        """The value of one message of a bundle; raises `Rejected` if it is not welcome."""
        sender = bundle.sender
        public_key = self._check(router, kind, sender, bundle.receivers[index][0], bundle.sequence)
        value = sealer.open_in(bundle, index, self.keys, public_key)
        self.note(sender, kind, bundle.sequence)
        return value

    def _check(self, router: Pseudonyms, kind: str, sender: bytes, receiver: bytes, sequence: int) -> bytes:
        """The key that a message's sender should have; raises `Rejected` if nobody need try to open it."""
        if receiver != self.assignment.address:
            raise Rejected("unknown_address")
        public_key = self.senders(kind).get(sender)
        if public_key is None:
            raise Rejected("unknown_address" if router.node_of(sender) is None else "not_neighbour")
        # Nobody sends a message twice, nor has two votes in one arrangement.
        heard, epoch = self.heard.get(kind, {}).get(sender, ()), self.assignment.epoch
        if any(number == sequence or when == epoch for number, when in heard):
            raise Rejected("replay")
        return public_key
