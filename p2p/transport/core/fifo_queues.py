"""FIFO links: whole messages one after the other on uplinks, in the order of first bytes on downlinks (compiled).

A message that starts to leave at `a` has left at `b = a + S/U`; its first byte is at the receiver at `a + L`; the
downlink takes it at `c >= a + L` and is free again at `c + S/D`; it arrives at `max(b + L, c + S/D)`. Every sum is
formed in one fixed order, so equal inputs give equal bits.
"""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.arrival import schedule_arrival
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import delist_up, push
from p2p.transport.core.layout import Handle


@kernel
def seconds(size: float, rate: float) -> float:
    """Returns the transmission time of some bytes; zero bytes take no time, even on a link without capacity."""
    return size / rate if size > 0.0 else 0.0


@kernel
def begin(h: Handle, slot: int) -> None:
    """Starts the transmission of a message."""
    message, now_s = at.slot(h, slot), at.state(h).now_s
    message.state, message.started_s = at.MOVING, now_s
    message.left_s = now_s + seconds(message.size_bytes, at.link(h, 2 * message.sender).capacity)
    push(h, message.left_s, at.LEFT_RANK, message.sender, message.row, slot, at.LEFT)
    schedule_arrival(h, slot)


@kernel
def enqueue(h: Handle, slot: int) -> None:
    """Starts a message at once if its uplink is free or unlimited; queues it otherwise."""
    message = at.slot(h, slot)
    link = at.link(h, 2 * message.sender)
    # `enlist_up` has run already: at the head of the list means alone on the uplink.
    if link.capacity == np.inf or link.head == slot:
        begin(h, slot)
    else:
        message.state = at.QUEUED


@kernel
def go_on(h: Handle, link: int) -> None:
    """Starts the next queued message of a limited uplink."""
    one = at.link(h, link)
    if one.capacity < np.inf and one.head >= 0 and at.slot(h, one.head).state == at.QUEUED:
        begin(h, one.head)


@kernel
def leave(h: Handle, slot: int) -> None:
    """Ends the transmission of a message and starts the next one of its uplink."""
    sender = at.slot(h, slot).sender
    at.slot(h, slot).state = at.TRANSIT
    delist_up(h, slot)
    go_on(h, 2 * sender)


@kernel
def serve(h: Handle, slot: int) -> None:
    """Starts the reception of a message on its downlink."""
    message, now_s = at.slot(h, slot), at.state(h).now_s
    served_s = now_s + seconds(message.size_bytes, at.link(h, 2 * message.receiver + 1).capacity)
    # The last byte cannot arrive before it has left and travelled, however fast the downlink.
    arrived_s = max(message.left_s + (message.delay_s + message.extra_s), served_s)
    push(h, served_s, at.SERVED_RANK, message.sender, message.row, slot, at.SERVED)
    push(h, arrived_s, at.ARRIVAL_RANK, message.receiver, message.row, slot, at.ARRIVE)


@kernel
def take_first_byte(h: Handle, slot: int) -> None:
    """Queues a message on its downlink when its first byte arrives; serves it at once if the link is free."""
    link = at.link(h, 2 * at.slot(h, slot).receiver + 1)
    at.slot(h, slot).queue_next = -1
    if link.queue_head < 0:
        link.queue_head = link.queue_tail = slot
        serve(h, slot)
    else:
        at.slot(h, link.queue_tail).queue_next = slot
        link.queue_tail = slot


@kernel
def free_downlink(h: Handle, slot: int) -> None:
    """Frees a downlink and serves its next message."""
    link = at.link(h, 2 * at.slot(h, slot).receiver + 1)
    # An aborted message has left the queue already; its event is outdated.
    if link.queue_head != slot:
        return
    link.queue_head = at.slot(h, slot).queue_next
    if link.queue_head < 0:
        link.queue_tail = -1
    else:
        serve(h, link.queue_head)


@kernel
def withdraw_down(h: Handle, slot: int) -> None:
    """Removes an aborted message from its downlink's queue; if it was being served, serves the next one."""
    if at.slot(h, slot).receiver < 0:
        return
    link = at.link(h, 2 * at.slot(h, slot).receiver + 1)
    if link.queue_head == slot:
        free_downlink(h, slot)
        return
    # Linear search: aborts are rare, and a second link per message would cost memory in every run.
    before = link.queue_head
    while before >= 0:
        after = at.slot(h, before).queue_next
        if after == slot:
            at.slot(h, before).queue_next = at.slot(h, slot).queue_next
            if link.queue_tail == slot:
                link.queue_tail = before
            return
        before = after


@kernel
def held_by(h: Handle, slot: int) -> int:
    """Returns the bottleneck of an arrived message: 1 uplink, 2 downlink, 3 latency only."""
    message = at.slot(h, slot)
    if message.arrived_s > message.left_s + (message.delay_s + message.extra_s):
        return 2
    return 1 if message.left_s > message.sent_s else 3
