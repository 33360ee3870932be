"""Writes part files and checkpoints during a run, so that a killed run leaves a usable prefix and can be resumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from scenarios.composition.simulation import Simulation
from scenarios.run_folder.writer import RunFolder
from scenarios.running.checkpoint import Checkpoint, EventChain, write_checkpoint
from scenarios.running.resume import Replay, learnt

REST = 12
"""Pause after each write, in multiples of its duration; rounds that close meanwhile are written together."""


class Journal:
    """Writes part files and a checkpoint when a round closes; during a replay it compares events instead.

    The constructor writes a checkpoint with the number of resumes, from which this process derives its keys: no later
    process may draw them again, even if this one completes no further round.

    Guarantees:
        The first round is written when it closes, if others follow. After that a killed run loses at most the round
        in progress and the rounds closed within 12 times the duration of the last write. The last round is written
        with the merged tables, which follow it.
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
        """Writes, skips or compares the round; called once per round, at its end."""
        self._write_observations(round_number)
        log, is_last = self._simulation.log, round_number == self._simulation.scenario.rounds
        # The merged tables follow at once and contain this round.
        if is_last and not self.replay.under_way:
            return
        chain = self._chain.extend(log)
        if self.replay.under_way:
            self._folder.skip_part(log)
            self.replay.check(round_number, chain)
            if not self.replay.under_way:
                # Not earlier: until here the folder holds more rounds than this process.
                self._folder.reopen(round_number)
            return
        # Imported before the clock starts, so that imports do not count as time spent writing.
        import pyarrow.parquet  # noqa: F401

        began_s = self._wall_s()
        # Still counted in the chain above, so the next checkpoint covers this round too.
        if began_s < self._rests_until_s:
            return
        self._folder.write_part(log, round_number)
        arrays = learnt(self._simulation)
        write_checkpoint(self._folder.path, replace(self._start, round_number=round_number, chain=chain, arrays=arrays))
        ended_s = self._wall_s()
        self._rests_until_s = ended_s + REST * (ended_s - began_s)

    def _write_observations(self, round_number: int) -> None:
        """Writes what observers saw, every round: a checkpoint relies on the parts of all rounds before it."""
        recorder = self._simulation.observer.recorder
        if recorder is None:
            return
        seen = recorder.take()
        # During a replay the folder holds these parts, with vectors that the replay does not have.
        if not self.replay.under_way:
            self._folder.write_observations(seen, round_number)

    def end_observations(self) -> Mapping[str, Mapping[str, Any]]:
        """Writes what observers saw after the last round; returns what each file says about itself."""
        recorder = self._simulation.observer.recorder
        if recorder is None:
            return {}
        recorder.finish(self._simulation.log)
        self._folder.write_observations(recorder.take(), self._simulation.scenario.rounds + 1)
        return recorder.headers()
