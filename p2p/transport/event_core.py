"""The event loop of the network: every message, one by one, whatever it meets (compiled; it calls no Python).

`advance` handles starts, ends, arrivals, losses, retransmissions, relays and inboxes in the order (time, rank, node,
row), and returns as soon as a process must go on or something is needed that only Python has.
"""

from __future__ import annotations

import numpy as np

from p2p.transport import layout as at
from p2p.transport.arrival import ask_delay, fill, schedule_arrival
from p2p.transport.compiled import kernel
from p2p.transport.event_queue import (
    delist_down,
    delist_up,
    enlist_down,
    enlist_up,
    new_slot,
    pop,
    push,
)
from p2p.transport.fates import (
    PARTITIONED,
    RECEIVER_DOWN,
    SENDER_DOWN,
    UNKNOWN_ADDRESS,
    burst_due,
    cuts,
    decide,
    draw_delays,
    is_doubled,
)
from p2p.transport.fifo_queues import enqueue, free_downlink, go_on, held_by, leave, take_first_byte, withdraw_down
from p2p.transport.layout import Handle
from p2p.transport.max_min import (
    bottleneck_of,
    is_same_instant,
    join,
    next_mark,
    next_on,
    part,
    remaining,
    solve,
    touch,
)

IN_FLIGHT, DELIVERED, LOST, REJECTED = 0, 1, 2, 3
_ROOM = 8  # what one event may add to any array, with a margin


@kernel
def has_no_room(h: Handle, messages: int) -> bool:
    """Whether an array might overflow if so many messages start or end."""
    state = at.state(h)
    if state.events + 2 * messages > state.room_events or state.unfilled + messages > state.room_unfilled:
        return True
    if state.ended + messages > state.room_ended or (state.listening and state.passed + messages > state.room_passed):
        return True
    return state.used_slots - state.free_slots + messages > state.room_slots


@kernel
def overhear(h: Handle, slot: int) -> None:
    """Shows a message that has passed to whoever listens on the wire."""
    state = at.state(h)
    if state.listening:
        at.passed_slot(h, state.passed).value = slot
        state.passed += 1


@kernel
def count_out(h: Handle, round_number: int) -> None:
    """One message of a round less is under way; the last one is reported after all arrivals of the instant."""
    one, now_s = at.round_(h, round_number), at.state(h).now_s
    one.open -= 1
    if one.open == 0 and one.watched:
        push(h, now_s, at.ARRIVAL_RANK, at.LAST_NODE, round_number, round_number, at.DRAINED)


@kernel
def finish(h: Handle, slot: int, outcome: int, reason: int) -> None:
    """Gives a message its outcome; the message log takes it over at the next flush."""
    state = at.state(h)
    message = at.slot(h, slot)
    message.state, message.outcome, message.reason = at.OVER, outcome, reason
    at.ended_slot(h, state.ended).value = slot
    state.ended += 1
    if outcome != DELIVERED or message.arrived_s != message.arrived_s:
        count_out(h, message.round_number)


@kernel
def lose(h: Handle, slot: int, reason: int) -> None:
    """A message is lost; its sender notices after the timeout and sends the identical bytes again."""
    state = at.state(h)
    message = at.slot(h, slot)
    if message.receiver >= 0 and message.fate == 0:
        delist_down(h, slot)
    again_s = state.now_s + state.timeout_s
    sender = at.node(h, message.sender)
    if (
        message.attempt < state.tries
        and again_s <= message.give_up_s
        and not sender.down
        and (message.flag_bits & at.OUTLIVES or not at.round_(h, message.round_number).closed)
    ):
        again = new_slot(h)
        at.copy_slot(h, again, slot)
        copy = at.slot(h, again)
        copy.attempt += 1
        copy.fate, copy.life, copy.row, copy.state = 0, sender.life, at.PENDING_ROW + message.row, at.WAITING
        copy.flag_bits &= ~at.CORRUPTED
        if state.jittered:
            copy.delay_s = np.nan
        at.round_(h, message.round_number).open += 1
        push(h, again_s, at.START_RANK, message.sender, copy.row, again, at.START)
    finish(h, slot, LOST, reason)


