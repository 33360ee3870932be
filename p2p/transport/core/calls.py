"""Calls: requests that their receiver's rule answers inside the core (compiled).

A call and its answer are two ordinary messages. A node answers while its process waits for orders and it does not fetch
the first model; a call that arrives otherwise is kept until then, and a newer one replaces it.
"""

from __future__ import annotations

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import pop, push
from p2p.transport.core.fates import burst_due
from p2p.transport.core.layout import Handle
from p2p.transport.core.outcomes import CORRUPT, DELIVERED, REJECTED, REPLAY, count_out, finish
from p2p.transport.core.starts import send_reply


@kernel
def queue_answer(h: Handle, node_number: int) -> None:
    """Queues the answer to a kept call as a start of this instant, if there is one; not while the node fetches."""
    node = at.node(h, node_number)
    if node.call_round >= 0 and node.fetch_round < 0:
        row = at.PENDING_ROW + node.call_row
        push(h, at.state(h).now_s, at.START_RANK, node_number, row, node_number, at.ANSWER)


@kernel
def take_call(h: Handle, slot: int) -> None:
    """Keeps a call at its receiver, unless it was damaged or is a copy of one that has arrived."""
    message = at.slot(h, slot)
    node = at.node(h, message.receiver)
    if message.flag_bits & (at.CORRUPTED | at.CARRIED):
        finish(h, slot, REJECTED, CORRUPT)
        return
    # A batch has one message for each receiver, so a second one of the same batch is a copy.
    if node.called_batch == message.batch:
        finish(h, slot, REJECTED, REPLAY)
        return
    finish(h, slot, DELIVERED, 0)
    # Batches are numbered in the order of hand-over: one that was overtaken on its way is outdated.
    if message.batch > node.called_batch:
        node.called_batch = message.batch
        node.call_round, node.call_row, node.caller = message.round_number, message.row, message.sender
        if node.wait_topic == at.ORDERS_TOPIC:
            queue_answer(h, message.receiver)
    count_out(h, message.round_number)


@kernel
def answer(h: Handle, node_number: int) -> None:
    """Sends the answer to a node's call: what its rule says, by the size of an acceptance or a refusal."""
    state, node = at.state(h), at.node(h, node_number)
    if node.call_round < 0:
        return
    refuses = at.NO_MODEL if node.model_round < 0 else (at.SPENT if node.call_round > node.last_round else at.JOINS)
    size_bytes = state.answer_bytes + (state.refusal_bytes if refuses != at.JOINS else 0)
    place = ((node.model_round + 1) << at.REFUSAL_BITS) + refuses
    round_number, caller = node.call_round, node.caller
    node.called_s, node.called_round, node.call_round = state.now_s, round_number, -1
    overhead = state.answer_overhead
    send_reply(h, node_number, caller, at.ANSWER_TOPIC, round_number, size_bytes, overhead, at.MADE, place)


@kernel
def answer_call(h: Handle, node_number: int, row: int) -> int:
    """Handles the instant of an answer: sends it, or reports the call first if Python asked for that."""
    node = at.node(h, node_number)
    # A crash, a newer call or other orders of this instant may have come before.
    if node.call_round < 0 or row != at.PENDING_ROW + node.call_row or node.wait_topic != at.ORDERS_TOPIC:
        pop(h)
        return at.REACHED
    if burst_due(h, node_number) >= 0:
        return at.NEEDS_BURST + (node_number << at.STATUS_BITS)
    pop(h)
    if at.state(h).calls_watched:
        return at.CALLED + (node_number << at.STATUS_BITS)
    answer(h, node_number)
    return at.REACHED
