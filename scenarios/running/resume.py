"""Resumes an interrupted run: events are replayed with learning paused, which is restored at the last saved round.

Events are deterministic and cheap without learning, so only the learning state is stored. The replay seals with the
keys of a new incarnation, because under the same stream names it seals other plaintexts (zeros).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.learning.carried_memory import MASK, MOMENTUM
from nodes.learning.deferred_learning import LearningState
from p2p.config.errors import UserError
from scenarios.composition.simulation import Simulation
from scenarios.observing.observer import FIGURES, Figures
from scenarios.run_folder.atomic_write import make_folder
from scenarios.running.checkpoint import Arrays, Checkpoint

_WHATS = ("release", "model", MOMENTUM, MASK)
_MEMORY = "memory_"


class Replay:
    """Replays the rounds a resumed run has completed before; there are none in a new run."""

    def __init__(self, simulation: Simulation, checkpoint: Checkpoint) -> None:
        self._simulation, self._checkpoint = simulation, checkpoint
        self.under_way = checkpoint.round_number > 0
        if self.under_way and simulation.deferred_learning is not None:
            # Before pausing: the observer must not evaluate models that do not exist during the replay.
            simulation.observer.measured = _read_figures(checkpoint.part("figures"))
            simulation.losses.restore(checkpoint.part("schedule"))
            simulation.deferred_learning.pause()

    def check(self, round_number: int, chain: NDArray[np.uint8]) -> None:
        """Compares a closed round's events with the checkpoint; restores learning after the last replayed round.

        Raises:
            UserError: the events differ from those of the interrupted run.
        """
        # One link suffices, since it covers all links before it.
        if not np.array_equal(chain[-1], self._checkpoint.chain[round_number - 1]):
            raise _differs(f"in round {round_number}")
        if round_number == self._checkpoint.round_number:
            self.under_way = False
            self._restore_learning()

    def check_over(self) -> None:
        """Raises a `UserError` if the run has ended before all checkpointed rounds were replayed."""
        if self.under_way:
            raise _differs("and ended too early")

    def _restore_learning(self) -> None:
        learning, checkpoint = self._simulation.deferred_learning, self._checkpoint
        if learning is not None:
            learning.restore(_read_learning(checkpoint.part("learning")))
            self._simulation.observer.linkage.restore(checkpoint.part("linkage"))


def _differs(where: str) -> UserError:
    cure = "other version or machine? Resume where the run began, or start it anew into another folder"
    return UserError(f"--resume: the replay differs from the interrupted run {where}: {cure}")


def learnt(simulation: Simulation) -> dict[str, NDArray[Any]]:
    """Returns the learning state to save: models, vectors in flight, figures, and the linkage attack's state."""
    learning = simulation.deferred_learning
    if learning is None:
        return {}
    parts: dict[str, Arrays] = {
        "learning": _learning(learning.state()),
        "linkage": simulation.observer.linkage.state(),
        "figures": _figures(simulation.log.rounds),
        "schedule": simulation.losses.state(),
    }
    return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}


def _learning(state: LearningState) -> Arrays:
    names = sorted(state.given)
    rows = np.stack([state.given[name] for name in names]) if names else np.zeros((0, state.models.shape[1]), "<f4")
    # Names as integers: safetensors stores arrays only.
    numbers = [(_WHATS.index(what), first, second) for what, first, second in names]
    arrays: dict[str, NDArray[Any]] = {
        "models": state.models,
        "noise_numbers": state.noise_numbers,
        "given_names": np.array(numbers, dtype=np.int64).reshape(-1, 3),
        "given_rows": rows,
    }
    return arrays | {f"{_MEMORY}{name}": array for name, array in state.memory.items()}


def _read_learning(arrays: Arrays) -> LearningState:
    rows = arrays["given_rows"]
    # Messages share these vectors, so no receiver may change them.
    rows.flags.writeable = False
    names = [(_WHATS[what], first, second) for what, first, second in arrays["given_names"].tolist()]
    memory = {name.removeprefix(_MEMORY): array for name, array in arrays.items() if name.startswith(_MEMORY)}
    return LearningState(arrays["models"], arrays["noise_numbers"], dict(zip(names, rows, strict=True)), memory)


def _figures(rounds: list[dict[str, Any]]) -> Arrays:
    """Returns the figures of each round as arrays, with a mask of those that were measured.

    The mask is needed because a measured loss may itself be NaN.
    """
    table = [[row.get(name) for name in FIGURES] for row in rounds]
    values = np.array([[np.nan if value is None else value for value in row] for row in table], dtype=np.float64)
    known = np.array([[value is not None for value in row] for row in table], dtype=np.bool_)
    numbers = np.array([row["round"] for row in rounds], dtype=np.int64)
    each = [
        (row["round"], node, accuracy)
        for row in rounds
        for node, accuracy in zip(row.get("evaluated_nodes") or (), row.get("evaluated_accuracy") or (), strict=True)
    ]
    evaluated = np.array(each, dtype=np.float64).reshape(-1, 3)
    return {"rounds": numbers, "values": values, "known": known, "evaluated": evaluated}


def _read_figures(arrays: Arrays) -> Mapping[int, Figures]:
    rows = zip(arrays["rounds"].tolist(), arrays["values"].tolist(), arrays["known"].tolist(), strict=True)
    evaluated = arrays["evaluated"]
    return {
        number: {name: value if known else None for name, value, known in zip(FIGURES, values, knowns, strict=True)}
        | _evaluated(evaluated[evaluated[:, 0] == number])
        for number, values, knowns in rows
    }


def _evaluated(rows: NDArray[Any]) -> dict[str, Any]:
    if not len(rows):
        return {"evaluated_nodes": None, "evaluated_accuracy": None}
    return {"evaluated_nodes": rows[:, 1].astype(np.int64).tolist(), "evaluated_accuracy": rows[:, 2].tolist()}


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Locks the folder against a second process that resumes a run still in progress."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        yield
        return
    path = folder / "checkpoint" / "lock"
    make_folder(path.parent)
    # The operating system releases the lock when the process dies, so a killed run leaves no stale one.
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(f"--out = {folder}: another process is writing to it; let it finish or end it") from error
        yield