@kernel
def vanish(h: Handle, slot: int) -> None:
    """A message that no receiver gets has left: it is lost, or the router does not know its address."""
    message, now_s = at.slot(h, slot), at.state(h).now_s
    message.left_bytes = int(message.size_bytes)
    overhear(h, slot)
    if message.fate == 0:
        message.arrived_s = now_s
        finish(h, slot, REJECTED, UNKNOWN_ADDRESS)
    else:
        lose(h, slot, message.fate)


@kernel
def left(h: Handle, slot: int) -> None:
    """All bytes of a message are off its uplink (fair sharing, or no limited link at all)."""
    message = at.slot(h, slot)
    message.state = at.TRANSIT
    delist_up(h, slot)
    if message.fate != 0 or message.receiver < 0:
        vanish(h, slot)
    else:
        schedule_arrival(h, slot)


@kernel
def end_flows(h: Handle, link: int, version: int) -> None:
    """A fair link has served the first of its flows, and those that end with it."""
    now_s = at.state(h).now_s
    one = at.link(h, link)
    if one.version != version or not one.pending:
        return
    one.pending = 0
    upto = next_mark(h, link)
    slot = next_on(h, link, -1)
    while slot >= 0:
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
def leave_fifo(h: Handle, slot: int) -> None:
    """All bytes of a message are off its uplink (ideal and fifo sharing)."""
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
def drained(h: Handle, round_number: int) -> int:
    """Reports that no message of a round is under way, if that still holds."""
    one = at.round_(h, round_number)
    if one.open != 0 or not one.watched:
        return at.REACHED
    one.watched = 0
    return at.ROUND_DRAINED + (round_number << at.STATUS_BITS)


@kernel
def release_unsent(h: Handle, slot: int) -> None:
    """A message that was to start never does: it has no row."""
    state = at.state(h)
    message = at.slot(h, slot)
    round_number = message.round_number
    message.state, message.row = at.FREE, -1
    message.up_next = state.free_slot
    state.free_slot = slot
    state.free_slots += 1
    count_out(h, round_number)


@kernel
def double(h: Handle, slot: int) -> None:
    """Sends a copy of a message, which has a fate of its own; its sender does not send it again."""
    again = new_slot(h)
    at.copy_slot(h, again, slot)
    copy = at.slot(h, again)
    copy.sequence = -copy.sequence
    copy.flag_bits = (copy.flag_bits | at.COPY) & ~at.CORRUPTED
    copy.give_up_s = -np.inf
    copy.row, copy.state, copy.life = at.PENDING_ROW + at.slot(h, slot).row, at.WAITING, at.node(h, copy.sender).life
    at.round_(h, copy.round_number).open += 1
    if at.state(h).jittered:
        copy.delay_s = np.nan
    push(h, at.state(h).now_s, at.START_RANK, copy.sender, copy.row, again, at.START)


@kernel
def begin_attempt(h: Handle, slot: int) -> None:
    """Gives an attempt its row and its fate, and puts it on the links."""
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
    enlist_up(h, slot)
    lost = message.fate != 0 or message.receiver < 0
    message.blocked = 0
    if not lost:
        enlist_down(h, slot)
        if message.delay_s != message.delay_s:
            ask_delay(h, slot)
    message.state = at.MOVING
    up = at.link(h, 2 * message.sender).capacity
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
def start(h: Handle, slot: int) -> None:
    """Starts an attempt, and a copy of it where messages are duplicated."""
    message = at.slot(h, slot)
    doubled = at.state(h).impairments > 0 and not message.flag_bits & at.COPY and is_doubled(h, slot)
    if doubled:
        message.flag_bits |= at.DOUBLED
    begin_attempt(h, slot)
    if doubled:
        # It starts at this instant, but after all messages of the batch have their rows.
        double(h, slot)


@kernel
def start_waiting(h: Handle, slot: int) -> int:
    """Starts a message that was made in the core: another attempt, or the next hop over relays."""
    state = at.state(h)
    message = at.slot(h, slot)
    sender = at.node(h, message.sender)
    # Timers die with the sender's life, and when the round has closed; what is already on its way goes on.
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
def ask_wake(h: Handle, node_number: int) -> None:
    """Queues the wake-up of a process as a start of this instant; once."""
    node = at.node(h, node_number)
    if not node.waking:
        node.waking = 1
        push(h, at.state(h).now_s, at.START_RANK, node_number, at.WAKE_ROW + node.version, node_number, at.WAKE)


