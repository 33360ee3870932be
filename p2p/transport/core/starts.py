"""Starts of messages: batches handed over, retransmissions, copies and further hops over relays (compiled)."""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.arrival import ask_delay, schedule_arrival
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import delist_up, enlist_down, enlist_up, new_slot, pop, push
from p2p.transport.core.fates import RECEIVER_DOWN, UNKNOWN_ADDRESS, burst_due, decide, is_doubled
from p2p.transport.core.fifo_queues import enqueue, leave
from p2p.transport.core.layout import Handle
from p2p.transport.core.max_min import join
from p2p.transport.core.outcomes import DELIVERED, IN_FLIGHT, REJECTED, finish, lose, release_unsent, vanish

ROOM = 8  # the most entries that one event adds to any array, with a margin


@kernel
def has_no_room(h: Handle, messages: int) -> bool:
    """Returns whether an array might overflow if this many messages start or end."""
    state = at.state(h)
    if state.events + 2 * messages > state.room_events or state.unfilled + messages > state.room_unfilled:
        return True
    if state.ended + messages > state.room_ended or (state.listening and state.passed + messages > state.room_passed):
        return True
    return state.used_slots - state.free_slots + messages > state.room_slots


@kernel
def left(h: Handle, slot: int) -> None:
    """Handles the departure of a message's last byte (fair sharing, or no limited link at all)."""
    message = at.slot(h, slot)
    message.state = at.TRANSIT
    delist_up(h, slot)
    if message.fate != 0 or message.receiver < 0:
        vanish(h, slot)
    else:
        schedule_arrival(h, slot)


@kernel
def leave_fifo(h: Handle, slot: int) -> None:
    """Handles the departure of a message's last byte (ideal and FIFO sharing)."""
    message = at.slot(h, slot)
    if at.state(h).sharing == at.FIFO:
        leave(h, slot)
    else:
        message.state = at.TRANSIT
        delist_up(h, slot)
    if message.fate != 0 or message.receiver < 0:
        message.bottleneck = 1
        vanish(h, slot)


@kernel
def begin_attempt(h: Handle, slot: int) -> None:
    """Gives an attempt its row and its fate, and puts it on its links."""
    state = at.state(h)
    message = at.slot(h, slot)
    now_s = state.now_s
    message.row = state.rows
    state.rows += 1
    message.sent_s = message.started_s = now_s
    message.left_s = message.arrived_s = np.nan
    message.outcome, message.reason, message.bottleneck, message.left_bytes = IN_FLIGHT, 0, 0, 0
    message.holder, message.stamp = -1, 0
    decide(h, slot)
    if state.fail_fast and message.fate == RECEIVER_DOWN and at.node(h, message.receiver).down:
        # No connection, so no byte leaves. A receiver that has restarted is up and takes what it cannot open.
        message.left_s = now_s
        lose(h, slot, RECEIVER_DOWN)
        return
    enlist_up(h, slot)
    lost = message.fate != 0 or message.receiver < 0
    message.blocked = 0
    if not lost:
        enlist_down(h, slot)
        if message.delay_s != message.delay_s:
            ask_delay(h, slot)
    message.state = at.MOVING
    up = at.link(h, 2 * message.sender).capacity
    # A lost message uses its uplink in full, but no downlink.
    down = np.inf if lost else at.link(h, 2 * message.receiver + 1).capacity
    if state.sharing == at.FIFO:
        enqueue(h, slot)
    elif message.size_bytes <= 0 or (up == np.inf and down == np.inf):
        message.left_s, message.bottleneck = now_s, 3
        left(h, slot)
    elif state.sharing == at.FAIR:
        join(h, slot)
    else:
        message.left_s = now_s + message.size_bytes / min(up, down)
        message.bottleneck = 1 if up <= down else 2
        if lost:
            push(h, message.left_s, at.LEFT_RANK, message.sender, message.row, slot, at.LEFT)
        else:
            schedule_arrival(h, slot)


@kernel
def double(h: Handle, slot: int) -> None:
    """Sends a copy of a message with a fate of its own; copies are not retransmitted."""
    again = new_slot(h)
    at.copy_slot(h, again, slot)
    copy = at.slot(h, again)
    # The negative number names the copy in random draws, so that its fate is independent of the original's.
    copy.sequence = -copy.sequence
    copy.flag_bits = (copy.flag_bits | at.COPY) & ~at.CORRUPTED
    copy.give_up_s = -np.inf
    copy.row, copy.state, copy.life = at.PENDING_ROW + at.slot(h, slot).row, at.WAITING, at.node(h, copy.sender).life
    at.round_(h, copy.round_number).open += 1
    if at.state(h).jittered:
        copy.delay_s = np.nan
    push(h, at.state(h).now_s, at.START_RANK, copy.sender, copy.row, again, at.START)


@kernel
def start(h: Handle, slot: int) -> None:
    """Starts an attempt, and a copy of it if it is duplicated."""
    message = at.slot(h, slot)
    doubled = at.state(h).impairments > 0 and not message.flag_bits & at.COPY and is_doubled(h, slot)
    if doubled:
        message.flag_bits |= at.DOUBLED
    begin_attempt(h, slot)
    if doubled:
        # The copy starts at this instant, but after all messages of the batch have their rows.
        double(h, slot)


