"""Arrival of messages whose departure is known, under each sharing model (compiled)."""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import push
from p2p.transport.core.layout import Handle


@kernel
def schedule_arrival(h: Handle, slot: int) -> None:
    """Queues the arrival of a message, or under FIFO sharing that of its first byte.

    Latency and jitter come from Python, for many messages at once: a message that needs its delay before it is known
    waits for `fill`, and time does not advance beyond its earliest possible arrival until then.
    """
    message, state = at.slot(h, slot), at.state(h)
    if message.fate != 0 or message.receiver < 0:
        return
    queues = state.sharing == at.FIFO and at.link(h, 2 * message.receiver + 1).capacity < np.inf
    # NaN: the delay is not known yet.
    if message.delay_s != message.delay_s:
        message.blocked = 1
        state.blocked += 1
        since_s = message.started_s if queues else message.left_s
        state.blocked_s = min(state.blocked_s, since_s + state.least_delay_s)
        return
    delay_s = message.delay_s + message.extra_s
    if queues:
        # First bytes of one instant are served by sender, then row; the rank frees links before that.
        first_s = message.started_s + delay_s
        push(h, first_s, at.FIRST_BYTE_RANK, message.sender, message.row, slot, at.FIRST_BYTE)
    else:
        push(h, message.left_s + delay_s, at.ARRIVAL_RANK, message.receiver, message.row, slot, at.ARRIVE)


@kernel
def ask_delay(h: Handle, slot: int) -> None:
    """Adds a message to the list of those whose delay Python has to fill in."""
    state = at.state(h)
    at.unfilled_slot(h, state.unfilled).value = slot
    state.unfilled += 1


@kernel
def fill(h: Handle) -> None:
    """Schedules the messages that waited for their delays, which are filled in now."""
    state = at.state(h)
    for place in range(state.unfilled):
        slot = at.unfilled_slot(h, place).value
        message = at.slot(h, slot)
        if message.blocked:
            message.blocked = 0
            # A message that was aborted meanwhile keeps its place in the list but must not arrive.
            if message.state == at.MOVING or message.state == at.TRANSIT:
                schedule_arrival(h, slot)
    state.unfilled = state.blocked = 0
    state.blocked_s = np.inf