@kernel
def put_in_inbox(h: Handle, slot: int) -> None:
    """Files a message for its receiver, and wakes the receiver's process if it is the last one expected."""
    message = at.slot(h, slot)
    node = at.node(h, message.receiver)
    message.state, message.queue_next = at.INBOX, -1
    if node.inbox_head < 0:
        node.inbox_head = slot
    else:
        at.slot(h, node.inbox_tail).queue_next = slot
    node.inbox_tail = slot
    node.inbox_count += 1
    if node.wait_topic == message.topic and (node.wait_round == at.ANY_ROUND or node.wait_round == message.round_number):
        node.got += 1
        if node.got >= node.needed:
            ask_wake(h, message.receiver)
    count_out(h, message.round_number)


@kernel
def relay(h: Handle, slot: int) -> int:
    """A relay passes a message on: one layer less, a fresh count of tries, as a start of this instant."""
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
    # The message as a whole is still under way: the round's count stays.
    message.state, message.outcome, message.reason = at.OVER, DELIVERED, 0
    at.ended_slot(h, state.ended).value = slot
    state.ended += 1
    push(h, at.state(h).now_s, at.START_RANK, copy.sender, copy.row, again, at.START)
    return at.REACHED


@kernel
def arrive(h: Handle, slot: int) -> int:
    """A message is at its receiver: in its inbox, passed on by a relay, or handed to Python at once."""
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
    column = at.round_(h, message.round_number).column
    in_session = message.kind == 0 or (
        column >= 0 and at.session(h, column * state.nodes + message.receiver).value != 0
    )
    if message.flag_bits & at.IMMEDIATE or not in_session:
        message.state = at.HANDED
        return at.ARRIVED + (slot << at.STATUS_BITS)
    put_in_inbox(h, slot)
    return at.REACHED


@kernel
def pass_deadline(h: Handle, node_number: int, version: int) -> None:
    """The deadline of a wait has come: its process goes on with what has arrived."""
    node = at.node(h, node_number)
    if node.version == version and node.wait_topic != at.NO_TOPIC:
        node.due = 1
        ask_wake(h, node_number)


@kernel
def wake(h: Handle, node_number: int, version: int) -> int:
    """Reports that a process goes on, unless its wait was called off."""
    node = at.node(h, node_number)
    if at.WAKE_ROW + node.version != version:
        return at.REACHED
    node.waking, node.wait_topic = 0, at.NO_TOPIC
    return (at.WOKEN_DUE if node.due else at.WOKEN) + (node_number << at.STATUS_BITS)


@kernel
def handle_next(h: Handle) -> int:
    """Handles the first event of the queue."""
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
    state.now_s = max(state.now_s, time_s)
    if kind <= at.ARRIVE or kind == at.START:
        # A slot that has ended since, and maybe carries another message now, makes its old events void.
        if at.slot(h, what).row != row or at.slot(h, what).state == at.OVER or at.slot(h, what).state == at.FREE:
            pop(h)
            return at.REACHED
    if kind == at.START:
        return start_waiting(h, what)
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
    return at.REACHED


@kernel
def advance(h: Handle, until_s: float, until_key: int) -> int:
    """Handles all events before the instant and key given; returns why it stopped."""
    state = at.state(h)
    while True:
        found = state.events > 0
        next_s = at.event(h, 0).time_s if found else np.inf
        limit_s = min(next_s, until_s)
        if state.blocked > 0 and limit_s > state.now_s:
            return at.NEEDS_DELAY
        # Rates are solved once nothing more can happen at the instant of the change.
        if state.dirty > 0 and state.solve_s < limit_s:
            same = found and at.event(h, 0).type == at.LINK_END and is_same_instant(next_s, state.now_s)
            if not (same and state.grid_s == 0.0):
                # A solve queues at most one event for each link.
                if state.events + 2 * state.nodes + _ROOM > state.room_events:
                    return at.NEEDS_ROOM
                state.now_s = max(state.now_s, state.solve_s)
                solve(h)
                continue
        if not found or next_s > until_s or (next_s == until_s and at.event(h, 0).key > until_key):
            # Nothing has happened on the network since: sends of this instant begin here.
            if until_s < np.inf:
                state.now_s = max(state.now_s, until_s)
            return at.REACHED
        if has_no_room(h, _ROOM):
            return at.NEEDS_ROOM
        status = handle_next(h)
        if status != at.REACHED:
            return status


