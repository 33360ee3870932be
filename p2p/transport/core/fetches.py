"""Fetching the first model: orders that a node's rule follows inside the core (compiled).

Order, model and report are ordinary messages. A node fetches while its process waits for orders. Until it has reported,
it answers no call, and its process is not woken. Order and model stay in its inbox, unopened, until it is read.
"""

from __future__ import annotations

from p2p.transport.core import layout as at
from p2p.transport.core.calls import queue_answer
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import pop, push
from p2p.transport.core.fates import burst_due
from p2p.transport.core.layout import Handle
from p2p.transport.core.outcomes import DELIVERED, finish
from p2p.transport.core.starts import send_reply
from p2p.transport.core.waits import ask_wake, put_in_inbox, show


@kernel
def begin_fetch(h: Handle, node_number: int, round_number: int) -> None:
    """Starts to wait for the first model: from now for as long as the round gives a node."""
    state, node, one = at.state(h), at.node(h, node_number), at.round_(h, round_number)
    node.fetch_round, node.fetched = round_number, 0
    node.fetches += 1
    # The deadline of the process's wait is for nodes that the proxy does not know.
    node.version += 1
    if node.waking:
        node.waking, node.held = 0, 1
    closes_s = max(one.closes_s, state.now_s + one.lasts_s)
    one.promised_s = max(one.promised_s, closes_s)
    if one.column >= 0:
        at.session(h, one.column * state.nodes + node_number).value = 1
    push(h, closes_s, at.DEADLINE_RANK, node_number, node.fetches, node_number, at.FETCH_LATE)


@kernel
def take_order(h: Handle, slot: int) -> bool:
    """Follows an order to fetch the first model if nothing about it is irregular; else its receiver judges it."""
    message = at.slot(h, slot)
    node = at.node(h, message.receiver)
    irregular = at.IMMEDIATE | at.CORRUPTED | at.CARRIED | at.COPY | at.DOUBLED
    if message.flag_bits & irregular or node.wait_topic != at.ORDERS_TOPIC or node.waking or node.fetch_round >= 0:
        return False
    # The model may have come already.
    if node.early:
        return False
    # An earlier life's keys are lost, an order of an earlier hand-out has other terms, and one that comes too late has
    # no effect.
    one = at.round_(h, message.round_number)
    if message.destination_life != node.life or message.batch != one.orders or at.state(h).now_s >= one.closes_s:
        return False
    message.flag_bits |= at.BY_RULE
    # Filed before the wait changes, and as an order that wakes no process.
    put_in_inbox(h, slot)
    begin_fetch(h, message.receiver, message.round_number)
    return True


@kernel
def take_model(h: Handle, slot: int) -> bool:
    """Takes the first model; returns False if its receiver waits for it but has to judge whether it is the one."""
    message = at.slot(h, slot)
    node = at.node(h, message.receiver)
    if node.fetch_round != message.round_number:
        return True
    damaged = message.flag_bits & (at.CORRUPTED | at.CARRIED)
    if damaged or node.fetched or message.origin != at.round_(h, message.round_number).first_from:
        return False
    message.flag_bits |= at.BY_RULE
    node.fetched = 1
    # Reported as a start of this instant, when a process would.
    row = at.WAKE_ROW + node.fetches
    push(h, at.state(h).now_s, at.START_RANK, message.receiver, row, message.receiver, at.FETCHED)
    return True


@kernel
def end_fetch(h: Handle, node_number: int) -> None:
    """Ends a fetch: what has waited for its end happens as a start of this instant."""
    node = at.node(h, node_number)
    if node.fetch_round < 0:
        return
    node.fetch_round = -1
    if node.held:
        node.held = 0
        ask_wake(h, node_number)
    else:
        queue_answer(h, node_number)


@kernel
def is_late(h: Handle, node_number: int, fetch: int) -> bool:
    """Returns whether a deadline is that of a fetch that still waits for its model."""
    node = at.node(h, node_number)
    return node.fetch_round >= 0 and node.fetches == fetch and not node.fetched


@kernel
def report_fetched(h: Handle, node_number: int, row: int) -> int:
    """Reports to the proxy that the node has the first model."""
    state, node = at.state(h), at.node(h, node_number)
    if node.fetch_round < 0 or row != at.WAKE_ROW + node.fetches:
        pop(h)
        return at.REACHED
    if burst_due(h, node_number) >= 0:
        return at.NEEDS_BURST + (node_number << at.STATUS_BITS)
    pop(h)
    node.model_round = 0
    number, report = node.fetch_round, at.MADE - at.round_(h, node.fetch_round).report
    size_bytes, overhead = state.report_bytes, state.report_overhead
    send_reply(h, node_number, state.proxy, at.DONE_TOPIC, number, size_bytes, overhead, report, 0)
    end_fetch(h, node_number)
    return at.REACHED


@kernel
def take_fetched(h: Handle, round_number: int, first: int, most: int) -> int:
    """Takes order and model from the inboxes of nodes, from `first` on, in which nothing else lies.

    They go to the output buffer as pairs, at most `most` of them, with the receiver in place of the sender; returns the
    number of pairs.
    """
    count = 0
    for node_number in range(first, at.state(h).nodes):
        if count == most:
            break
        node = at.node(h, node_number)
        if node.inbox_count != 2:
            continue
        order, model = node.inbox_head, node.inbox_tail
        both = at.slot(h, order).flag_bits & at.slot(h, model).flag_bits & at.BY_RULE
        is_pair = at.slot(h, order).kind == 0 and at.slot(h, model).kind == at.FIRST_MODEL_KIND
        if not both or not is_pair or at.slot(h, model).round_number != round_number:
            continue
        show(h, 2 * count, order)
        show(h, 2 * count + 1, model)
        at.output(h, 2 * count).sender = at.output(h, 2 * count + 1).sender = node_number
        finish(h, order, DELIVERED, 0)
        finish(h, model, DELIVERED, 0)
        node.inbox_head = node.inbox_tail = -1
        node.inbox_count = 0
        count += 1
    return count
