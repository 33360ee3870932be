"""Max-min fair sharing of access links, kept up to date as flows start and end (compiled).

An allocation is max-min fair if every flow has a bottleneck: a saturated link on which no flow is faster. That link
holds the flow. All flows that one link holds have one rate, the link's level, so the link keeps one service counter
(bytes per flow so far) and one pending event; a flow ends when the counter reaches its mark.

After a change only a region of links is re-solved. It starts with the links that were touched. The flows on its
links are free, except that a flow held by a link outside keeps at most its rate. After filling, a link outside joins
if its load exceeds its capacity, or if it holds flows and any flow over it became slower; until no link joins.
"""

from __future__ import annotations

import numpy as np

from p2p.transport.core import layout as at
from p2p.transport.core.compiled import kernel
from p2p.transport.core.event_queue import push
from p2p.transport.core.layout import Handle

_SIMULTANEOUS = 1e-13  # ends within this fraction of the time are one instant: the difference is rounding
_SLOWER = 1.0 - 1e-12
_FITS = 1.0 + 1e-12
_CLOSE = 1.0 - 1e-9  # incremental loads drift by rounding; this close to the capacity they are re-summed


@kernel
def touch(h: Handle, link: int) -> None:
    """Marks a limited link for the next solve, which happens once nothing more can change at this instant."""
    state = at.state(h)
    one = at.link(h, link)
    if one.dirty or one.capacity == np.inf:
        return
    if state.dirty == 0:
        state.solve_s = state.now_s
        if state.grid_s > 0.0:
            # On a time grid a change takes effect at the next grid point.
            number = np.floor(state.now_s / state.grid_s)
            # The quotient may be rounded down: a solve must not lie in the past.
            while number * state.grid_s < state.now_s:
                number += 1.0
            state.solve_s = number * state.grid_s
    one.dirty = 1
    at.dirty_link(h, state.dirty).value = link
    state.dirty += 1


@kernel
def served_by(h: Handle, link: int, now_s: float) -> float:
    """Returns a link's service counter (bytes per flow) at an instant."""
    one = at.link(h, link)
    return one.served + one.level * (now_s - one.since_s)


@kernel
def next_on(h: Handle, link: int, slot: int) -> int:
    """Returns the next flow of a link's list with bytes left to send; slot -1 asks for the first."""
    if link % 2 == 0:
        return at.link(h, link).head if slot < 0 else at.slot(h, slot).up_next
    slot = at.link(h, link).head if slot < 0 else at.slot(h, slot).down_next
    # Downlinks also list messages in transit, whose bytes have all left; uplinks do not.
    while slot >= 0 and at.slot(h, slot).state != at.MOVING:
        slot = at.slot(h, slot).down_next
    return slot


@kernel
def schedule_end(h: Handle, link: int) -> None:
    """Re-sums a link's load, and queues the end of the flow that finishes first."""
    one = at.link(h, link)
    soonest, load = np.inf, 0.0
    slot = next_on(h, link, -1)
    while slot >= 0:
        load += at.slot(h, slot).rate
        if at.slot(h, slot).holder == link and at.slot(h, slot).mark < soonest:
            soonest = at.slot(h, slot).mark
        slot = next_on(h, link, slot)
    one.load = load
    if soonest == np.inf or one.level <= 0.0:
        one.version += 1
        one.pending = 0
        return
    end_s = one.since_s + (soonest - one.served) / one.level
    # The queued event is still right to the bit; no outdated entry needs to stay in the heap.
    if one.pending and one.end_s == end_s:
        return
    one.version += 1
    one.pending, one.end_s = 1, end_s
    push(h, end_s, at.LEFT_RANK, link, one.version, link, at.LINK_END)


@kernel
def remaining(h: Handle, slot: int) -> float:
    """Returns the bytes of a flow that have not left yet."""
    message = at.slot(h, slot)
    if message.holder < 0:
        return message.mark
    left = message.mark - served_by(h, message.holder, at.state(h).now_s)
    return left if left > 0.0 else 0.0


@kernel
def bottleneck_of(h: Handle, slot: int) -> int:
    """Returns the link that held a flow for at least half of its time: 1 uplink, 2 downlink."""
    message, now_s = at.slot(h, slot), at.state(h).now_s
    held_up_s = message.held_up_s
    if message.holder >= 0 and message.holder % 2 == 0:
        held_up_s += now_s - message.held_since_s
    return 1 if 2.0 * held_up_s >= now_s - message.started_s else 2


@kernel
def sift_down(h: Handle, count: int, place: int) -> None:
    """Restores the heap order below an entry; ties go by direction, then number, so results are reproducible."""
    value, down, what = at.entry(h, place).value, at.entry(h, place).down, at.entry(h, place).what
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count:
            one, other = at.entry(h, child + 1), at.entry(h, child)
            if one.value < other.value or (
                one.value == other.value
                and (one.down < other.down or (one.down == other.down and one.what < other.what))
            ):
                child += 1
        below = at.entry(h, child)
        if value < below.value or (
            value == below.value and (down < below.down or (down == below.down and what <= below.what))
        ):
            break
        at.copy_entry(h, place, child)
        place = child
    at.entry(h, place).value, at.entry(h, place).down, at.entry(h, place).what = value, down, what


