"""The event loop of the network, for every message and every impairment (compiled; it calls no Python).

`advance` handles starts, ends, arrivals, losses, retransmissions, relays and inboxes in the order (time, rank, node,
row), and returns as soon as a process must resume or something is needed that only Python can provide.
"""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.arrival import fill
from p2p.transport.core.calls import answer, answer_call, queue_answer, take_call
from p2p.transport.core.compiled import kernel
from p2p.transport.core.disruptions import count_listed, cut, set_capacity, take_down
from p2p.transport.core.event_queue import delist_down, delist_up, pop
from p2p.transport.core.fates import UNKNOWN_ADDRESS, draw_delays
from p2p.transport.core.fetches import (
    begin_fetch,
    end_fetch,
    is_late,
    report_fetched,
    take_fetched,
    take_model,
    take_order,
)
from p2p.transport.core.fifo_queues import free_downlink, held_by, take_first_byte
from p2p.transport.core.layout import Handle
from p2p.transport.core.log_rows import copy_ended, copy_under_way
from p2p.transport.core.max_min import bottleneck_of, is_same_instant, next_mark, next_on, part, solve, touch
from p2p.transport.core.outcomes import REJECTED, drained, finish, overhear, settle
from p2p.transport.core.starts import ROOM, has_no_room, leave_fifo, left, relay, send, start_waiting
from p2p.transport.core.waits import (
    ask_wake,
    expect,
    pass_deadline,
    put_in_inbox,
    show,
    sleep,
    take_inbox,
    wait_on,
    waiting_nodes,
    wake,
)


@kernel
def end_flows(h: Handle, link: int, version: int) -> None:
    """Ends the first flow of a fair link, and those that end at the same instant."""
    now_s = at.state(h).now_s
    one = at.link(h, link)
    # A later solve has rescheduled the link; this event is outdated.
    if one.version != version or not one.pending:
        return
    one.pending = 0
    upto = next_mark(h, link)
    slot = next_on(h, link, -1)
    while slot >= 0:
        # Read before the flow leaves the list.
        after = next_on(h, link, slot)
        message = at.slot(h, slot)
        if message.holder == link and message.mark <= upto:
            message.left_s = now_s
            message.bottleneck = bottleneck_of(h, slot)
            part(h, slot)
            left(h, slot)
        slot = after
    if one.held > 0:
        touch(h, link)


@kernel
def arrive(h: Handle, slot: int) -> int:
    """Handles an arrival: files it in the inbox, forwards it at a relay, or hands it to Python at once."""
    state = at.state(h)
    message = at.slot(h, slot)
    message.arrived_s, message.left_bytes = at.state(h).now_s, int(message.size_bytes)
    if message.state == at.MOVING:
        delist_up(h, slot)  # ideal sharing has no event for the last byte
    if state.sharing == at.FIFO:
        message.bottleneck = held_by(h, slot)
    delist_down(h, slot)
    overhear(h, slot)
    node = at.node(h, message.receiver)
    if node.relay:
        return relay(h, slot)
    if not node.attached:
        finish(h, slot, REJECTED, UNKNOWN_ADDRESS)
        return at.REACHED
    if message.flag_bits & at.CALL:
        take_call(h, slot)
        return at.REACHED
    if message.flag_bits & at.FETCH and take_order(h, slot):
        return at.REACHED
    # Control messages need no session: they come from and go to the proxy, whatever the round.
    column = at.round_(h, message.round_number).column
    in_session = message.kind == 0 or (
        column >= 0 and at.session(h, column * state.nodes + message.receiver).value != 0
    )
    judged = message.kind == at.FIRST_MODEL_KIND and in_session and not take_model(h, slot)
    if message.flag_bits & at.IMMEDIATE or not in_session or judged:
        message.state = at.HANDED
        show(h, 0, slot)
        state.receiver = message.receiver
        return at.ARRIVED + (slot << at.STATUS_BITS)
    put_in_inbox(h, slot)
    return at.REACHED


@kernel
def is_void(h: Handle, slot: int, row: int) -> bool:
    """Returns whether an event's message has ended; its slot may hold another one now."""
    message = at.slot(h, slot)
    return message.row != row or message.state == at.OVER or message.state == at.FREE