@kernel
def expect(h: Handle, node_number: int, topic: int, round_number: int, needed: int, deadline_s: float) -> None:
    """A process waits for so many messages more, or until a deadline."""
    node = at.node(h, node_number)
    node.version += 1
    node.wait_topic, node.wait_round, node.needed, node.got = topic, round_number, needed, 0
    node.due, node.waking = 0, 0
    if needed <= 0:
        node.due = 1
        ask_wake(h, node_number)
    elif deadline_s < np.inf:
        push(h, deadline_s, at.DEADLINE_RANK, node_number, node.version, node_number, at.DEADLINE)


@kernel
def wait_on(h: Handle, node_number: int, topic: int, round_number: int, needed: int) -> None:
    """A wait goes on, up to its old deadline: some messages were refused, or read before the last one came."""
    node = at.node(h, node_number)
    node.wait_topic, node.wait_round, node.needed, node.got = topic, round_number, needed, 0


@kernel
def sleep(h: Handle, node_number: int, until_s: float) -> None:
    """A process waits for an instant, at which it goes on as a start."""
    node = at.node(h, node_number)
    node.version += 1
    node.wait_topic, node.due, node.waking = at.NO_TOPIC, 1, 1
    push(h, until_s, at.START_RANK, node_number, at.WAKE_ROW + node.version, node_number, at.WAKE)


@kernel
def take_inbox(h: Handle, node_number: int, most: int) -> int:
    """Empties a node's inbox into the output buffers; returns how many messages it wrote, at most `most`."""
    node = at.node(h, node_number)
    count, slot = 0, node.inbox_head
    while slot >= 0 and count < most:
        message = at.slot(h, slot)
        output = at.output(h, count)
        output.row, output.batch, output.place = message.row, message.batch, message.place
        output.sender, output.round_number, output.topic = message.sender, message.round_number, message.topic
        output.flag_bits, output.arrived_s, output.sequence = message.flag_bits, message.arrived_s, message.sequence
        slot = message.queue_next
        finish(h, node.inbox_head, DELIVERED, 0)
        node.inbox_head = slot
        count += 1
    if slot < 0:
        node.inbox_tail = -1
    node.inbox_count -= count
    return count


@kernel
def settle(h: Handle, slot: int, outcome: int, reason: int) -> None:
    """Gives an outcome to a message that was handed to Python."""
    message = at.slot(h, slot)
    if outcome == LOST:
        message.fate = reason  # it is on no link any more
        message.arrived_s = np.nan
        lose(h, slot, reason)
    else:
        finish(h, slot, outcome, reason)
        if outcome == DELIVERED:
            count_out(h, message.round_number)


@kernel
def send(h: Handle, count: int, sender: int, packed: int, batch: int, give_up_s: float) -> int:
    """Hands over `count` messages from the input buffer; or returns what it needs before that."""
    state = at.state(h)
    node = at.node(h, sender)
    kind, topic, flags = packed & 15, (packed >> 4) & 63, (packed >> 10) & 15
    separate, round_number = (packed >> 14) & 1, packed >> 16
    if (packed >> 15) & 1:
        flags |= at.OUTLIVES
    # Each message may have a copy, and both may end at once.
    if has_no_room(h, 2 * count + _ROOM):
        return at.NEEDS_ROOM
    if burst_due(h, sender) >= 0:
        return at.NEEDS_BURST
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
        message.give_up_s, message.life = give_up_s, node.life
        start(h, slot)
    return at.REACHED


