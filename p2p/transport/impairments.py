"""Faults on messages that are active now: bursts of loss, partitions, corruption, duplication, reordering.

Each is a small object that a fault switches on and off; the event core applies it to every attempt that starts
meanwhile (p2p/transport/fates.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from p2p.distributions import rounded
from p2p.streams import name_word, stream
from p2p.transport import layout as at
from p2p.transport.memory import Memory

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Messages from a node of `one` to a node of `other` do not pass, and back neither if `both`."""

    one: Mask
    other: Mask
    both: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """Something that happens to each message of some senders with a probability."""

    what: Literal["corrupt", "duplicate", "reorder"]
    name: str
    probability: float
    senders: Mask
    delay_s: float = 0.0
    """For `reorder`: the longest extra delay."""


@dataclass(slots=True, eq=False)
class Bursts:
    """Gilbert-Elliott loss: each sender's link alternates between a good and a bad state of random lengths.

    The state of a sender is drawn as far as it is needed: `change_s` is when it changes next.
    """

    name: str
    seed: int
    start_s: float
    mean_good_s: float
    mean_bad_s: float
    loss_good: float
    loss_bad: float
    senders: Mask
    _generators: dict[int, np.random.Generator] = field(default_factory=dict)
    _states: dict[int, tuple[float, bool]] = field(default_factory=dict)

    def state_at(self, sender: int, now_s: float) -> tuple[float, bool]:
        """When a sender's link changes next, and whether it is in its bad state now."""
        if sender not in self._generators:
            self._generators[sender] = stream(self.seed, self.name, sender)
        change_s, bad = self._states.get(sender, (self.start_s, True))
        while change_s <= now_s:
            bad = not bad
            mean_s = self.mean_bad_s if bad else self.mean_good_s
            lasts_s = float(rounded(np.array(self._generators[sender].exponential(mean_s)), "s")) + 1e-9
            change_s += lasts_s
        self._states[sender] = (change_s, bad)
        return change_s, bad

    def known_states(self) -> dict[int, tuple[float, bool]]:
        """The states drawn so far, by sender."""
        return self._states


Impairment = Partition | Chance | Bursts
_TYPES = {"corrupt": at.CORRUPT, "duplicate": at.DUPLICATE, "reorder": at.REORDER}


class Impairments:
    """The active impairments of a run, written into the core's memory whenever one begins or ends."""

    def __init__(self, memory: Memory, seed: int) -> None:
        self._memory, self._seed = memory, seed
        self._active: list[Impairment] = []

    def begin(self, one: Impairment) -> int:
        """Switches an impairment on; returns its place."""
        self._active.append(one)
        self._write()
        return len(self._active) - 1

    def end(self, one: Impairment) -> None:
        """Switches it off."""
        self._active.remove(one)
        self._write()

    def draw_bursts(self, sender: int, now_s: float) -> None:
        """Draws a sender's burst states beyond now."""
        bursts = [one for one in self._active if isinstance(one, Bursts)]
        for number, one in enumerate(bursts):
            self._write_state(number, sender, *one.state_at(sender, now_s))

    def _write(self) -> None:
        memory, count = self._memory, len(self._active)
        memory.grow("impairments", count)
        masks = bursts = 0
        for place, one in enumerate(self._active):
            record: Any = memory.impairments[place]
            if isinstance(one, Partition):
                memory.add_mask(masks, one.one)
                memory.add_mask(masks + 1, one.other)
                record["type"], record["mask"], record["other"], record["both"] = at.PARTITION, masks, masks + 1, one.both
                masks += 2
                continue
            memory.add_mask(masks, one.senders)
            record["mask"], record["name"] = masks, name_word(self._seed, one.name)
            masks += 1
            if isinstance(one, Bursts):
                record["type"], record["burst"] = at.BURST, bursts
                record["probability"], record["probability_bad"] = one.loss_good, one.loss_bad
                self._write_burst(bursts, one)
                bursts += 1
            else:
                record["type"], record["probability"] = _TYPES[one.what], one.probability
                record["delay_s"], record["length_name"] = one.delay_s, name_word(self._seed, f"{one.name}-length")
        memory.record["impairments"] = count

    def _write_burst(self, index: int, bursts: Bursts) -> None:
        memory, nodes = self._memory, len(self._memory.nodes)
        memory.grow("burst_change", (index + 1) * nodes)
        memory.grow("burst_bad", (index + 1) * nodes)
        # Minus infinity: not drawn yet.
        memory.burst_change["value"][index * nodes : (index + 1) * nodes] = -np.inf
        for sender, state in bursts.known_states().items():
            self._write_state(index, sender, *state)

    def _write_state(self, burst: int, sender: int, change_s: float, bad: bool) -> None:
        place = burst * len(self._memory.nodes) + sender
        self._memory.burst_change["value"][place] = change_s
        self._memory.burst_bad["value"][place] = bad
