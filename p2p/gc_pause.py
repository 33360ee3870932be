"""Tuning of Python's cyclic garbage collector for runs that create millions of long-lived objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# The default of 700 allocations per young collection would rescan objects that live until the end of the run, and so
# would a million: a run of 40,000 peers makes that many, and hardly any garbage.
_YOUNG, _OLDER = 10_000_000, 50
_WORTHWHILE, _RARER = 0.01, 10
"""A collection that frees less than this part of the new objects makes the next ones this many times rarer."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Excludes existing objects from collection and collects new ones rarely; restores the thresholds afterwards.

    Every object that survives is traversed once, half a microsecond each: for a million peers more than a tenth of a
    run. So a collection that finds hardly any garbage makes the next ones rarer. Nested use has no further effect.
    """
    if _make_rarer in gc.callbacks:
        yield
        return
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
    gc.callbacks.append(_make_rarer)
    try:
        yield
    finally:
        gc.callbacks.remove(_make_rarer)
        # Freezing and unfreezing moves all objects to the oldest generation. Without it, the first collection under
        # the restored thresholds would traverse everything the run has created.
        gc.freeze()
        gc.set_threshold(*before)
        gc.unfreeze()


def _make_rarer(phase: str, info: dict[str, int]) -> None:
    young = gc.get_threshold()[0]
    if phase == "stop" and info["generation"] == 0 and info["collected"] < _WORTHWHILE * young:
        gc.set_threshold(_RARER * young, _OLDER, _OLDER)
