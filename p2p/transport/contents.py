"""The contents of messages: kept by batch while a message of the batch may still be read, altered where damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from p2p.random_streams import stream
from p2p.transport.core import layout as at
from p2p.transport.messages import Contents, Delivery

Alter = Callable[[object, np.random.Generator], object]
Make = Callable[[Delivery], Any]
"""Makes a message's content from the message itself."""
Damages = Callable[[int], Sequence[tuple[int, int, bool]]]
"""Returns (sender, attempt, whether first hop) of each hop that corrupted the message of a row."""
_DAMAGED = at.CORRUPTED | at.CARRIED
_NONE: Mapping[int, Contents] = MappingProxyType({})


class BatchContents:
    """Contents by round and batch; the network carries the numbers of batches."""

    def __init__(self, seed: int, alter: Alter, damages: Damages) -> None:
        self._seed, self._alter, self._damages = seed, alter, damages
        self._by_round: dict[int, dict[int, Contents]] = {}
        self._makers: dict[int, Make] = {}  # by topic
        self._batches = 0

    @property
    def next_number(self) -> int:
        """The number that the next batch will have."""
        return self._batches + 1

    def add(self, round_number: int, contents: Contents) -> int:
        """Keeps the contents of a batch and returns its number."""
        self._batches += 1
        of_round = self._by_round.get(round_number)
        if of_round is None:
            of_round = self._by_round[round_number] = {}
        of_round[self._batches] = contents
        return self._batches

    def make_with(self, topic: int, make: Make) -> None:
        """Sets what makes the contents of messages of a topic that were sent without one: answers to calls, notes."""
        # Not dropped with a round: a node that is busy answers when it is free, even if the round has drained by then.
        self._makers[topic] = make

    def drop(self, round_number: int) -> None:
        """Drops the contents of a round of which no message is in flight."""
        self._by_round.pop(round_number, None)

    def of_round(self, round_number: int) -> Mapping[int, Contents]:
        """Returns the contents of a round's messages, by batch."""
        return self._by_round.get(round_number, _NONE)

    def as_arrived(self, delivery: Delivery) -> Any:
        """Returns a message's content as it arrived; corrupted messages have other bytes."""
        content = self._content(delivery)
        if not delivery.flags & _DAMAGED:
            return content
        kind = delivery.topic if delivery.topic < at.FIRST_TOPIC else 0
        # Each corrupting hop alters the content once, from a stream named after that hop: replays give equal bytes.
        for sender, attempt, first in self._damages(delivery.row):
            # Made contents have no place among others: each is the only one of its sender.
            place = delivery.place if first and attempt == 1 and delivery.batch > at.MADE else 0
            name = (kind, delivery.round_number, sender, abs(delivery.sequence), attempt, place)
            content = self._alter(content, stream(self._seed, "damage", *name))
        return content

    def take(self, deliveries: Iterable[Delivery], *, keep: bool) -> list[Any]:
        """Returns the contents of messages that arrived once and unaltered.

        Those of batches of one are dropped unless `keep`: a delivered message is not sent again.
        """
        makers, found = self._makers, []
        for delivery in deliveries:
            batch = delivery[1]  # by place, which is faster than by name
            if batch <= at.MADE:
                found.append(makers[delivery[6]](delivery))
                continue
            of_round = self._by_round[delivery[5]]
            of_batch = of_round[batch]
            found.append(of_batch[delivery[2]])
            if not keep and len(of_batch) == 1:
                del of_round[batch]
        return found

    def _content(self, delivery: Delivery) -> Any:
        if delivery.batch <= at.MADE:
            return self._makers[delivery.topic](delivery)
        return self._by_round[delivery.round_number][delivery.batch][delivery.place]
