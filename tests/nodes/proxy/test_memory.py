"""What the proxy makes for a round is gone when the round is: a long run holds no more of it than a short one."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from benchmarks.scenes import scene
from scenarios.build import build

Note = Callable[[Mapping[str, Any]], None]
MADE_FOR_A_ROUND = [tracemalloc.Filter(True, f"*/nodes/{part}") for part in ("proxy/*", "messaging/*")]


@pytest.mark.slow
@pytest.mark.parametrize("leader", [False, True])
def test_rounds_that_are_over_hold_no_memory(leader: bool) -> None:
    """Without a single collection: rounds are freed as they end, since a run collects very rarely."""
    held: list[int] = []

    def note(row: Mapping[str, Any]) -> None:
        found = tracemalloc.take_snapshot().filter_traces(MADE_FOR_A_ROUND)
        held.append(sum(trace.size for trace in found.traces))

    world = scene("small", rounds=7, clients=60, trained=60, degree=3, leader=leader, learning="none", private=False)
    simulation = build(world, listeners=[note])
    gc.disable()
    tracemalloc.start()
    try:
        simulation.run()
    finally:
        tracemalloc.stop()
        gc.enable()
    # Allowed is what differs from round to round: neighbours, and who is late.
    assert max(held[2:]) < held[1] + 15_000, held
