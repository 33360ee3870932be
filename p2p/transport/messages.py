"""What is handed to the network and what comes out: a batch of messages in, a view of one row out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from p2p.log.records import KIND
from p2p.transport.core import layout as at

TOPICS = {name: at.FIRST_TOPIC + code for code, name in enumerate(("other", "register", "orders", "answer", "done"))}
"""What control messages are about, as far as a process waits for it."""


class Contents(Protocol):
    """The contents of a batch, one for each receiver; the network does not look into them."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(slots=True)
class Batch:
    """Messages of one sender and kind, handed over together, one for each receiver.

    Attributes:
        receivers: true identities; NOBODY for an address that belongs to no node, whose message the router refuses
        size_bytes: of each message, or one for all
        overhead_bytes: the part of the size that is not payload
        give_up_s: no lost message is sent again after this
        topic: for control messages, what they are about (a key of TOPICS)
        immediate: the receiver handles each message at its arrival instead of reading it from its inbox
        separate: random draws name the messages as if each had been handed over by itself
        outlives_round: lost ones are sent again even after their round has closed
    """

    sender: int
    receivers: Sequence[int]
    kind: str
    round_number: int
    size_bytes: int | NDArray[np.int64]
    overhead_bytes: int | NDArray[np.int64]
    contents: Contents
    give_up_s: float = np.inf
    topic: str = "other"
    immediate: bool = False
    separate: bool = False
    outlives_round: bool = False


class Delivery(NamedTuple):
    """A message taken out of an inbox: its row, where its content is, who sent it, and when it arrived."""

    row: int
    batch: int
    place: int
    sequence: int
    sender: int
    round_number: int
    topic: int
    flags: int
    arrived_s: float


class Message(NamedTuple):
    """A view of one message under way or just arrived."""

    slot: int
    row: int
    kind: str
    round_number: int
    sender: int
    receiver: int
    sequence: int
    flags: int
    content: Any
    arrived_s: float


@lru_cache(maxsize=1024)
def topic_code(key: Any) -> tuple[int, int]:
    """The topic and round under which the core counts messages for a key of an inbox."""
    name, round_number = key if isinstance(key, tuple) else (key, at.ANY_ROUND)
    if name in KIND:
        return KIND[name], round_number
    return TOPICS.get(name, TOPICS["other"]), round_number
