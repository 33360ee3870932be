"""Disruptions of messages in flight: nodes that go down, partitions, changed links (compiled)."""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import delist_up
from p2p.transport.core.fates import PARTITIONED, RECEIVER_DOWN, SENDER_DOWN, cuts
from p2p.transport.core.fifo_queues import go_on, withdraw_down
from p2p.transport.core.layout import Handle
from p2p.transport.core.max_min import part, remaining, touch
from p2p.transport.core.outcomes import lose


@kernel
def abort(h: Handle, slot: int, reason: int) -> None:
    """Aborts a message where it is, and frees its bandwidth at once."""
    state = at.state(h)
    message, now_s = at.slot(h, slot), at.state(h).now_s
    if message.state == at.QUEUED:
        message.left_bytes, message.left_s = 0, now_s
    elif message.state == at.TRANSIT or (state.sharing != at.FAIR and message.left_s <= now_s):
        message.left_bytes = int(message.size_bytes)
    elif state.sharing == at.FAIR:
        message.left_bytes = int(np.rint(message.size_bytes - remaining(h, slot)))
        message.left_s = now_s
        part(h, slot)
    else:
        # Ideal and FIFO links send at a constant rate from start to end.
        share = (now_s - message.started_s) / (message.left_s - message.started_s)
        message.left_bytes, message.left_s = int(np.rint(share * message.size_bytes)), now_s
    link = 2 * message.sender
    if message.state != at.TRANSIT:
        delist_up(h, slot)
    if state.sharing == at.FIFO:
        # A message that is lost anyway was never put on a downlink.
        if message.fate == 0:
            withdraw_down(h, slot)
        go_on(h, link)
    lose(h, slot, reason)


@kernel
def count_listed(h: Handle, node_number: int) -> int:
    """Returns the number of messages listed on a node's links."""
    count, slot = 0, at.link(h, 2 * node_number).head
    while slot >= 0:
        count, slot = count + 1, at.slot(h, slot).up_next
    slot = at.link(h, 2 * node_number + 1).head
    while slot >= 0:
        count, slot = count + 1, at.slot(h, slot).down_next
    return count


@kernel
def take_down(h: Handle, node_number: int) -> None:
    """Takes a node down: aborts its messages that have not left, and those on their way to it."""
    node, now_s = at.node(h, node_number), at.state(h).now_s
    node.down = 1
    node.life += 1
    node.call_round = node.called_round = node.called_batch = node.fetch_round = -1
    node.held = 0
    slot = at.link(h, 2 * node_number).head
    # Queued messages first: aborting the moving one would otherwise start the next of the FIFO uplink.
    while slot >= 0:
        after = at.slot(h, slot).up_next
        if at.slot(h, slot).state == at.QUEUED:
            abort(h, slot, SENDER_DOWN)
        slot = after
    slot = at.link(h, 2 * node_number).head
    while slot >= 0:
        after = at.slot(h, slot).up_next
        # Negated, so that NaN (not left yet) also aborts.
        if not at.slot(h, slot).left_s <= now_s:
            abort(h, slot, SENDER_DOWN)
        slot = after
    slot = at.link(h, 2 * node_number + 1).head
    while slot >= 0:
        after = at.slot(h, slot).down_next
        abort(h, slot, RECEIVER_DOWN)
        slot = after


@kernel
def cut(h: Handle, place: int) -> None:
    """Begins a partition: aborts the messages in flight across it."""
    state = at.state(h)
    for slot in range(state.used_slots):
        message = at.slot(h, slot)
        moves = message.state == at.QUEUED or message.state == at.MOVING or message.state == at.TRANSIT
        if moves and message.fate == 0 and cuts(h, place, message.sender, message.receiver):
            abort(h, slot, PARTITIONED)


@kernel
def set_capacity(h: Handle, link: int, capacity: float) -> None:
    """Changes a link's rate; applies to messages in flight under fair sharing, else to later ones only."""
    one = at.link(h, link)
    one.capacity = capacity
    if at.state(h).sharing == at.FAIR:
        touch(h, link)
