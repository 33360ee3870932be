"""Tuning of Python's cyclic garbage collector for runs that create millions of long-lived objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# The default of 700 allocations per young collection would rescan objects that live until the end of the run.
_THRESHOLDS = (1_000_000, 50, 50)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Excludes existing objects from collection and collects new ones rarely; restores the thresholds afterwards.

    Nested use has no further effect.
    """
    before = gc.get_threshold()
    if before == _THRESHOLDS:
        yield
        return
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        # Freezing and unfreezing moves all objects to the oldest generation. Without it, the first collection under
        # the restored thresholds would traverse everything the run has created.
        gc.freeze()
        gc.set_threshold(*before)
        gc.unfreeze()