@kernel
def load_of(h: Handle, link: int, stamp: int) -> float:
    """Returns a link's load with the new rates, summed in the order of its list."""
    total = 0.0
    slot = next_on(h, link, -1)
    while slot >= 0:
        total += at.slot(h, slot).new_rate if at.slot(h, slot).stamp == stamp else at.slot(h, slot).rate
        slot = next_on(h, link, slot)
    return total


@kernel
def gather(h: Handle, first: int, count: int, found: int, stamp: int) -> int:
    """Adds the flows on region links `first` to `count` to the free flows; returns the new number of flows."""
    for place in range(first, count):
        link = at.region_link(h, place).value
        bit = 1 + link % 2
        slot = next_on(h, link, -1)
        while slot >= 0:
            message = at.slot(h, slot)
            if message.stamp != stamp:
                message.stamp, message.inside = stamp, 0
                at.free_flow(h, found).value = slot
                found += 1
            message.inside |= bit
            slot = next_on(h, link, slot)
    return found


@kernel
def fix(h: Handle, slot: int, rate: float, holder: int) -> None:
    """Fixes the rate of a flow, and subtracts it from the links of the region."""
    message = at.slot(h, slot)
    message.fixed, message.new_rate, message.new_holder = 1, rate, holder
    # Rounding may overdraw a link by a bit; room below zero would become a negative rate.
    if message.inside & 1:
        one = at.link(h, message.up)
        one.unfixed -= 1
        one.room = one.room - rate if one.room > rate else 0.0
    if message.inside & 2:
        one = at.link(h, message.down)
        one.unfixed -= 1
        one.room = one.room - rate if one.room > rate else 0.0


