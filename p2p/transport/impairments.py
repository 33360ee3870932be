"""Impairments of messages: bursts of loss, partitions, corruption, duplication, reordering.

Faults activate and deactivate them; the event core applies the active ones to every attempt that starts
(p2p/transport/core/fates.py).
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
    """Blocks messages from nodes of `one` to nodes of `other`, and the reverse direction if `both`."""

    one: Mask
    other: Mask
    both: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """An impairment of each message of some senders, independently with a probability."""

    what: Literal["corrupt", "duplicate", "reorder"]
    name: str
    probability: float
    senders: Mask
    delay_s: float = 0.0
    """For `reorder`: the longest extra delay."""


@dataclass(slots=True, eq=False)
class Bursts:
    """Gilbert-Elliott loss: each sender's link alternates between a good and a bad state of random lengths.

    The states of a sender are drawn as far as needed, from a stream of its own, so they do not depend on its traffic.
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
        """Returns when a sender's link changes next, and whether it is in its bad state now."""
        if sender not in self._generators:
            self._generators[sender] = stream(self.seed, self.name, sender)
        # "Bad until the start": the first pass of the loop flips it, so every link begins in its good state.
        change_s, bad = self._states.get(sender, (self.start_s, True))
        while change_s <= now_s:
            bad = not bad
            mean_s = self.mean_bad_s if bad else self.mean_good_s
            # The added nanosecond keeps intervals positive after rounding, so that the loop ends.
            lasts_s = float(rounded(np.array(self._generators[sender].exponential(mean_s)), "s")) + 1e-9
            change_s += lasts_s
        self._states[sender] = (change_s, bad)
        return change_s, bad

    def known_states(self) -> dict[int, tuple[float, bool]]:
        """Returns the states drawn so far, by sender."""
        return self._states


Impairment = Partition | Chance | Bursts
