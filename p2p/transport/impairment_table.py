"""The table of active impairments that the event core reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2p.random_streams import name_word
from p2p.transport.core import layout as at
from p2p.transport.core.memory import Memory
from p2p.transport.impairments import Bursts, Impairment, Partition

_TYPES = {"corrupt": at.CORRUPT, "duplicate": at.DUPLICATE, "reorder": at.REORDER}


class ImpairmentTable:
    """The active impairments of a run, written into the core's memory whenever one begins or ends."""

    def __init__(self, memory: Memory, seed: int) -> None:
        self._memory, self._seed = memory, seed
        self._active: list[Impairment] = []

    def begin(self, one: Impairment) -> int:
        """Activates an impairment and returns its index."""
        self._active.append(one)
        self._write()
        return len(self._active) - 1

    def end(self, one: Impairment) -> None:
        """Deactivates an impairment."""
        self._active.remove(one)
        self._write()

    def draw_bursts(self, sender: int, now_s: float) -> None:
        """Draws the states of a sender's links until they reach beyond `now_s`."""
        # Numbered in the order of `_write`, which lays out the burst states.
        bursts = [one for one in self._active if isinstance(one, Bursts)]
        for number, one in enumerate(bursts):
            self._write_state(number, sender, *one.state_at(sender, now_s))

    def _write(self) -> None:
        memory, count = self._memory, len(self._active)
        # Rewritten as a whole: faults are rare, and removal would otherwise leave holes in masks and burst states.
        memory.grow("impairments", count)
        masks = bursts = 0
        for place, one in enumerate(self._active):
            record: Any = memory.impairments[place]
            if isinstance(one, Partition):
                memory.add_mask(masks, one.one)
                memory.add_mask(masks + 1, one.other)
                record["type"], record["mask"], record["other"], record["both"] = (
                    at.PARTITION,
                    masks,
                    masks + 1,
                    one.both,
                )
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
