"""What is written while a run goes on, so that a killed one leaves a usable prefix and can be resumed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from scenarios.build import Simulation
from scenarios.checkpoint import Checkpoint, EventChain, write_checkpoint
from scenarios.folder import RunFolder
from scenarios.resume import Replay, learnt

REST = 12
"""Writing is followed by so many times as long without it: rounds that close meanwhile are written together."""


class Journal:
    """Writes part files and a checkpoint when a round has closed; compares instead while a resumed run is replayed.

    From its making on the checkpoint on disk says which life this process draws its keys in: they must not be drawn
    again, even if no further round is reached.

    Guarantees:
        The first round is written when it closes, if others follow. After that a killed run loses at most the round
        under way and what had closed within 12 times as long as the last writing took: short rounds wait for one
        another. The last round is written with the whole tables, which follow it.
    """

    def __init__(
        self,
        simulation: Simulation,
        folder: RunFolder,
        start: Checkpoint,
        wall_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._simulation, self._folder, self._start, self._wall_s = simulation, folder, start, wall_s
        self._chain = EventChain()
        self._rests_until_s = -np.inf
        self.replay = Replay(simulation, start)
        if not self.replay.under_way:
            folder.reopen(start.round_number)
        write_checkpoint(folder.path, start)

    def close_round(self, round_number: int) -> None:
        """Called once per round, at its end."""
        log, is_last = self._simulation.log, round_number == self._simulation.scenario.rounds
        if is_last and not self.replay.under_way:
            return
        chain = self._chain.extend(log)
        if self.replay.under_way:
            self._folder.skip_part(log)
            self.replay.check(round_number, chain)
            if not self.replay.under_way:
                self._folder.reopen(round_number)  # not before: until here the folder holds more than this process
            return
        import pyarrow.parquet  # noqa: F401  # once, and not in the time that writing takes

        began_s = self._wall_s()
        if began_s < self._rests_until_s:
            return
        self._folder.write_part(log, round_number)
        arrays = learnt(self._simulation)
        write_checkpoint(self._folder.path, replace(self._start, round_number=round_number, chain=chain, arrays=arrays))
        ended_s = self._wall_s()
        self._rests_until_s = ended_s + REST * (ended_s - began_s)
