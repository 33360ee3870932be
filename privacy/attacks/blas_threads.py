"""One thread for products of small blocks: waiting for another at every block costs more than it computes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limits BLAS to one thread; results then do not depend on the number of cores either."""
    found: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return found


@cache
def _controller() -> Any:
    # Searching the loaded libraries takes a millisecond, a round's linkage of small models less than that.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
