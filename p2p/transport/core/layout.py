"""The memory layout of the event core: record types, codes, and accessors for kernels.

Kernels take one argument `h`, the handle table. Compiled, it is a pointer to the addresses of the arrays of `ARRAYS`,
in their order; uncompiled, it is a list of the arrays themselves. The accessors below hide the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from p2p.transport.core.compiled import copy_within, element_of, only_element_of
from p2p.transport.core.sharing_codes import FAIR as FAIR
from p2p.transport.core.sharing_codes import FIFO as FIFO
from p2p.transport.core.sharing_codes import IDEAL as IDEAL

Handle = Any
"""The handle table, as a pointer (compiled) or as a list of arrays."""


SLOT = np.dtype(
    [
        # What the solver reads comes first, so that it shares a cache line. Under fair sharing a flow ends when its
        # holder's service counter reaches `mark`; `up` and `down` are its limited links, or -1; `inside` has a bit
        # for each of them that is in the region being solved.
        ("mark", "f8"),
        ("rate", "f8"),
        ("new_rate", "f8"),
        ("holder", "i4"),
        ("new_holder", "i4"),
        ("up", "i4"),
        ("down", "i4"),
        ("stamp", "i4"),
        ("up_next", "i4"),
        ("down_next", "i4"),
        ("state", "i1"),
        ("fate", "i1"),
        ("inside", "i1"),
        ("fixed", "i1"),
        ("row", "i8"),
        ("size_bytes", "f8"),
        ("overhead", "i8"),
        ("sequence", "i8"),
        ("batch", "i8"),
        ("previous", "i8"),
        ("left_bytes", "i8"),
        ("sent_s", "f8"),
        ("left_s", "f8"),
        ("arrived_s", "f8"),
        ("delay_s", "f8"),
        ("extra_s", "f8"),
        ("give_up_s", "f8"),
        ("started_s", "f8"),
        ("held_up_s", "f8"),
        ("held_since_s", "f8"),
        ("sender", "i4"),
        ("receiver", "i4"),
        ("origin", "i4"),
        ("destination", "i4"),
        ("round_number", "i4"),
        ("place", "i4"),
        ("life", "i4"),
        ("destination_life", "i4"),
        ("route", "i4"),
        ("up_prev", "i4"),
        ("down_prev", "i4"),
        ("queue_next", "i4"),
        ("attempt", "i2"),
        ("flag_bits", "i2"),
        ("kind", "i1"),
        ("topic", "i1"),
        ("outcome", "i1"),
        ("reason", "i1"),
        ("bottleneck", "i1"),
        ("hop", "i1"),
        ("blocked", "i1"),
    ],
    align=True,
)
"""A message in flight: a row of the message table while it still changes. `queue_next` links a downlink's queue while
it moves, and the receiver's inbox once it has arrived; `up_next` also links the free slots. `delay_s` is latency and
jitter, `extra_s` what reordering adds; a message that needs its delay before it is known is `blocked`."""

LINK = np.dtype(
    [
        ("capacity", "f8"),
        # Bytes per flow that the link has served at `since_s`; all flows it holds advance at `level`.
        ("served", "f8"),
        ("since_s", "f8"),
        ("level", "f8"),
        ("load", "f8"),
        ("end_s", "f8"),
        # Scratch of the solver.
        ("room", "f8"),
        ("delta", "f8"),
        ("new_level", "f8"),
        ("head", "i4"),
        ("tail", "i4"),
        ("count", "i4"),
        ("held", "i4"),
        ("version", "i4"),
        ("touched", "i4"),
        ("unfixed", "i4"),
        ("queue_head", "i4"),
        ("queue_tail", "i4"),
        ("dirty", "i1"),
        ("slower", "i1"),
        ("pending", "i1"),
    ],
    align=True,
)
"""An access link: number 2 i is node i's uplink, 2 i + 1 its downlink. An uplink lists its messages that have not left
yet, a downlink those that will arrive and have not yet."""

NODE = np.dtype(
    [
        ("sequence", "i8"),
        ("life", "i4"),
        ("redirect", "i4"),
        # The wait of its process; `version` identifies the wait in the event queue.
        ("wait_topic", "i4"),
        ("wait_round", "i4"),
        ("needed", "i4"),
        ("got", "i4"),
        ("version", "i4"),
        # The call that it has not answered yet (round -1: none), the last one that arrived, the last one that it has
        # answered since it is up, and its rule: the round of its model (-1: none) and the last round that it may join.
        ("called_batch", "i8"),
        ("call_row", "i8"),
        ("called_s", "f8"),
        ("answer_delay_s", "f8"),
        ("call_round", "i4"),
        ("called_round", "i4"),
        ("caller", "i4"),
        # The round whose first model it fetches (-1: none), and which of its fetches that is.
        ("fetch_round", "i4"),
        ("fetches", "i4"),
        ("model_round", "i4"),
        ("last_round", "i4"),
        ("inbox_head", "i4"),
        ("inbox_tail", "i4"),
        ("inbox_count", "i4"),
        ("down", "i1"),
        ("relay", "i1"),
        ("attached", "i1"),
        ("due", "i1"),
        ("waking", "i1"),
        # A wake-up that was asked for while the node fetches its first model.
        ("held", "i1"),
        ("fetched", "i1"),
        # Whether it keeps messages that have overtaken their assignment.
        ("early", "i1"),
    ],
    align=True,
)

EVENT = np.dtype([("time_s", "f8"), ("key", "i8"), ("row", "i8"), ("what", "i4"), ("type", "i4")], align=True)
"""An entry of the event queue, ordered by (time_s, key, row); the key is rank and node."""

ROUND = np.dtype(
    [
        ("open", "i8"),
        # The latest hand-out of the first model in this round: its batch, when it ends at the earliest, how long a node
        # may take from the receipt of its order, the number that it reports, and until when a node has been given time
        # so far.
        ("orders", "i8"),
        ("closes_s", "f8"),
        ("lasts_s", "f8"),
        ("promised_s", "f8"),
        ("report", "i8"),
        ("first_from", "i4"),
        ("column", "i4"),
        ("watched", "i1"),
        ("closed", "i1"),
    ],
    align=True,
)
"""The number of a round's open messages, its column of `sessions`, and whether to report when none is left."""

