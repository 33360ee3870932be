"""What an observer costs a run: rounds of a watched run against those of the same run unwatched, in CPU time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.figures import Effort, Figure
from benchmarks.scenes import scene
from nodes.adversaries.observers import PeerObserver
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario

GOAL = 1.10


def watching(effort: Effort) -> list[Figure]:
    """One peer of the round of 70 members with 50 neighbours each, vectors kept and written."""
    size = "small" if effort.quick else "mnist"
    plain = scene(size, rounds=3 if effort.quick else 6)
    watched = replace(plain, adversaries=(PeerObserver(who=3),))
    # Turn about and by pairs: other work on the machine slows both runs of a pair alike.
    pairs = [(_round_s(plain), _round_s(watched)) for _ in range(effort.repetitions)]
    ratios = [seen_s / alone_s for alone_s, seen_s in pairs]
    detail = f"{size}: median of {len(pairs)} pairs, {min(ratios):.2f} to {max(ratios):.2f}; files included"
    return [Figure("a round watched by one peer", median(ratios), "times unwatched", GOAL, detail=detail)]


def _round_s(scenario: Scenario) -> float:
    """Returns the CPU seconds of a round after the first, which warms up; files written at the end count too."""
    marks: list[float] = []

    def mark(row: Mapping[str, Any]) -> None:
        marks.append(time.process_time())

    with TemporaryDirectory() as folder:
        run_scenario(scenario, Path(folder) / "run", listeners=[mark])
    return (time.process_time() - marks[0]) / (len(marks) - 1)
