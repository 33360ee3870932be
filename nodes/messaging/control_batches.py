"""Control messages as batches for the network: their sizes, topics and urgency, and invitations with their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from nodes.messaging.control_messages import Answer, Control, Done, Register, is_urgent
from p2p.transport.messages import TOPICS, Answers, Batch, CallAnswer, Contents, Delivery, Note, topic_code
from privacy.anonymity.settings import Sealed
from privacy.sealing.message_sizes import message_size


def same_control(
    sender: int, nodes: Sequence[int], round_number: int, control: Control, give_up_s: float, sealed: Sealed
) -> Batch:
    """Returns one control message for each node."""
    size_bytes = message_size(control.payload_bytes, many=False, sealed=sealed)
    sizes = size_bytes, size_bytes - control.payload_bytes
    batch = Batch(sender, nodes, "control", round_number, *sizes, [control] * len(nodes), give_up_s)
    batch.topic, batch.immediate = topic_code(control.key)[0], is_urgent(control)
    return batch


def assignments(
    sender: int,
    nodes: Sequence[int],
    round_number: int,
    contents: Contents,
    payloads: Sequence[int],
    give_up_s: float,
    sealed: Sealed,
) -> Batch:
    """Returns for each node its assignment, of these payload bytes."""
    overhead_bytes = message_size(0, many=False, sealed=sealed)
    sizes = np.array(payloads, dtype=np.int64) + overhead_bytes
    batch = Batch(sender, nodes, "control", round_number, sizes, overhead_bytes, contents, give_up_s)
    batch.topic, batch.separate = TOPICS["orders"], True
    return batch


def answers_to_invitations(content: Callable[[CallAnswer], Answer], sealed: Sealed) -> Answers:
    """Returns the sizes of answers to an invitation; `content` makes one from what a node's rule said."""
    # Without sealing there are no keys, and answers are shorter.
    joins, refuses = (Answer(0, 0, why, sealed is not False) for why in ("", "declined"))
    size_bytes = message_size(joins.payload_bytes, many=False, sealed=sealed)
    return Answers(content, size_bytes, size_bytes - joins.payload_bytes, refuses.payload_bytes - joins.payload_bytes)


@cache
def registration_note(sealed: Sealed) -> Note:
    """Returns the form of registrations; the sender and its life tell all that they say."""
    payload_bytes = Register(0, sealed is not False).payload_bytes
    size_bytes = message_size(payload_bytes, many=False, sealed=sealed)
    # A registration concerns the entire run: it is retransmitted even after its nominal round has closed.
    return Note(TOPICS["register"], size_bytes, size_bytes - payload_bytes, outlives_round=True)


def read_registration(sealed: Sealed, delivery: Delivery) -> Register:
    """Makes a registration from its message."""
    return Register(delivery.sender, sealed is not False, delivery.life)


_EPOCH_BITS = 24


@cache
def report_note(sealed: Sealed, has_loss: bool) -> Note:
    """Returns the form of reports, which are sent as numbers: there is one for every member of a round."""
    payload_bytes = Done(0, 0, has_loss=has_loss).payload_bytes
    size_bytes = message_size(payload_bytes, many=False, sealed=sealed)
    return Note(TOPICS["done"], size_bytes, size_bytes - payload_bytes)


def report_number(done: Done) -> int:
    """Returns what a report says, as a number; its round and sender are those of the message."""
    flags = done.skipped + 2 * done.has_loss
    return ((done.model_round + 1) << _EPOCH_BITS + 2) + ((done.epoch + 1) << 2) + flags


def read_report(delivery: Delivery) -> Done:
    """Makes a report from its message."""
    number = -delivery.batch
    epoch = ((number >> 2) & ((1 << _EPOCH_BITS) - 1)) - 1
    model_round = (number >> _EPOCH_BITS + 2) - 1
    return Done(delivery.round_number, delivery.sender, model_round, bool(number & 1), epoch, bool(number & 2))
