"""Python's collector of reference cycles, held back while a run makes millions of objects that live to its end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS_BETWEEN = 200_000


@contextmanager
def rarely_collected() -> Iterator[None]:
    """What exists now is not looked at, and what is new only now and then; as before afterwards."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
