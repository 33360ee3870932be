"""What a part of a system costs: a round with it against the same round without, one after the other, several times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from time import process_time
from typing import Any

from benchmarks.figures import Effort, Figure
from benchmarks.scenes import scene
from nodes.learning.objectives import OBJECTIVES
from scenarios.build import build
from scenarios.schema import Scenario


def _round_s(scenario: Scenario) -> float:
    """CPU seconds of the best round; the first warms up, and the last is measured."""
    simulation, marks = build(scenario), [process_time()]

    def mark(row: Mapping[str, Any]) -> None:
        marks.append(process_time())

    simulation.observer._listeners = [mark]
    simulation.run()
    spent = [after - before for before, after in pairwise(marks)]
    return min(spent[1:-1] if len(spent) > 2 else spent)


def _ratio(name: str, goal: float, plain: Scenario, other: Scenario, repetitions: int) -> Figure:
    # In turn, so that both have the same machine; the best of each counts.
    pairs = [(_round_s(plain), _round_s(other)) for _ in range(repetitions)]
    plain_s, other_s = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    detail = f"{other_s:.3f} s of CPU a round, without {plain_s:.3f} s"
    return Figure(name, other_s / plain_s, "times a plain round", goal, detail=detail)


def _plain(effort: Effort) -> Scenario:
    size = "small" if effort.quick else "mnist"
    return scene(size, rounds=2 if effort.quick else 4, clients=20, trained=14, leader=True, degree=5)


def objectives(effort: Effort) -> list[Figure]:
    """Every objective beside plain cross-entropy."""
    plain, found = _plain(effort), []
    for kind in sorted(set(OBJECTIVES) - {"cross_entropy"}):
        goal = 2.0 if kind.startswith("fednore") else 1.5
        other = replace(plain, objective=OBJECTIVES[kind]())
        found.append(_ratio(f"mnist, objective {kind}", goal, plain, other, 1 if effort.quick else 2))
    return found
