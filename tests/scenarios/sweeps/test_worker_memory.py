"""The memory of a worker that runs many cells."""

from __future__ import annotations

import gc
import time
import weakref

import pytest

from p2p.gc_pause import gc_paused
from scenarios.sweeps.worker_memory import CycleCollector


class World:
    """Refers to itself, as the objects of a run do."""

    def __init__(self) -> None:
        self.me = self


def ended_run() -> weakref.ref[World]:
    """What a run leaves behind: a cycle in the oldest generation."""
    with gc_paused():
        return weakref.ref(World())


def test_what_a_cell_leaves_behind_is_freed() -> None:
    """Python's own thresholds would keep it."""
    collector, left = CycleCollector(), ended_run()
    assert left() is not None
    collector.after_cell()
    assert left() is None


def test_cells_that_follow_closely_share_a_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of twenty times its duration: collections take at most a twentieth of the time."""
    now_s, times = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])

    def collect() -> None:
        times.append(now_s[0])
        now_s[0] += 0.1

    monkeypatch.setattr(gc, "collect", collect)
    collector = CycleCollector()
    for _ in range(100):
        now_s[0] += 0.05
        collector.after_cell()
    assert 2 <= len(times) <= 3
    now_s[0] += 3.0
    collector.after_cell()
    assert times[-1] == pytest.approx(now_s[0] - 0.1)