IMPAIRMENT = np.dtype(
    [
        ("name", "u8"),
        ("length_name", "u8"),
        ("probability", "f8"),
        ("probability_bad", "f8"),
        ("delay_s", "f8"),
        ("type", "i4"),
        ("mask", "i4"),
        ("other", "i4"),
        ("both", "i4"),
        ("burst", "i4"),
    ],
    align=True,
)
"""An active fault on messages; `mask` and `other` are rows of `masks`, `burst` a row of the burst states."""

FILL = np.dtype([("value", "f8"), ("down", "i4"), ("what", "i4")], align=True)
"""An entry of the solver's heap: a link (what >= 0) or a flow (-1 - what) and the water level at which it is fixed."""

STATE = np.dtype(
    [
        ("now_s", "f8"),
        ("solve_s", "f8"),
        ("grid_s", "f8"),
        ("late_s", "f8"),
        ("next_s", "f8"),
        # Before `blocked_s` no message with an unknown delay can arrive: none is shorter than `least_delay_s`.
        ("blocked_s", "f8"),
        ("least_delay_s", "f8"),
        ("timeout_s", "f8"),
        ("loss", "f8"),
        ("loss_name", "u8"),
        ("jitter_name", "u8"),
        ("latency_name", "u8"),
        ("nodes", "i8"),
        ("rows", "i8"),
        ("events", "i8"),
        ("free_slot", "i8"),
        ("free_slots", "i8"),
        ("used_slots", "i8"),
        ("ended", "i8"),
        ("passed", "i8"),
        ("unfilled", "i8"),
        # How many messages of the process that resumes stand in the output buffer.
        ("taken", "i8"),
        # The receiver of the message that needs it at once, which is the first of the output buffer.
        ("receiver", "i8"),
        # The slot with which to go on copying messages under way.
        ("next_slot", "i8"),
        ("blocked", "i8"),
        ("dirty", "i8"),
        ("stamp", "i8"),
        ("sharing", "i8"),
        ("tries", "i8"),
        ("fail_fast", "i8"),
        ("listening", "i8"),
        ("impairments", "i8"),
        ("jittered", "i8"),
        ("hops", "i8"),
        ("layer_bytes", "i8"),
        # Answers to calls: whether Python sees each call first; their sizes, and what a refusal adds.
        ("calls_watched", "i8"),
        ("answer_bytes", "i8"),
        ("answer_overhead", "i8"),
        ("refusal_bytes", "i8"),
        # Reports of nodes that have fetched the first model.
        ("proxy", "i8"),
        ("report_bytes", "i8"),
        ("report_overhead", "i8"),
        # The operation that is asked for, and its arguments: `Memory.call` writes all of them at once.
        ("x", "f8"),
        ("operation", "i8"),
        ("a", "i8"),
        ("b", "i8"),
        ("c", "i8"),
        ("d", "i8"),
        # How long the arrays are that grow.
        ("room_slots", "i8"),
        ("room_events", "i8"),
        ("room_ended", "i8"),
        ("room_passed", "i8"),
        ("room_unfilled", "i8"),
        ("room_outputs", "i8"),
    ],
    align=True,
)
"""Counters and settings of the run; `late_s` is the largest delay of a start by the time grid, `next_s` a lower bound
on the time of the next event, valid until the core is entered again."""

