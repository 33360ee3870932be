"""The garbage collector during runs."""

from __future__ import annotations

import gc

from p2p.gc_pause import gc_paused


def test_collections_that_free_nothing_become_rarer_until_the_run_is_over() -> None:
    """A run keeps what it makes; looking through it again and again would find nothing."""
    before, callbacks = gc.get_threshold(), len(gc.callbacks)
    with gc_paused(), gc_paused():
        first = gc.get_threshold()[0]
        assert first > before[0]
        gc.collect(0)
        rarer = gc.get_threshold()[0]
        assert rarer > first
    assert gc.get_threshold() == before
    assert len(gc.callbacks) == callbacks


def test_collections_that_pay_stay_as_frequent() -> None:
    """Cycles that nothing refers to are freed, and the threshold stays."""
    with gc_paused():
        gc.collect(0)
        gc.set_threshold(1000, 50, 50)
        before = gc.get_threshold()[0]
        for _ in range(before // 2):
            cycle: list[object] = []
            cycle.append(cycle)
        gc.collect(0)
        assert gc.get_threshold()[0] == before
