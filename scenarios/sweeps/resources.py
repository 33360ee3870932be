"""What a cell needs: memory by the planner's estimate, and how many cells fit beside each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from p2p.config.errors import UserError
from scenarios.metrics.headline.number_format import bytes_text
from scenarios.planning.memory import estimate_memory, machine_bytes
from scenarios.planning.participation import Rehearsal
from scenarios.planning.problem_size import ProblemSize, shape_of
from scenarios.schema import Scenario
from scenarios.sweeps.grid import Cell

_SHARE = 0.8
"""Share of the machine's memory that cells may take together; the rest is for this process and the page cache."""


def largest_cell_bytes(cells: Sequence[Cell], data_dir: Path | None) -> int:
    """Returns the memory of the largest cell; seeds of one combination need equally much.

    Raises:
        UserError: names every combination that does not fit into this machine.
    """
    shapes: dict[str, ProblemSize] = {}
    needs: dict[str, tuple[int, Cell]] = {}
    for cell in cells:
        combination = f"{cell.base} {cell.settings}"
        if combination not in needs:
            needs[combination] = (_bytes(cell.scenario, shapes, data_dir), cell)
    most = machine_bytes()
    too_large = [
        f"{cell.label}: needs about {bytes_text(need)} of memory, there are {bytes_text(most)}; leave it out"
        for need, cell in needs.values()
        if need > most
    ]
    if too_large:
        raise UserError(too_large)
    return max((need for need, _ in needs.values()), default=1)


def worker_count(cell_bytes: int) -> int:
    """Returns how many cells run at once: as many as cores, if their memory suffices."""
    # Those that this process may use: a container or a batch system gives fewer than the machine has.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(_SHARE * machine_bytes() / max(cell_bytes, 1))))


def _bytes(scenario: Scenario, shapes: dict[str, ProblemSize], data_dir: Path | None) -> int:
    # A user's file is read to find out its size: once for all cells that use it.
    name = repr((scenario.data, scenario.model))
    if name not in shapes:
        shapes[name] = shape_of(scenario, data_dir)
    # Projecting the rounds of every combination would take longer than some cells.
    unprojected = Rehearsal(scenario.rounds, None, "", np.zeros(scenario.clients), None)
    return estimate_memory(scenario, shapes[name], unprojected)["total"]
