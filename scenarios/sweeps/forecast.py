"""What a sweep will cost: bytes and memory by the planner, CPU seconds by cells that have ended or by a probe."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.planning.plan import make_plan
from scenarios.planning.problem_size import ProblemSize, shape_of
from scenarios.schema import Scenario
from scenarios.sweeps.grid import Cell
from scenarios.sweeps.resources import largest_cell_bytes
from scenarios.sweeps.store import Store

_PROBE_ROUNDS = 2


def forecast(cells: Sequence[Cell], store: Store, data_dir: Path | None) -> list[dict[str, Any]]:
    """Returns one row per cell: its state, predicted CPU seconds, bytes and memory.

    Raises:
        UserError: names every combination that does not fit into memory.
    """
    store.refresh()
    largest_cell_bytes(cells, data_dir)
    plans: dict[str, Mapping[str, Any]] = {}
    problems: list[str] = []
    for cell in cells:
        name = _combination(cell)
        if name not in plans:
            try:
                plans[name] = make_plan(cell.scenario, data_dir=data_dir)
            except UserError as error:
                plans[name] = {}
                problems += [f"{cell.label}: {line}" for line in error.problems]
    if problems:
        raise UserError(problems)
    speeds = _speeds(cells, store, data_dir)
    return [_row(cell, plans[_combination(cell)], speeds[cell.base], store, data_dir) for cell in cells]


def _row(
    cell: Cell, plan: Mapping[str, Any], seconds_per_work: float, store: Store, data_dir: Path | None
) -> dict[str, Any]:
    done = store.summary(cell.key, look=False) is not None
    noted = store.state(cell.key)
    return {
        "cell": cell.label,
        "key": cell.key,
        "state": "done" if done else ("failed" if noted.get("state") == "failed" else "waiting"),
        "cpu_s": 0.0 if done else seconds_per_work * work(cell.scenario, shape_of(cell.scenario, data_dir)),
        "bytes": plan["bytes"]["total"]["sent"] if "total" in plan["bytes"] else None,
        "memory_bytes": plan["memory_bytes"]["total"],
    }


def _combination(cell: Cell) -> str:
    return f"{cell.base} {cell.settings}"


def work(scenario: Scenario, shape: ProblemSize) -> float:
    """Returns the work of a run in arbitrary units: records passed through the model, times its size, plus messages."""
    cohort, rounds = scenario.protocol.cohort_size, scenario.rounds
    messages = float(rounds * (scenario.clients + cohort * getattr(scenario.protocol, "exchange_with", 1)))
    if scenario.learning != "torch":
        return messages
    passes = cohort * getattr(scenario.training, "epochs", 1) * shape.records / scenario.clients
    # A multiply-add of the model costs far less than a message: the constant is that of the MLP 784-200-200-10,
    # 17 us for 199,210 numbers, beside some 10 us for a message.
    return messages + rounds * passes * shape.dimension / 120_000


def _speeds(cells: Sequence[Cell], store: Store, data_dir: Path | None) -> dict[str, float]:
    """Returns CPU seconds per unit of work of each base: of cells that have ended, else of the first rounds of one."""
    found: dict[str, float] = {}
    for base in dict.fromkeys(cell.base for cell in cells):
        mine = [cell for cell in cells if cell.base == base]
        known = [
            float(store.state(cell.key)["seconds"]) / work(cell.scenario, shape_of(cell.scenario, data_dir))
            for cell in mine
            if store.state(cell.key).get("state") == "done"
        ]
        found[base] = sum(known) / len(known) if known else _probe(mine[0].scenario, data_dir)
    return found


def _probe(scenario: Scenario, data_dir: Path | None) -> float:
    """Runs the first rounds in memory; building the world is left out."""
    from scenarios.build import build

    short = replace(scenario, rounds=min(_PROBE_ROUNDS, scenario.rounds))
    simulation = build(short, data_dir=data_dir, threads=1)
    # CPU time: other work on the machine does not change the forecast.
    began_s = time.process_time()
    simulation.run()
    # What the collection of the final model leaves pending is counted too: values are computed when they are read.
    if simulation.deferred_learning is not None:
        simulation.collected_model()
    return (time.process_time() - began_s) / work(short, shape_of(short, data_dir))
