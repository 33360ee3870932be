"""Waits of processes: for messages in their inboxes, deadlines and instants (compiled)."""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import push
from p2p.transport.core.layout import Handle
from p2p.transport.core.outcomes import DELIVERED, count_out, finish


@kernel
def ask_wake(h: Handle, node_number: int) -> None:
    """Queues the wake-up of a process as a start of this instant, at most once per wait; not while it fetches."""
    node = at.node(h, node_number)
    if node.fetch_round >= 0:
        node.held = 1
    elif not node.waking:
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
    counts = node.wait_round == at.ANY_ROUND or node.wait_round == message.round_number
    if counts and node.wait_topic == message.topic and not message.flag_bits & at.BY_RULE:
        node.got += 1
        if node.got >= node.needed:
            ask_wake(h, message.receiver)
    # Counted out on arrival, not when opened: a round drains even if a process never reads its inbox.
    count_out(h, message.round_number)


@kernel
def pass_deadline(h: Handle, node_number: int, version: int) -> None:
    """Handles the deadline of a wait: its process resumes with what has arrived."""
    node = at.node(h, node_number)
    if node.version == version and node.wait_topic != at.NO_TOPIC:
        node.due = 1
        ask_wake(h, node_number)


@kernel
def show(h: Handle, place: int, slot: int) -> None:
    """Writes a message to the output buffer."""
    message, output = at.slot(h, slot), at.output(h, place)
    output.row, output.batch, output.place = message.row, message.batch, message.place
    output.sender, output.round_number, output.topic = message.sender, message.round_number, message.topic
    output.flag_bits, output.arrived_s, output.sequence = message.flag_bits, message.arrived_s, message.sequence
    output.life = message.life


@kernel
def take_inbox(h: Handle, node_number: int, most: int) -> int:
    """Moves up to `most` messages from a node's inbox to the output buffer; returns their number."""
    node = at.node(h, node_number)
    count, slot = 0, node.inbox_head
    while slot >= 0 and count < most:
        show(h, count, slot)
        slot = at.slot(h, slot).queue_next
        finish(h, node.inbox_head, DELIVERED, 0)
        node.inbox_head = slot
        count += 1
    if slot < 0:
        node.inbox_tail = -1
    node.inbox_count -= count
    return count


@kernel
def wake(h: Handle, node_number: int, version: int) -> int:
    """Reports that a process resumes, unless its wait was cancelled."""
    node = at.node(h, node_number)
    # A cancelled wait leaves its wake-up in the queue.
    if at.WAKE_ROW + node.version != version:
        return at.REACHED
    state = at.state(h)
    state.taken = 0
    count = node.inbox_count
    # A process that sleeps leaves its inbox alone. More than the buffers hold is taken by Python afterwards.
    if node.wait_topic != at.NO_TOPIC and count <= state.room_outputs and state.ended + count <= state.room_ended:
        state.taken = take_inbox(h, node_number, count)
    node.waking, node.wait_topic = 0, at.NO_TOPIC
    return (at.WOKEN_DUE if node.due else at.WOKEN) + (node_number << at.STATUS_BITS)


@kernel
def expect(h: Handle, node_number: int, topic: int, round_number: int, needed: int, deadline_s: float) -> None:
    """Starts a wait for `needed` more messages, or until a deadline."""
    node = at.node(h, node_number)
    # Events of the previous wait carry its version and are ignored from here on.
    node.version += 1
    node.wait_topic, node.wait_round, node.needed, node.got = topic, round_number, needed, 0
    node.due, node.waking = 0, 0
    # Enough is here already: resume at this instant, as if due.
    if needed <= 0:
        node.due = 1
        ask_wake(h, node_number)
    elif deadline_s < np.inf:
        push(h, deadline_s, at.DEADLINE_RANK, node_number, node.version, node_number, at.DEADLINE)


@kernel
def wait_on(h: Handle, node_number: int, topic: int, round_number: int, needed: int) -> None:
    """Continues a wait up to its old deadline: some messages were rejected, or read before the last arrived."""
    node = at.node(h, node_number)
    node.wait_topic, node.wait_round, node.needed, node.got = topic, round_number, needed, 0


@kernel
def sleep(h: Handle, node_number: int, until_s: float) -> None:
    """Starts a wait for an instant, at which the process resumes with the rank of a start."""
    node = at.node(h, node_number)
    node.version += 1
    node.wait_topic, node.due, node.waking = at.NO_TOPIC, 1, 1
    push(h, until_s, at.START_RANK, node_number, at.WAKE_ROW + node.version, node_number, at.WAKE)


@kernel
def waiting_nodes(h: Handle, first: int, most: int) -> int:
    """Writes the nodes from `first` on with messages in their inboxes to the output buffer; returns their number."""
    count = 0
    for node in range(first, at.state(h).nodes):
        if at.node(h, node).inbox_count > 0:
            at.output(h, count).row = node
            count += 1
            if count == most:
                break
    return count
