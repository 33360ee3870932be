"""Whom each member of a plan sends to and hears from: arrays that all members share, and views of each one's part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from nodes.messaging.control_messages import Peer
from topologies.edge_arrays import stable_order

Nodes = NDArray[np.int64]
_Default = TypeVar("_Default")


class PlannedMessages(NamedTuple):
    """The messages of one kind in one plan, one for each edge, numbered sender after sender.

    Attributes:
        peers: the plan's nodes, as others know them
        receivers: the node that each message is for, by the message's number
    """

    peers: Mapping[int, Peer]
    receivers: memoryview


class OneWay(NamedTuple):
    """The messages of one kind as seen from one end of each: the peers of member after member.

    Attributes:
        others: the nodes at the other end, together for each member
        firsts, lasts: where those of each member begin and end
    """

    messages: PlannedMessages
    others: memoryview
    firsts: memoryview
    lasts: memoryview


def both_ways(peers: Mapping[int, Peer], edges: Nodes) -> tuple[OneWay, OneWay]:
    """Returns the messages along edges (sender, receiver), seen from their senders and from their receivers."""
    members = np.fromiter(peers, dtype=np.int64, count=len(peers))
    # Stable: peers keep the order of the plan's edges, which fixes the order of sending and so the message rows.
    sent, heard = (edges[stable_order(edges[:, end])] for end in (0, 1))
    messages = PlannedMessages(peers, _compact(sent[:, 1]))
    return (
        OneWay(messages, messages.receivers, *_parts(sent[:, 0], members)),
        OneWay(messages, _compact(heard[:, 0]), *_parts(heard[:, 1], members)),
    )


def _parts(nodes: Nodes, members: Nodes) -> tuple[memoryview, memoryview]:
    """Returns where the part of each member begins and ends in sorted nodes."""
    return _compact(np.searchsorted(nodes, members)), _compact(np.searchsorted(nodes, members, side="right"))


def _compact(numbers: Nodes) -> memoryview:
    compact: Any = numbers.astype(np.int32)  # nodes and edges fit in 31 bits
    # A memoryview: reading one element takes a third of the time of a numpy array.
    return memoryview(compact)


class Peers(Sequence[Peer]):
    """One member's peers for one kind of message, in the order of the plan.

    Members know addresses and keys only; the nodes are for the router and for checks in bulk.

    Attributes:
        messages: the messages of this kind in the plan
        first: where the part begins; the number of its first message, if these are the peers that it sends to
    """

    __slots__ = ("_last", "_others", "first", "messages")

    def __init__(self, messages: PlannedMessages, others: memoryview, first: int, last: int) -> None:
        self.messages, self._others, self.first, self._last = messages, others, first, last

    def nodes(self) -> list[int]:
        """Returns the node behind each peer."""
        found: list[int] = self._others[self.first : self._last].tolist()
        return found

    def __len__(self) -> int:
        return self._last - self.first

    @overload
    def __getitem__(self, index: int) -> Peer: ...

    @overload
    def __getitem__(self, index: slice) -> list[Peer]: ...

    def __getitem__(self, index: int | slice) -> Peer | list[Peer]:
        if isinstance(index, slice):
            return list(self)[index]
        # Not by a list of all: the server's peers are all clients.
        return self.messages.peers[self._others[range(self.first, self._last)[index]]]

    def __iter__(self) -> Iterator[Peer]:
        peers = self.messages.peers
        return iter([peers[node] for node in self.nodes()])


class Routes(Mapping[str, Peers]):
    """One member's peers by kind of message, in one direction.

    Args:
        kinds: the messages of each kind, shared by all members
        place: the member's place among them
    """

    __slots__ = ("_kinds", "_place")

    def __init__(self, kinds: Mapping[str, OneWay], place: int) -> None:
        self._kinds, self._place = kinds, place

    def messages(self, kind: str) -> PlannedMessages | None:
        """Returns the plan's messages of a kind, or None."""
        found = self._kinds.get(kind)
        return None if found is None else found.messages

    @overload
    def get(self, kind: str, /) -> Peers | None: ...

    @overload
    def get(self, kind: str, default: Peers | _Default, /) -> Peers | _Default: ...

    def get(self, kind: str, default: Any = None, /) -> Any:
        """Returns the peers of a kind, or the default if there are none."""
        found = self._kinds.get(kind)
        if found is None:
            return default
        messages, others, firsts, lasts = found
        first, last = firsts[self._place], lasts[self._place]
        # A view is made when it is asked for: a dictionary of views for every member would take five times the memory.
        return Peers(messages, others, first, last) if first < last else default

    def __getitem__(self, kind: str) -> Peers:
        found = self.get(kind)
        if found is None:
            raise KeyError(kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return (kind for kind in self._kinds if self.get(kind) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