INPUT = np.dtype(
    [
        ("receiver", "i8"),
        ("size_bytes", "f8"),
        ("overhead", "i8"),
        ("route", "i8"),
        ("delay_s", "f8"),
        ("fetch_life", "i8"),
    ],
    align=True,
)
"""A message to hand over; `route` is a row of `routes`, or -1. `fetch_life` is the receiver's life to which an order to
fetch the first model applies; -1 for all other messages."""

OUTPUT = np.dtype(
    [
        ("row", "i8"),
        ("batch", "i8"),
        ("place", "i8"),
        ("sequence", "i8"),
        ("sender", "i4"),
        ("round_number", "i4"),
        ("topic", "i4"),
        ("flag_bits", "i4"),
        ("life", "i8"),
        ("arrived_s", "f8"),
    ],
    align=True,
)
"""A message taken from an inbox; `life` is its sender's."""

LOGGED = np.dtype(
    [
        ("row", "i8"),
        ("previous", "i8"),
        ("size_bytes", "i8"),
        ("overhead_bytes", "i8"),
        ("left_bytes", "i8"),
        ("sent_s", "f8"),
        ("left_s", "f8"),
        ("arrived_s", "f8"),
        ("round", "i4"),
        ("sender", "i4"),
        ("receiver", "i4"),
        ("origin", "i4"),
        ("destination", "i4"),
        ("attempt", "i2"),
        ("corrupted", "i2"),
        ("kind", "i1"),
        ("outcome", "i1"),
        ("reason", "i1"),
        ("bottleneck", "i1"),
        ("used", "i1"),
    ],
    align=True,
)
"""A row of the message log, whose columns have the same names, and whether it was corrupted on this hop."""

DELAY = np.dtype(
    [("slot", "i8"), ("sender", "i8"), ("receiver", "i8"), ("pair_draw", "f8"), ("jitter_draw", "f8")], align=True
)
"""A message that needs a delay, with its random draws."""

NUMBER = np.dtype([("value", "i4")])
BYTE = np.dtype([("value", "u1")])
SECONDS = np.dtype([("value", "f8")])

DTYPES = {
    "state": STATE,
    "slots": SLOT,
    "links": LINK,
    "nodes": NODE,
    "events": EVENT,
    "rounds": ROUND,
    "inputs": INPUT,
    "outputs": OUTPUT,
    "logged": LOGGED,
    "delays": DELAY,
    "impairments": IMPAIRMENT,
    "fill": FILL,
    "ended": NUMBER,
    "passed": NUMBER,
    "unfilled": NUMBER,
    "routes": NUMBER,
    "dirty": NUMBER,
    "region": NUMBER,
    "border": NUMBER,
    "flows": NUMBER,
    "sessions": BYTE,
    "masks": BYTE,
    "burst_bad": BYTE,
    "burst_change": SECONDS,
}
"""The arrays behind a handle table, in this order."""
ARRAYS = tuple(DTYPES)


def _element(name: str) -> Callable[[Handle, int], Any]:
    return element_of(ARRAYS.index(name), DTYPES[name])