@kernel
def start_waiting(h: Handle, slot: int) -> int:
    """Starts a message created in the core: a retransmission, a copy, or the next hop over relays."""
    message = at.slot(h, slot)
    sender = at.node(h, message.sender)
    # A restart of the sender or the closing of the round cancels retransmissions; messages in flight continue.
    closed = message.attempt > 1 and not message.flag_bits & at.OUTLIVES and at.round_(h, message.round_number).closed
    if sender.down or sender.life != message.life or closed:
        pop(h)
        release_unsent(h, slot)
        return at.REACHED
    if message.receiver >= 0 and at.node(h, message.receiver).redirect >= 0:
        if message.destination == message.receiver:
            message.destination = at.node(h, message.receiver).redirect
        message.receiver = at.node(h, message.receiver).redirect
        message.delay_s = np.nan
    burst = burst_due(h, message.sender)
    if burst >= 0:
        return at.NEEDS_BURST + (message.sender << at.STATUS_BITS)
    pop(h)
    start(h, slot)
    return at.REACHED


@kernel
def relay(h: Handle, slot: int) -> int:
    """Forwards a message at a relay: one layer less, a new count of tries, as a start of this instant."""
    state = at.state(h)
    message = at.slot(h, slot)
    if message.route < 0 or message.hop >= state.hops:
        finish(h, slot, REJECTED, UNKNOWN_ADDRESS)
        return at.REACHED
    again = new_slot(h)
    at.copy_slot(h, again, slot)
    copy = at.slot(h, again)
    copy.hop += 1
    copy.sender = message.receiver
    copy.receiver = at.route(h, message.route * (state.hops + 1) + copy.hop).value
    copy.size_bytes -= state.layer_bytes
    copy.overhead -= state.layer_bytes
    copy.attempt, copy.previous, copy.fate = 1, message.row, 0
    if copy.flag_bits & at.CORRUPTED:
        copy.flag_bits |= at.CARRIED
    copy.flag_bits &= ~at.CORRUPTED
    copy.row, copy.state, copy.life = at.PENDING_ROW + message.row, at.WAITING, at.node(h, copy.sender).life
    copy.delay_s = np.nan
    # The message as a whole is still in flight, so the round's count stays.
    message.state, message.outcome, message.reason = at.OVER, DELIVERED, 0
    at.ended_slot(h, state.ended).value = slot
    state.ended += 1
    push(h, at.state(h).now_s, at.START_RANK, copy.sender, copy.row, again, at.START)
    return at.REACHED


@kernel
def send(h: Handle, count: int, sender: int, packed: int, batch: int, give_up_s: float) -> int:
    """Hands over `count` messages from the input buffer, or returns what it needs first and changes nothing."""
    state = at.state(h)
    node = at.node(h, sender)
    kind, topic, flags = packed & 15, (packed >> 4) & 63, (packed >> 10) & 15
    separate, round_number = (packed >> 14) & 1, packed >> 17
    if (packed >> 15) & 1:
        flags |= at.OUTLIVES
    if (packed >> 16) & 1:
        flags |= at.CALL
    # Each message may have a copy, and both may end at once.
    if has_no_room(h, 2 * count + ROOM):
        return at.NEEDS_ROOM
    if burst_due(h, sender) >= 0:
        return at.NEEDS_BURST
    # One number for the whole batch: receivers tell its messages apart in random draws.
    if not separate:
        node.sequence += 1
    at.round_(h, round_number).open += count
    for place in range(count):
        if separate:
            node.sequence += 1
        slot = new_slot(h)
        message = at.slot(h, slot)
        message.kind, message.topic, message.flag_bits, message.round_number = kind, topic, flags, round_number
        message.sender = message.origin = sender
        given = at.input_(h, place)
        message.receiver = message.destination = given.receiver
        message.route = given.route
        if message.route >= 0:
            hops = state.hops + 1
            message.destination = at.route(h, message.route * hops + hops - 1).value
        message.size_bytes, message.overhead, message.delay_s = given.size_bytes, given.overhead, given.delay_s
        message.sequence, message.batch, message.place = node.sequence, batch, place
        message.previous, message.attempt, message.hop = -1, 1, 0
        message.give_up_s, message.life, message.destination_life = give_up_s, node.life, 0
        if message.destination >= 0:
            message.destination_life = at.node(h, message.destination).life
        if given.fetch_life >= 0:
            message.flag_bits |= at.FETCH
            message.destination_life = given.fetch_life
        start(h, slot)
    return at.REACHED


@kernel
def send_reply(
    h: Handle,
    sender: int,
    receiver: int,
    topic: int,
    round_number: int,
    size_bytes: int,
    overhead: int,
    batch: int,
    place: int,
) -> None:
    """Sends a control message that a node's rule makes; `batch` and `place` are all its content."""
    node, slot = at.node(h, sender), new_slot(h)
    message = at.slot(h, slot)
    node.sequence += 1
    message.kind, message.topic, message.flag_bits, message.round_number = 0, topic, 0, round_number
    message.sender = message.origin = sender
    # A receiver that has been replaced meanwhile is reached at its stand-in.
    stand_in = at.node(h, receiver).redirect
    message.receiver = message.destination = receiver if stand_in < 0 else stand_in
    message.route, message.previous, message.attempt, message.hop = -1, -1, 1, 0
    message.size_bytes, message.overhead = size_bytes, overhead
    message.delay_s = node.answer_delay_s if stand_in < 0 else np.nan
    message.sequence, message.batch, message.place = node.sequence, batch, place
    message.give_up_s, message.life = np.inf, node.life
    message.destination_life = at.node(h, message.receiver).life
    at.round_(h, round_number).open += 1
    start(h, slot)
