"""What is written after every round, so that a killed run leaves a usable prefix and can be resumed."""

from __future__ import annotations

from dataclasses import replace

from scenarios.build import Simulation
from scenarios.checkpoint import Checkpoint, EventChain, write_checkpoint
from scenarios.folder import RunFolder
from scenarios.resume import Replay, learnt


class Journal:
    """Writes part files and a checkpoint when a round has closed; compares instead while a resumed run is replayed.

    From its making on the checkpoint on disk says which life this process draws its keys in: they must not be drawn
    again, even if no further round is reached.
    """

    def __init__(self, simulation: Simulation, folder: RunFolder, start: Checkpoint) -> None:
        self._simulation, self._folder, self._start = simulation, folder, start
        self._chain = EventChain()
        self.replay = Replay(simulation, start)
        write_checkpoint(folder.path, start)

    def close_round(self, round_number: int) -> None:
        """Called once per round, at its end."""
        log = self._simulation.log
        chain = self._chain.extend(log)
        if self.replay.under_way:
            self._folder.skip_part(log)
            self.replay.check(round_number, chain)
            return
        self._folder.write_part(log, round_number)
        arrays = learnt(self._simulation)
        write_checkpoint(self._folder.path, replace(self._start, round_number=round_number, chain=chain, arrays=arrays))