state = only_element_of(ARRAYS.index("state"), STATE)
slot, copy_slot = _element("slots"), copy_within(ARRAYS.index("slots"), SLOT)
event, copy_event = _element("events"), copy_within(ARRAYS.index("events"), EVENT)
entry, copy_entry = _element("fill"), copy_within(ARRAYS.index("fill"), FILL)
link, node, round_, impairment = _element("links"), _element("nodes"), _element("rounds"), _element("impairments")
input_, output, delay = _element("inputs"), _element("outputs"), _element("delays")
logged = _element("logged")
ended_slot, passed_slot, unfilled_slot = _element("ended"), _element("passed"), _element("unfilled")
dirty_link, region_link, border_link = _element("dirty"), _element("region"), _element("border")
free_flow, route = _element("flows"), _element("routes")
session, mask = _element("sessions"), _element("masks")
burst_bad, burst_change = _element("burst_bad"), _element("burst_change")

# States of a slot.
FREE = 0
WAITING = 1  # made in the core, will start at its event
QUEUED = 2  # behind others on a FIFO uplink
MOVING = 3  # bytes are leaving
TRANSIT = 4  # all bytes have left
INBOX = 5  # arrived, not opened yet
HANDED = 6  # arrived and handed to the receiver, which settles it later
OVER = 7  # has its outcome; the slot is freed once the message log has its row

# Flags of a message: handled on arrival; damaged on this hop; a copy; has a copy; damaged on an earlier hop;
# sent again even after its round has closed; answered by its receiver's rule.
IMMEDIATE = 1
CORRUPTED = 2
COPY = 4
DOUBLED = 8
CARRIED = 16
OUTLIVES = 32
CALL = 64
# An order to fetch the first model; and such an order, or a first model, that the receiver's rule has taken.
FETCH = 128
BY_RULE = 256

PENDING_ROW = 1 << 60
"""Added to the predecessor's row: identifies a message that waits to start and has no row of its own yet."""

WAKE_ROW = 1 << 61
"""Added to the version of a wait: at one node and instant, messages start before the process resumes."""

# The last four equal p2p.clock.Rank, which orders SimPy's events against these.
# Ranks at one instant. Bytes that have left by an instant have left before anything else happens in it.
LEFT_RANK = 0
SERVED_RANK = 1
FIRST_BYTE_RANK = 2
FAULT_RANK = 3
ARRIVAL_RANK = 4
DEADLINE_RANK = 5
START_RANK = 6
RANK_SHIFT = 40
LAST_NODE = (1 << RANK_SHIFT) - 1
"""Sorts after all nodes of its rank."""

# Types of events.
LINK_END = 0
LEFT = 1
SERVED = 2
FIRST_BYTE = 3
ARRIVE = 4
DRAINED = 5
DEADLINE = 6
WAKE = 7
START = 8
ANSWER = 9
FETCHED = 10
FETCH_LATE = 11

# Statuses that `advance` returns in the low bits; the other bits hold the node, slot or round concerned.
REACHED = 0  # no event is left before the given instant
WOKEN = 1  # the process of a node resumes
WOKEN_DUE = 2  # the same, and its deadline has come
ARRIVED = 3  # a message, by its slot, needs its receiver at once
ROUND_DRAINED = 4  # no message of a round is in flight
NEEDS_DELAY = 5  # slots of `unfilled` have no latency yet, and at least one of them needs it now
NEEDS_BURST = 6  # burst states have to be drawn beyond now for a sender
NEEDS_ROOM = 7  # an array is almost full
CALLED = 8  # a node is about to answer a call
FETCH_OVER = 9  # a node's time to fetch the first model is up
STATUS_BITS = 4

# Topics of control messages start here; message kinds have the numbers below.
FIRST_TOPIC = 16
TOPIC_NAMES = ("other", "register", "orders", "answer", "done")
ORDERS_TOPIC = FIRST_TOPIC + TOPIC_NAMES.index("orders")
ANSWER_TOPIC = FIRST_TOPIC + TOPIC_NAMES.index("answer")
DONE_TOPIC = FIRST_TOPIC + TOPIC_NAMES.index("done")
FIRST_MODEL_KIND = 1  # "bootstrap" in p2p/log/records.py
ANY_ROUND = -1
NO_TOPIC = -1

# Answers to calls: the reason in the low bits of `place`, above it the round of the model plus one.
JOINS, NO_MODEL, SPENT = 0, 1, 2
REFUSAL_BITS = 2
MADE = 0
"""Batches are numbered from 1. A message with this number or a lower one has no content of its own: its reader makes it
from the message, and the negated number may say more."""

# Impairments.
BURST = 0
PARTITION = 1
CORRUPT = 2
DUPLICATE = 3
REORDER = 4
