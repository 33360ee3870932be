"""One thread for products of small blocks: waiting for another at every block costs more than it computes.

Blocks are independent, so each is computed by one thread, and several blocks at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
            under_way: deque[Future[Found]] = deque()
            for part in parts:
                under_way.append(pool.submit(work, part))
                # Few at a time: what is computed long before its turn would only take memory.
                if len(under_way) > threads:
                    yield under_way.popleft().result()
            for last in under_way:
                yield last.result()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limits BLAS to one thread; results then do not depend on the number of cores either."""
    found: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return found


@cache
def _controller() -> Any:
    # Searching the loaded libraries takes a millisecond, a round's linkage of small models less than that.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
