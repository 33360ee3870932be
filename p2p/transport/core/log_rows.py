"""Rows of the message log: copies of messages in the form of the table's columns (compiled)."""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import free_slot
from p2p.transport.core.layout import Handle


@kernel
def copy_row(h: Handle, place: int, slot: int) -> None:
    """Copies what the log says of a message to the buffer of rows."""
    message, copy = at.slot(h, slot), at.logged(h, place)
    copy.row, copy.previous, copy.round, copy.kind = message.row, message.previous, message.round_number, message.kind
    copy.sender, copy.receiver, copy.attempt = message.sender, message.receiver, message.attempt
    copy.origin, copy.destination = message.origin, message.destination
    copy.size_bytes, copy.overhead_bytes, copy.left_bytes = message.size_bytes, message.overhead, message.left_bytes
    copy.sent_s, copy.left_s, copy.arrived_s = message.sent_s, message.left_s, message.arrived_s
    copy.outcome, copy.reason, copy.bottleneck = message.outcome, message.reason, message.bottleneck
    copy.corrupted = message.flag_bits & at.CORRUPTED
    # Control messages are used on arrival; the others are marked by the node that uses them.
    copy.used = 1 if message.kind == 0 else 0


@kernel
def copy_ended(h: Handle, first: int, most: int) -> int:
    """Copies ended messages, from the `first` on, and frees their slots; returns how many."""
    state = at.state(h)
    count = min(most, state.ended - first)
    for place in range(count):
        slot = at.ended_slot(h, first + place).value
        copy_row(h, place, slot)
        free_slot(h, slot)
    if first + count == state.ended:
        state.ended = 0
    return count


@kernel
def copy_under_way(h: Handle, first: int, most: int) -> int:
    """Copies messages that have a row and have not ended, from slot `first` on; `next_slot` says where to go on.

    The end of a message that moves is computed but may still change, so its row shows only the hand-over.
    """
    state = at.state(h)
    count, slot = 0, first
    while slot < state.used_slots and count < most:
        kind = at.slot(h, slot).state
        if kind != at.FREE and kind != at.WAITING:
            copy_row(h, count, slot)
            if kind < at.INBOX:
                at.logged(h, count).left_s, at.logged(h, count).bottleneck = np.nan, 0
            count += 1
        slot += 1
    state.next_slot = slot
    return count
