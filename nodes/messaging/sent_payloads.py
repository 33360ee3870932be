"""What nodes have put into messages, by reference, until observers have looked at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from p2p.log.records import NO_NODE


class Sent(NamedTuple):
    """One payload as its sender sealed it; `destination` is NO_NODE if it goes to all peers of its kind."""

    number: int
    round_number: int
    kind: int
    origin: int
    destination: int
    at_s: float
    address: bytes
    value: Any


@dataclass(slots=True)
class SentPayloads:
    """The payloads of rounds whose messages may still arrive; filled by endpoints, read by observers."""

    _by_sender: dict[tuple[int, int, int], list[Sent]] = field(default_factory=dict)
    _new: list[Sent] = field(default_factory=list)
    _ended: set[int] = field(default_factory=set)
    _count: int = 0

    def add(
        self, round_number: int, kind: int, origin: int, destination: int, at_s: float, address: bytes, value: Any
    ) -> None:
        """Records a payload that a node hands over."""
        sent = Sent(self._count, round_number, kind, origin, destination, at_s, address, value)
        self._count += 1
        self._by_sender.setdefault((round_number, kind, origin), []).append(sent)
        self._new.append(sent)

    def find(self, round_number: int, kind: int, origin: int, destination: int, sent_s: float) -> Sent | None:
        """Returns the payload of a message: the last that its origin had sealed when the message was handed over."""
        for sent in reversed(self._by_sender.get((round_number, kind, origin), ())):
            # A later attempt repeats the bytes; a crash ends the attempts of what was sealed before it.
            if sent.at_s <= sent_s and sent.destination in (NO_NODE, destination):
                found: Sent = sent
                return found
        return None

    def take_new(self) -> list[Sent]:
        """Returns the payloads since the last call."""
        new, self._new = self._new, []
        return new

    def end_round(self, round_number: int) -> None:
        """Marks a round of which no message is under way; `drop_ended` forgets its payloads."""
        self._ended.add(round_number)

    def drop_ended(self) -> None:
        """Forgets the rounds that had ended before observers looked last."""
        for key in [key for key in self._by_sender if key[0] in self._ended]:
            del self._by_sender[key]
        self._ended.clear()
