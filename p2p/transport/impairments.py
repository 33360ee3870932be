"""Faults on messages that are active now: bursts of loss, partitions, corruption, duplication, reordering.

Each is a small object that a fault switches on and off; the event core applies it to every attempt that starts
meanwhile (p2p/transport/core/fates.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from p2p.config.distributions import rounded
from p2p.random_streams import stream

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
