"""The fate of one attempt of a message, decided when that attempt starts (compiled).

Every random number carries the message's name (kind, round, origin, sequence, attempt, destination, hop), so whether
one message is lost does not depend on which others are sent, nor on how they are batched.
"""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.layout import Handle
from p2p.transport.core.named_draws import mixed, uniform

# Codes of the reasons in p2p/log/records.py.
RANDOM, IN_BURST, PARTITIONED, SENDER_DOWN, RECEIVER_DOWN, UNKNOWN_ADDRESS = 1, 2, 3, 4, 5, 6


@kernel
def draw(h: Handle, slot: int, name: np.uint64) -> float:
    """Returns this attempt's random number in (0, 1) for the draw called `name`."""
    message = at.slot(h, slot)
    word = mixed(name, message.kind)
    word = mixed(word, message.round_number)
    word = mixed(word, message.origin)
    word = mixed(word, message.sequence)
    word = mixed(word, message.attempt)
    word = mixed(word, message.destination)
    # Only relayed hops carry the extra word, so that runs without relays keep their draws.
    if message.hop > 0:
        word = mixed(word, message.hop)
    return uniform(word)


@kernel
def draw_delays(h: Handle) -> int:
    """Writes the messages without a delay, and their draws, to the delay buffer; returns their number."""
    state, count = at.state(h), 0
    for place in range(state.unfilled):
        slot = at.unfilled_slot(h, place).value
        message = at.slot(h, slot)
        if message.delay_s == message.delay_s:
            continue
        delay = at.delay(h, count)
        delay.slot, delay.sender, delay.receiver = slot, message.sender, message.receiver
        # A pair has one latency for both directions.
        first, second = min(message.sender, message.receiver), max(message.sender, message.receiver)
        delay.pair_draw = uniform(mixed(mixed(state.latency_name, first), second))
        delay.jitter_draw = draw(h, slot, state.jitter_name) if state.jittered else 0.0
        count += 1
    return count


@kernel
def burst_due(h: Handle, sender: int) -> int:
    """Returns a burst whose state is not drawn up to now for this sender; -1 if there is none."""
    # Lengths of bursts are drawn in Python; the core asks before the attempt has changed anything.
    state = at.state(h)
    for place in range(state.impairments):
        one = at.impairment(h, place)
        known = one.burst * state.nodes + sender
        if (
            one.type == at.BURST
            and at.mask(h, one.mask * state.nodes + sender).value
            and at.burst_change(h, known).value <= at.state(h).now_s
        ):
            return one.burst
    return -1


@kernel
def cuts(h: Handle, place: int, sender: int, receiver: int) -> bool:
    """Returns whether a partition blocks messages between two nodes."""
    one, nodes = at.impairment(h, place), at.state(h).nodes
    # An address that no node has is on no side of the cut.
    if receiver < 0:
        return False
    if at.mask(h, one.mask * nodes + sender).value and at.mask(h, one.other * nodes + receiver).value:
        return True
    return (
        one.both != 0
        and at.mask(h, one.other * nodes + sender).value != 0
        and at.mask(h, one.mask * nodes + receiver).value != 0
    )


@kernel
def is_gone(h: Handle, slot: int) -> bool:
    """Returns whether the receiver is down, or has restarted since the message was sealed for its old keys."""
    message = at.slot(h, slot)
    receiver = at.node(h, message.receiver)
    # Only the destination of a payload needs the keys that it was sealed for; relays and control messages do not.
    sealed = message.kind != 0 and message.receiver == message.destination
    return receiver.down != 0 or (sealed and receiver.life != message.destination_life)


@kernel
def decide(h: Handle, slot: int) -> None:
    """Decides loss, extra delay and corruption of an attempt; a later reason for loss overrides an earlier one."""
    state = at.state(h)
    message = at.slot(h, slot)
    nodes = state.nodes
    message.fate, message.extra_s = 0, 0.0
    if state.loss > 0.0 and draw(h, slot, np.uint64(state.loss_name)) < state.loss:
        message.fate = RANDOM
    for place in range(state.impairments):
        one = at.impairment(h, place)
        if one.type == at.PARTITION:
            if cuts(h, place, message.sender, message.receiver):
                message.fate = PARTITIONED
            continue
        if not at.mask(h, one.mask * nodes + message.sender).value:
            continue
        if one.type == at.BURST:
            bad = at.burst_bad(h, one.burst * nodes + message.sender).value
            # A certain loss is a better reason than a probable one, whichever impairment began first.
            lost = draw(h, slot, one.name) < (one.probability_bad if bad else one.probability)
            if lost and message.fate != PARTITIONED:
                message.fate = IN_BURST
        elif one.type == at.CORRUPT:
            if not message.flag_bits & at.COPY and draw(h, slot, one.name) < one.probability:
                message.flag_bits |= at.CORRUPTED
        elif one.type == at.REORDER and draw(h, slot, one.name) < one.probability:
            # Rounded to nanoseconds like all durations.
            message.extra_s += np.rint(draw(h, slot, one.length_name) * one.delay_s * 1e9) / 1e9
    # Last: a receiver that is not there is the reason whatever else would have happened on the way.
    if message.receiver >= 0 and is_gone(h, slot):
        message.fate = RECEIVER_DOWN


@kernel
def is_doubled(h: Handle, slot: int) -> bool:
    """Returns whether this attempt is duplicated; copies are not duplicated again."""
    state = at.state(h)
    message = at.slot(h, slot)
    for place in range(state.impairments):
        one = at.impairment(h, place)
        if (
            one.type == at.DUPLICATE
            and at.mask(h, one.mask * state.nodes + message.sender).value
            and draw(h, slot, one.name) < one.probability
        ):
            return True
    return False
