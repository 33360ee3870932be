"""One thread for products of small blocks: waiting for another at every block costs more than it computes.

Blocks are independent, so each is computed by one thread, and several blocks at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

Part = TypeVar("Part")
Found = TypeVar("Found")


def block_by_block(work: Callable[[Part], Found], blocks: Iterable[Part], threads: int) -> Iterator[Found]:
    """Yields what `work` returns for each block, in order, so that sums over it do not depend on `threads`."""
    parts = list(blocks)
    with one_blas_thread():
        # A pool takes longer to start than a single block to compute.
        if len(parts) < 2 or threads < 2:
            yield from map(work, parts)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(work, parts)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limits BLAS to one thread; results then do not depend on the number of cores either."""
    found: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return found


@cache
def _controller() -> Any:
    # Searching the loaded libraries takes a millisecond, a round's linkage of small models less than that.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
