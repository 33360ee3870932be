"""Where messages are handed to their receivers: at once, or unread into a box, and past whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from p2p.parcels import Letter, Parcel, Wave

Receive = Callable[[Parcel], str | None]
"""Takes an arrived parcel; returns the reason for which it is refused, "" if it is welcome, or None if that is not
known yet: the receiver then calls `settle` later."""


class Box(Protocol):
    """Where messages lie unread. Whoever opens them tells the network with `deliver` or `refuse` what they were."""

    def drop(self, letter: Letter) -> bool:
        """Takes a message in; whether it is now the only one there."""

    def read(self) -> None:
        """Opens what is there; called before anybody looks at the books."""


_NO_BOXES: dict[int, Box] = {}


class Doors:
    """Who receives what, node by node and round by round.

    Attributes:
        listeners: eavesdroppers on the wire, who are shown every parcel once all of it has passed.
    """

    def __init__(self) -> None:
        self.listeners: list[Callable[[Parcel], None]] = []
        self._receivers: dict[int, Receive] = {}
        self._boxes: dict[int, dict[int, Box]] = {}

    def attach(self, node: int, receive: Receive) -> None:
        """From now on parcels for `node` are handed to `receive`."""
        self._receivers[node] = receive

    def open_box(self, node: int, round_number: int, box: Box) -> None:
        """From now on a round's messages for `node` that may lie unread are dropped into its box."""
        self._boxes.setdefault(round_number, {})[node] = box

    def close_box(self, node: int, round_number: int) -> None:
        """No longer."""
        boxes = self._boxes.get(round_number, {})
        boxes.pop(node, None)
        if not boxes:
            self._boxes.pop(round_number, None)

    def box_for(self, carrier: Parcel | Wave, node: int) -> Box | None:
        """The box into which a message may be dropped, if there is one and nobody listens."""
        if not carrier.unread or self.listeners:
            return None
        return self._boxes.get(carrier.round_number, _NO_BOXES).get(node)

    def hand_in(self, parcel: Parcel, node: int) -> str | None:
        """What a receiver says to a parcel."""
        receive = self._receivers.get(node)
        return "unknown_address" if receive is None else receive(parcel)
