"""Python's collector of reference cycles, held back while a run makes millions of objects that live to its end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_RARELY = (200_000, 20, 50)


@contextmanager
def rarely_collected() -> Iterator[None]:
    """What exists now is not looked at, and what is new only now and then; as before afterwards.

    One inside another adds nothing. Afterwards everything counts as old: a search through all of it is due when much
    more has been made, not at once.
    """
    before = gc.get_threshold()
    if before == _RARELY:
        yield
        return
    gc.freeze()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*before)
        gc.unfreeze()
