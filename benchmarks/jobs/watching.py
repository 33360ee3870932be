"""What an observer costs a run: rounds of a watched run against those of the same run unwatched, in CPU time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.figures import Effort, Figure
from benchmarks.scenes import scene
from nodes.adversaries.observers import Peer
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario

GOAL = 1.10


def watching(effort: Effort) -> list[Figure]:
    """One peer of the round of 70 members with 50 neighbours each, vectors kept and written."""
    size = "small" if effort.quick else "mnist"
    plain = scene(size, rounds=3 if effort.quick else 4)
    watched = replace(plain, adversaries=(Peer(who=3),))
    pairs = [(_round_s(plain), _round_s(watched)) for _ in range(1 if effort.quick else 2)]
    alone_s, seen_s = (min(times) for times in zip(*pairs, strict=True))
    detail = f"{size}: {seen_s:.3f} s of CPU against {alone_s:.3f} s"
    return [Figure("a round watched by one peer", seen_s / alone_s, "times unwatched", GOAL, detail=detail)]


def _round_s(scenario: Scenario) -> float:
    """Returns the CPU seconds of the best round after the first, which warms up."""
    marks: list[float] = []

    def mark(row: Mapping[str, Any]) -> None:
        marks.append(time.process_time())

    with TemporaryDirectory() as folder:
        run_scenario(scenario, Path(folder) / "run", listeners=[mark])
    return min(two - one for one, two in pairwise(marks))