@kernel
def abort(h: Handle, slot: int, reason: int) -> None:
    """Ends a message where it is, and frees what it used at once."""
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
        share = (now_s - message.started_s) / (message.left_s - message.started_s)
        message.left_bytes, message.left_s = int(np.rint(share * message.size_bytes)), now_s
    link = 2 * message.sender
    if message.state != at.TRANSIT:
        delist_up(h, slot)
    if state.sharing == at.FIFO:
        if message.fate == 0:
            withdraw_down(h, slot)
        go_on(h, link)
    lose(h, slot, reason)


@kernel
def count_listed(h: Handle, node_number: int) -> int:
    """How many messages are on their way from or to a node."""
    count, slot = 0, at.link(h, 2 * node_number).head
    while slot >= 0:
        count, slot = count + 1, at.slot(h, slot).up_next
    slot = at.link(h, 2 * node_number + 1).head
    while slot >= 0:
        count, slot = count + 1, at.slot(h, slot).down_next
    return count


@kernel
def take_down(h: Handle, node_number: int) -> None:
    """A node stops: its messages that have not left, and those on their way to it, end where they are."""
    node, now_s = at.node(h, node_number), at.state(h).now_s
    node.down = 1
    node.life += 1
    slot = at.link(h, 2 * node_number).head
    # A FIFO uplink must not start the next message while its messages are aborted one after the other.
    while slot >= 0:
        after = at.slot(h, slot).up_next
        if at.slot(h, slot).state == at.QUEUED:
            abort(h, slot, SENDER_DOWN)
        slot = after
    slot = at.link(h, 2 * node_number).head
    while slot >= 0:
        after = at.slot(h, slot).up_next
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
    """A partition begins: messages under way across it are lost."""
    state = at.state(h)
    for slot in range(state.used_slots):
        message = at.slot(h, slot)
        moves = message.state == at.QUEUED or message.state == at.MOVING or message.state == at.TRANSIT
        if moves and message.fate == 0 and cuts(h, place, message.sender, message.receiver):
            abort(h, slot, PARTITIONED)


@kernel
def set_capacity(h: Handle, link: int, capacity: float) -> None:
    """Changes a link's rate; under fair sharing also for what is under way, else for what begins later."""
    one = at.link(h, link)
    one.capacity = capacity
    if at.state(h).sharing == at.FAIR:
        touch(h, link)


@kernel
def waiting_nodes(h: Handle, first: int, most: int) -> int:
    """Writes the nodes from `first` on with messages in their inboxes to the output buffer; how many."""
    count = 0
    for node in range(first, at.state(h).nodes):
        if at.node(h, node).inbox_count > 0:
            at.output(h, count).row = node
            count += 1
            if count == most:
                break
    return count


@kernel
def release_ended(h: Handle) -> None:
    """Frees the slots that the message log has taken over."""
    state = at.state(h)
    for place in range(state.ended):
        slot = at.ended_slot(h, place).value
        at.slot(h, slot).state, at.slot(h, slot).row = at.FREE, -1
        at.slot(h, slot).up_next = state.free_slot
        state.free_slot = slot
        state.free_slots += 1
    state.ended = 0


# Operations of the entry point.
ADVANCE, SEND, TAKE_INBOX, EXPECT, SLEEP, TAKE_DOWN, CUT, SET_CAPACITY = 0, 1, 2, 3, 4, 5, 6, 7
SETTLE, WAITING_NODES, RELEASE, ASK_WAKE, WAIT_ON, COUNT_LISTED, FILLED, DRAW = 8, 9, 10, 11, 12, 13, 14, 15


def enter(h: Handle, operation: int, x: float, a: int, b: int, c: int, d: int) -> int:
    """The one entry point: an operation with a float and up to four integers."""
    if operation == ADVANCE:
        return advance(h, x, a)
    if operation == SEND:
        return send(h, a, b, c, d, x)
    if operation == TAKE_INBOX:
        return take_inbox(h, a, b)
    if operation == EXPECT:
        expect(h, a, b, c, d, x)
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
    elif operation == RELEASE:
        release_ended(h)
    elif operation == ASK_WAKE:
        ask_wake(h, a)
    elif operation == WAIT_ON:
        wait_on(h, a, b, c, d)
    elif operation == DRAW:
        return draw_delays(h)
    elif operation == FILLED:
        fill(h)
    elif operation == COUNT_LISTED:
        return count_listed(h, a)
    return 0