@kernel
def handle_next(h: Handle) -> int:
    """Handles the first event of the queue, and returns a status for Python if one is needed."""
    state = at.state(h)
    event = at.event(h, 0)
    kind, what, row, time_s = event.type, event.what, event.row, event.time_s
    if kind == at.LINK_END:
        pop(h)
        # An end within the clock's resolution of this instant belongs to it.
        if not is_same_instant(time_s, state.now_s):
            state.now_s = time_s
        end_flows(h, what, row)
        return at.REACHED
    # Merged ends may have taken the clock a rounding error beyond this event.
    state.now_s = max(state.now_s, time_s)
    if (kind <= at.ARRIVE or kind == at.START) and is_void(h, what, row):
        pop(h)
        return at.REACHED
    if kind == at.START:
        # Pops its event itself: if burst states are missing, the event must stay for the next call.
        return start_waiting(h, what)
    if kind == at.ANSWER:
        return answer_call(h, what, row)
    if kind == at.FETCHED:
        return report_fetched(h, what, row)
    pop(h)
    if kind == at.LEFT:
        leave_fifo(h, what)
    elif kind == at.SERVED:
        free_downlink(h, what)
    elif kind == at.FIRST_BYTE:
        take_first_byte(h, what)
    elif kind == at.ARRIVE:
        return arrive(h, what)
    elif kind == at.DRAINED:
        return drained(h, what)
    elif kind == at.DEADLINE:
        pass_deadline(h, what, row)
    elif kind == at.WAKE:
        return wake(h, what, row)
    elif kind == at.FETCH_LATE and is_late(h, what, row):
        return at.FETCH_OVER + (what << at.STATUS_BITS)
    return at.REACHED


@kernel
def advance(h: Handle, until_s: float, until_key: int) -> int:
    """Handles all events up to the given instant and key; returns why it stopped."""
    state = at.state(h)
    while True:
        found = state.events > 0
        next_s = at.event(h, 0).time_s if found else np.inf
        limit_s = min(next_s, until_s)
        # Unknown delays may belong to arrivals before the next event, so time must not advance to the first of them.
        if state.blocked > 0 and limit_s > state.now_s and limit_s >= state.blocked_s:
            return at.NEEDS_DELAY
        # Rates are solved once nothing more can happen at the instant of the change.
        if state.dirty > 0 and state.solve_s < limit_s:
            same = found and at.event(h, 0).type == at.LINK_END and is_same_instant(next_s, state.now_s)
            if not (same and state.grid_s == 0.0):
                # A solve queues at most one event for each link.
                if state.events + 2 * state.nodes + ROOM > state.room_events:
                    return at.NEEDS_ROOM
                state.now_s = max(state.now_s, state.solve_s)
                solve(h)
                continue
        if not found or next_s > until_s or (next_s == until_s and at.event(h, 0).key > until_key):
            # Nothing has happened on the network since: sends of this instant begin here.
            if until_s < np.inf:
                state.now_s = max(state.now_s, until_s)
            state.next_s = min(next_s, state.blocked_s)
            if state.dirty > 0:
                state.next_s = min(state.next_s, state.solve_s)
            return at.REACHED
        if has_no_room(h, ROOM):
            return at.NEEDS_ROOM
        status = handle_next(h)
        if status != at.REACHED:
            return status


# Operations of the entry point.
ADVANCE, SEND, TAKE_INBOX, EXPECT, SLEEP, TAKE_DOWN, CUT, SET_CAPACITY = 0, 1, 2, 3, 4, 5, 6, 7
SETTLE, WAITING_NODES, COPY_ENDED, ASK_WAKE, WAIT_ON, COUNT_LISTED, FILLED, DRAW = 8, 9, 10, 11, 12, 13, 14, 15
ANSWER_NOW, BEGIN_FETCH, END_FETCH, TAKE_FETCHED, COPY_UNDER_WAY = 16, 17, 18, 19, 20


def enter(h: Handle) -> int:
    """The one entry point: the operation and its arguments stand in the state, which is cheaper than passing them."""
    state = at.state(h)
    operation, x, a, b, c, d = state.operation, state.x, state.a, state.b, state.c, state.d
    if operation == ADVANCE:
        return advance(h, x, a)
    if operation == SEND:
        return send(h, a, b, c, d, x)
    if operation == TAKE_INBOX:
        return take_inbox(h, a, b)
    if operation == EXPECT:
        expect(h, a, b, c, d, x)
        if b == at.ORDERS_TOPIC:
            queue_answer(h, a)
    elif operation == SLEEP:
        sleep(h, a, x)
    elif operation == TAKE_DOWN:
        take_down(h, a)
    elif operation == CUT:
        cut(h, a)
    elif operation == SET_CAPACITY:
        set_capacity(h, a, x)
    elif operation == SETTLE:
        settle(h, a, b, c)
    elif operation == WAITING_NODES:
        return waiting_nodes(h, a, b)
    elif operation == COPY_ENDED:
        return copy_ended(h, a, b)
    elif operation == COPY_UNDER_WAY:
        return copy_under_way(h, a, b)
    elif operation == ASK_WAKE:
        ask_wake(h, a)
    elif operation == WAIT_ON:
        wait_on(h, a, b, c, d)
    elif operation == DRAW:
        return draw_delays(h)
    elif operation == FILLED:
        fill(h)
    elif operation == ANSWER_NOW:
        answer(h, a)
    elif operation == BEGIN_FETCH:
        begin_fetch(h, a, b)
    elif operation == END_FETCH:
        end_fetch(h, a)
    elif operation == TAKE_FETCHED:
        return take_fetched(h, a, b, c)
    elif operation == COUNT_LISTED:
        return count_listed(h, a)
    return 0
