"""The event queue, a four-ary heap, and the intrusive lists of messages on links (compiled)."""

from __future__ import annotations

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.layout import Handle

# Four children per node halve the depth of a binary heap, and siblings share cache lines.
_ARITY = 4


@kernel
def push(h: Handle, time_s: float, rank: int, node: int, row: int, what: int, kind: int) -> None:
    """Adds an event; one with a past time happens now, since time never decreases."""
    state = at.state(h)
    now_s = at.state(h).now_s
    if time_s < now_s:
        time_s = now_s
    key = (rank << at.RANK_SHIFT) + node
    place = state.events
    state.events = place + 1
    while place > 0:
        parent = (place - 1) // _ARITY
        above = at.event(h, parent)
        if above.time_s < time_s or (
            above.time_s == time_s and (above.key < key or (above.key == key and above.row <= row))
        ):
            break
        # Ties go by key (rank and node), then row: the order never depends on the history of the heap.
        at.copy_event(h, place, parent)
        place = parent
    event = at.event(h, place)
    event.time_s, event.key, event.row, event.what, event.type = time_s, key, row, what, kind


@kernel
def pop(h: Handle) -> None:
    """Removes the first event."""
    state = at.state(h)
    count = state.events - 1
    state.events = count
    if count == 0:
        return
    # The last entry fills the gap at the top and sinks to its place.
    last = at.event(h, count)
    place = 0
    while True:
        first = place * _ARITY + 1
        if first >= count:
            break
        best = first
        for child in range(first + 1, min(first + _ARITY, count)):
            one, other = at.event(h, child), at.event(h, best)
            if one.time_s < other.time_s or (
                one.time_s == other.time_s and (one.key < other.key or (one.key == other.key and one.row < other.row))
            ):
                best = child
        below = at.event(h, best)
        if last.time_s < below.time_s or (
            last.time_s == below.time_s and (last.key < below.key or (last.key == below.key and last.row <= below.row))
        ):
            break
        at.copy_event(h, place, best)
        place = best
    at.copy_event(h, place, count)


@kernel
def new_slot(h: Handle) -> int:
    """Returns a free slot; `advance` and `send` ensure beforehand that there are enough."""
    state = at.state(h)
    slot = state.free_slot
    if slot >= 0:
        state.free_slot = at.slot(h, slot).up_next
        state.free_slots -= 1
    else:
        slot = state.used_slots
        state.used_slots = slot + 1
    return slot


@kernel
def free_slot(h: Handle, slot: int) -> None:
    """Frees a slot for another message."""
    state, message = at.state(h), at.slot(h, slot)
    message.state, message.row = at.FREE, -1
    message.up_next = state.free_slot
    state.free_slot = slot
    state.free_slots += 1


@kernel
def enlist_up(h: Handle, slot: int) -> None:
    """Appends a message to the list of its sender's uplink."""
    message = at.slot(h, slot)
    link = at.link(h, 2 * message.sender)
    message.up_next, message.up_prev = -1, link.tail
    if link.tail >= 0:
        at.slot(h, link.tail).up_next = slot
    else:
        link.head = slot
    link.tail = slot


@kernel
def delist_up(h: Handle, slot: int) -> None:
    """Removes a message from the list of its sender's uplink."""
    message = at.slot(h, slot)
    link = at.link(h, 2 * message.sender)
    if message.up_prev >= 0:
        at.slot(h, message.up_prev).up_next = message.up_next
    else:
        link.head = message.up_next
    if message.up_next >= 0:
        at.slot(h, message.up_next).up_prev = message.up_prev
    else:
        link.tail = message.up_prev


@kernel
def enlist_down(h: Handle, slot: int) -> None:
    """Appends a message to the list of its receiver's downlink."""
    message = at.slot(h, slot)
    link = at.link(h, 2 * message.receiver + 1)
    message.down_next, message.down_prev = -1, link.tail
    if link.tail >= 0:
        at.slot(h, link.tail).down_next = slot
    else:
        link.head = slot
    link.tail = slot


@kernel
def delist_down(h: Handle, slot: int) -> None:
    """Removes a message from the list of its receiver's downlink."""
    message = at.slot(h, slot)
    link = at.link(h, 2 * message.receiver + 1)
    if message.down_prev >= 0:
        at.slot(h, message.down_prev).down_next = message.down_next
    else:
        link.head = message.down_next
    if message.down_next >= 0:
        at.slot(h, message.down_next).down_prev = message.down_prev
    else:
        link.tail = message.down_prev