@kernel
def water_fill(h: Handle, count: int, flows: int) -> None:
    """Gives every free flow its rate by progressive filling: flows are fixed in the order of their levels."""
    entries = 0
    for place in range(count):
        link = at.region_link(h, place).value
        one, entry = at.link(h, link), at.entry(h, entries)
        one.room, one.unfixed, one.new_level = one.capacity, one.count, 0.0
        entry.value, entry.down, entry.what = one.room / one.unfixed, link % 2, link
        entries += 1
    for place in range(flows):
        slot = at.free_flow(h, place).value
        message = at.slot(h, slot)
        message.fixed = 0
        # A holder outside the region caps the flow at its present rate; with room for more it would have joined.
        if message.holder >= 0 and not message.inside & (1 + message.holder % 2):
            entry = at.entry(h, entries)
            # Before links of the same level (-1): what the cap leaves is shared by the link's other flows.
            entry.value, entry.down, entry.what = message.rate, -1, -1 - slot
            entries += 1
    for place in range(entries // 2 - 1, -1, -1):
        sift_down(h, entries, place)
    while entries > 0:
        value, what = at.entry(h, 0).value, at.entry(h, 0).what
        if what >= 0 and at.link(h, what).unfixed > 0:
            one = at.link(h, what)
            level = one.room / one.unfixed
            if level > value:
                # Some of its flows were fixed below its level, so its level has risen: re-queue it.
                at.entry(h, 0).value = level
                sift_down(h, entries, 0)
                continue
            one.new_level = value
            slot = next_on(h, what, -1)
            while slot >= 0:
                if at.slot(h, slot).fixed == 0:
                    fix(h, slot, value, what)
                slot = next_on(h, what, slot)
        elif what < 0 and at.slot(h, -1 - what).fixed == 0:
            fix(h, -1 - what, value, at.slot(h, -1 - what).holder)
        entries -= 1
        at.copy_entry(h, 0, entries)
        sift_down(h, entries, 0)


@kernel
def grow(h: Handle, count: int, flows: int, stamp: int) -> int:
    """Lets links at the border join the region; returns the new number of its links."""
    state = at.state(h)
    state.stamp += 1
    visit = state.stamp
    outside = 0
    for place in range(flows):
        message = at.slot(h, at.free_flow(h, place).value)
        change = message.new_rate - message.rate
        # With both links in the region, a flow does not reach its border.
        if change == 0.0 or message.inside == 3:
            continue
        link = message.down if message.inside & 1 else message.up
        if link < 0:
            continue
        one = at.link(h, link)
        if one.touched != visit:
            one.touched, one.delta, one.slower = visit, 0.0, 0
            at.border_link(h, outside).value = link
            outside += 1
        one.delta += change
        # Any slower flow leaves room for others, not only one that this link holds.
        if message.new_rate < message.rate * _SLOWER:
            one.slower = 1
    for place in range(outside):
        link = at.border_link(h, place).value
        one = at.link(h, link)
        joins = one.slower != 0 and one.held > 0
        if not joins and one.load + one.delta > one.capacity * _CLOSE:
            joins = load_of(h, link, stamp) > one.capacity * _FITS
        if joins:
            at.region_link(h, count).value = link
            count += 1
    return count


@kernel
def commit(h: Handle, count: int, flows: int) -> None:
    """Commits the new rates, and schedules each link's next end."""
    now_s = at.state(h).now_s
    for place in range(flows):
        slot = at.free_flow(h, place).value
        message = at.slot(h, slot)
        if message.new_rate != message.rate and message.inside != 3:
            link = message.down if message.inside & 1 else message.up
            if link >= 0:
                at.link(h, link).load += message.new_rate - message.rate
        message.rate = message.new_rate
        if message.holder != message.new_holder:
            # From here to the loop below `mark` is what is left; a flow that stays keeps its mark to the bit.
            message.mark = remaining(h, slot)
            if message.holder >= 0:
                at.link(h, message.holder).held -= 1
                if message.holder % 2 == 0:
                    message.held_up_s += now_s - message.held_since_s
            message.held_since_s = now_s
    for place in range(count):
        link = at.region_link(h, place).value
        one = at.link(h, link)
        # A counter begins at zero whenever its link holds nothing: small numbers keep their low bits.
        if one.new_level != one.level:
            one.served = served_by(h, link, now_s) if one.held > 0 else 0.0
            one.since_s, one.level = now_s, one.new_level
        elif one.held == 0:
            one.served, one.since_s = 0.0, now_s
    for place in range(flows):
        message = at.slot(h, at.free_flow(h, place).value)
        if message.holder != message.new_holder:
            message.mark += served_by(h, message.new_holder, now_s)
            message.holder = message.new_holder
            at.link(h, message.holder).held += 1
    for place in range(count):
        schedule_end(h, at.region_link(h, place).value)


@kernel
def solve(h: Handle) -> None:
    """Updates all rates that are affected by changes since the last solve."""
    state = at.state(h)
    state.stamp += 1
    stamp = state.stamp
    count = 0
    for place in range(state.dirty):
        one = at.link(h, at.dirty_link(h, place).value)
        one.dirty = 0
        if one.count > 0:
            at.region_link(h, count).value = at.dirty_link(h, place).value
            count += 1
        else:
            # The last flow has left: reset, so that rounding errors do not outlive a busy period.
            one.held, one.level, one.load = 0, 0.0, 0.0
            one.version += 1
            one.pending = 0
    state.dirty = 0
    flows = 0
    first = 0
    while count > first:
        # Each pass refills the whole region; it only grows, so the loop ends after at most all links.
        flows = gather(h, first, count, flows, stamp)
        water_fill(h, count, flows)
        first, count = count, grow(h, count, flows, stamp)
    if count > 0:
        commit(h, count, flows)


@kernel
def next_mark(h: Handle, link: int) -> float:
    """Returns the mark up to which flows of a link end now: the first, and all within the clock's resolution."""
    one = at.link(h, link)
    soonest = np.inf
    slot = next_on(h, link, -1)
    while slot >= 0:
        if at.slot(h, slot).holder == link and at.slot(h, slot).mark < soonest:
            soonest = at.slot(h, slot).mark
        slot = next_on(h, link, slot)
    return soonest + one.level * (_SIMULTANEOUS * at.state(h).now_s)


@kernel
def is_same_instant(time_s: float, now_s: float) -> bool:
    """Returns whether an end belongs to the present instant."""
    return time_s <= now_s + _SIMULTANEOUS * now_s


@kernel
def join(h: Handle, slot: int) -> None:
    """Adds a flow to its limited links; the next solve gives it a rate."""
    message, state = at.slot(h, slot), at.state(h)
    message.holder, message.rate, message.mark = -1, 0.0, float(message.size_bytes)
    message.held_up_s, message.held_since_s = 0.0, state.now_s
    message.up = message.down = -1
    if at.link(h, 2 * message.sender).capacity < np.inf:
        message.up = 2 * message.sender
        at.link(h, message.up).count += 1
    if message.fate == 0 and message.receiver >= 0 and at.link(h, 2 * message.receiver + 1).capacity < np.inf:
        message.down = 2 * message.receiver + 1
        at.link(h, message.down).count += 1
    # Touching one of its links is enough: the other joins the region if it is overloaded.
    touch(h, message.up if message.up >= 0 else message.down)
    if state.grid_s > 0.0 and state.solve_s - state.now_s > state.late_s:
        state.late_s = state.solve_s - state.now_s


@kernel
def part(h: Handle, slot: int) -> None:
    """Removes a flow from its links, at its end or abort; links that hold other flows are re-solved."""
    message = at.slot(h, slot)
    holder = message.holder
    if holder >= 0:
        at.link(h, holder).held -= 1
    for link in (message.up, message.down):
        if link >= 0:
            one = at.link(h, link)
            one.count -= 1
            one.load = one.load - message.rate if one.count > 0 else 0.0
            # A link that holds no flow had room before; more of it changes no rate.
            if one.held > 0:
                touch(h, link)
    message.holder, message.rate = -1, 0.0
    if at.state(h).grid_s > 0.0 and holder >= 0:
        # The solve may be far ahead; until then the link serves its other flows at the old level.
        schedule_end(h, holder)
