"""Where messages are handed to their receivers: at once, or unread into a box, and past whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from p2p.parcels import Box, Parcel, Wave

Receive = Callable[[Parcel], str | None]
"""Takes an arrived parcel; returns the reason for which it is refused, "" if it is welcome, or None if that is not
known yet: the receiver then calls `settle` later."""


TakeControl = Callable[[int, Any], str]
"""Takes a control message that came as it was sent, and once: its sender and its content; returns as `Receive` does."""

_NO_BOXES: dict[int, Box] = {}


class Doors:
    """Who receives what, node by node and round by round.

    Attributes:
        listeners: eavesdroppers on the wire, who are shown every parcel once all of it has passed
        controls: what takes in control messages of waves, node by node
    """

    def __init__(self) -> None:
        self.listeners: list[Callable[[Parcel], None]] = []
        self.controls: dict[int, TakeControl] = {}
        self._receivers: dict[int, Receive] = {}
        self._boxes: dict[int, dict[int, Box]] = {}
        self._desks: dict[int, Box] = {}

    def attach(self, node: int, receive: Receive, take_control: TakeControl | None = None) -> None:
        """From now on parcels for `node` are handed to `receive`."""
        self._receivers[node] = receive
        self.controls.pop(node, None)
        if take_control is not None:
            self.controls[node] = take_control

    def open_box(self, node: int, round_number: int, box: Box) -> None:
        """From now on a round's messages for `node` that may lie unread are dropped into its box."""
        self._boxes.setdefault(round_number, {})[node] = box

    def close_box(self, node: int, round_number: int) -> None:
        """No longer."""
        boxes = self._boxes.get(round_number, {})
        boxes.pop(node, None)
        if not boxes:
            self._boxes.pop(round_number, None)

    def open_desk(self, node: int, box: Box) -> None:
        """From now on control messages for `node` that may lie unread are dropped into its box."""
        self._desks[node] = box

    def boxes_for(self, wave: Wave) -> Mapping[int, Box]:
        """The boxes into which a wave's messages may be dropped, by receiver."""
        if not wave.unread or self.listeners:
            return _NO_BOXES
        return self._desks if wave.kind == "control" else self._boxes.get(wave.round_number, _NO_BOXES)

    def box_for(self, carrier: Parcel | Wave, node: int) -> Box | None:
        """The box into which a message may be dropped, if there is one and nobody listens."""
        return self.boxes_for(carrier).get(node) if isinstance(carrier, Wave) else None

    def hand_in(self, parcel: Parcel, node: int) -> str | None:
        """What a receiver says to a parcel."""
        receive = self._receivers.get(node)
        return "unknown_address" if receive is None else receive(parcel)
