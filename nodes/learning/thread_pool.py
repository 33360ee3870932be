"""Runs independent parts of a computation in parallel on several cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from privacy.blas_threads import one_blas_thread

Part = TypeVar("Part")


def run_parallel(work: Callable[[Part], None], parts: Iterable[Part], threads: int) -> None:
    """Runs `work` on all parts, each on one core; results do not depend on the number of threads."""
    import torch

    def without_grad(part: Part) -> None:
        with torch.no_grad():
            work(part)

    tasks = list(parts)
    # Torch and BLAS split sums differently for different thread counts, which would change the rounding. BLAS also
    # takes many times as long for one vector if its threads must wait for those that run here.
    with one_torch_thread(), one_blas_thread():
        if len(tasks) < 2 or threads < 2:
            list(map(without_grad, tasks))
            return
        with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
            list(pool.map(without_grad, tasks))  # `list` waits for all parts and raises their errors


def chunks(count: int, size: int) -> list[slice]:
    """Splits `range(count)` into slices of at most `size`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Computes with one thread of torch: results do not depend on the machine's number of cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
