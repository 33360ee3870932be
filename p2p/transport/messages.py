"""The network's input and output: batches of messages in, views of single messages out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from p2p.log.records import KIND
from p2p.transport.core import layout as at

TOPICS = {name: at.FIRST_TOPIC + code for code, name in enumerate(at.TOPIC_NAMES)}
"""The topics of control messages that processes wait for."""


class Contents(Protocol):
    """The contents of a batch, one for each receiver; opaque to the network."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(slots=True)
class Batch:
    """Messages of one sender and kind, handed over together, one for each receiver.

    Attributes:
        receivers: true identities; NO_NODE for an address of no node, whose message the router rejects
        size_bytes: of each message, or one for all
        overhead_bytes: the part of the size that is not payload
        give_up_s: no retransmission starts after this
        topic: the topic of control messages (a key of TOPICS)
        immediate: the receiver handles each message at its arrival instead of reading it from its inbox
        separate: messages are named in random draws as if each had been handed over alone
        call: the receivers' rules answer, see `Network.call`
        fetch_lives: for each receiver its life to which an order to fetch the first model applies, -1 with any other
            order; None if none of the messages is such an order, see `Network.hand_out`
    """

    sender: int
    receivers: Sequence[int]
    kind: str
    round_number: int
    size_bytes: int | NDArray[np.int64]
    overhead_bytes: int | NDArray[np.int64]
    contents: Contents
    give_up_s: float = np.inf
    topic: int = TOPICS["other"]
    immediate: bool = False
    separate: bool = False
    call: bool = False
    fetch_lives: Sequence[int] | None = None


class CallAnswer(NamedTuple):
    """A node's answer to a call by its rule, as the core sent it.

    Attributes:
        refuses: JOINS, or why not (codes of p2p/transport/core/layout.py)
        model_round: the round of the node's model when it answered; -1 without one
        life: how often the node had gone down by then
    """

    round_number: int
    node: int
    refuses: int
    model_round: int
    life: int


class Delivery(NamedTuple):
    """A message taken from an inbox: its row, the place of its content, its sender and its arrival time."""

    row: int
    batch: int
    place: int
    sequence: int
    sender: int
    round_number: int
    topic: int
    flags: int
    life: int
    arrived_s: float


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to a batch of calls: their sizes, and their contents, which are made when they are read.

    Attributes:
        content: makes the content of one answer
        size_bytes: of an answer that agrees
        overhead_bytes: the part of it that is not payload
        refusal_bytes: what the reason of a refusal adds
    """

    content: Callable[[CallAnswer], Any]
    size_bytes: int
    overhead_bytes: int
    refusal_bytes: int

    def of(self, delivery: Delivery) -> Any:
        """Returns the content of one answer."""
        refuses, model_round = delivery.place & ((1 << at.REFUSAL_BITS) - 1), (delivery.place >> at.REFUSAL_BITS) - 1
        return self.content(CallAnswer(delivery.round_number, delivery.sender, refuses, model_round, delivery.life))


class Note(NamedTuple):
    """The form of control messages whose whole content is a number; see `Network.tell`.

    Attributes:
        outlives_round: lost messages are sent again even after their round has closed
    """

    topic: int
    size_bytes: int
    overhead_bytes: int
    outlives_round: bool = False


@dataclass(frozen=True, slots=True)
class FetchTerms:
    """The terms on which nodes fetch the first model in a round.

    Attributes:
        sender: the node that sends the model
        proxy: the node that reports go to
        closes_s: when an order has no effect any more
        lasts_s: how long a node may take from the receipt of its order, if that is longer
        note, report: the form of the reports, and the number that they carry
        over: called with a node whose time is up before it has the model
        taken: called with nodes that have the model, together; None if each node has to open its own
    """

    sender: int
    proxy: int
    closes_s: float
    lasts_s: float
    note: Note
    report: int
    over: Callable[[int], None]
    taken: Callable[[FirstModels], None] | None = None


class FirstModels(NamedTuple):
    """First models that have arrived at nodes, in order of the nodes.

    Attributes:
        ordered_s: when each node received its order
        contents: of each model the contents of the batch that it belongs to
    """

    round_number: int
    nodes: NDArray[np.int64]
    ordered_s: NDArray[np.float64]
    arrived_s: NDArray[np.float64]
    rows: NDArray[np.int64]
    contents: Sequence[Any]


class Message(NamedTuple):
    """A view of one message in flight or just arrived."""

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


# Processes wait for few distinct keys, again and again.
@lru_cache(maxsize=1024)
def topic_code(key: Any) -> tuple[int, int]:
    """Returns the topic and round under which the core counts messages for an inbox key."""
    name, round_number = key if isinstance(key, tuple) else (key, at.ANY_ROUND)
    if name in KIND:
        return KIND[name], round_number
    # Keys without a topic of their own share "other": the wait then wakes too often, but never too late.
    return TOPICS.get(name, TOPICS["other"]), round_number
