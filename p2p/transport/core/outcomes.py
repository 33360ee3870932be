"""Outcomes of messages: delivered, rejected, or lost and sent again (compiled)."""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import delist_down, free_slot, new_slot, push
from p2p.transport.core.fates import UNKNOWN_ADDRESS
from p2p.transport.core.layout import Handle

IN_FLIGHT, DELIVERED, LOST, REJECTED = 0, 1, 2, 3
REPLAY, CORRUPT = 8, 9


@kernel
def overhear(h: Handle, slot: int) -> None:
    """Lists a message that has passed, if there are listeners on the wire."""
    state = at.state(h)
    if state.listening:
        at.passed_slot(h, state.passed).value = slot
        state.passed += 1


@kernel
def count_out(h: Handle, round_number: int) -> None:
    """Decrements a round's count of open messages; zero is reported after all arrivals of the instant."""
    one, now_s = at.round_(h, round_number), at.state(h).now_s
    one.open -= 1
    if one.open == 0 and one.watched:
        push(h, now_s, at.ARRIVAL_RANK, at.LAST_NODE, round_number, round_number, at.DRAINED)


@kernel
def drained(h: Handle, round_number: int) -> int:
    """Reports that no message of a round is in flight, if that still holds."""
    one = at.round_(h, round_number)
    if one.open != 0 or not one.watched:
        return at.REACHED
    one.watched = 0
    return at.ROUND_DRAINED + (round_number << at.STATUS_BITS)


@kernel
def finish(h: Handle, slot: int, outcome: int, reason: int) -> None:
    """Gives a message its outcome; its row is written at the next flush of the message log."""
    state = at.state(h)
    message = at.slot(h, slot)
    message.state, message.outcome, message.reason = at.OVER, outcome, reason
    at.ended_slot(h, state.ended).value = slot
    state.ended += 1
    # A delivered message was counted when it reached the inbox, before it was opened.
    if outcome != DELIVERED or message.arrived_s != message.arrived_s:
        count_out(h, message.round_number)


@kernel
def lose(h: Handle, slot: int, reason: int) -> None:
    """Loses a message; its sender sends the identical bytes again after the timeout, if tries are left."""
    state = at.state(h)
    message = at.slot(h, slot)
    # Only messages that were due to arrive are listed on a downlink (see `begin_attempt`).
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
        # Before `finish` decrements: the round must not count as drained between two attempts.
        at.round_(h, message.round_number).open += 1
        push(h, again_s, at.START_RANK, message.sender, copy.row, again, at.START)
    finish(h, slot, LOST, reason)


@kernel
def vanish(h: Handle, slot: int) -> None:
    """Ends a message that has left and reaches no receiver: it is lost, or its address is unknown."""
    message, now_s = at.slot(h, slot), at.state(h).now_s
    message.left_bytes = int(message.size_bytes)
    overhear(h, slot)
    if message.fate == 0:
        message.arrived_s = now_s
        finish(h, slot, REJECTED, UNKNOWN_ADDRESS)
    else:
        lose(h, slot, message.fate)


@kernel
def settle(h: Handle, slot: int, outcome: int, reason: int) -> None:
    """Gives an outcome to a message that was handed to Python."""
    message = at.slot(h, slot)
    if outcome == LOST:
        message.fate = reason  # on no link any more, so `lose` must not delist it
        message.arrived_s = np.nan
        lose(h, slot, reason)
    else:
        finish(h, slot, outcome, reason)
        if outcome == DELIVERED:
            count_out(h, message.round_number)


@kernel
def release_unsent(h: Handle, slot: int) -> None:
    """Frees a message that never starts and so has no row."""
    free_slot(h, slot)
    count_out(h, at.slot(h, slot).round_number)
