"""Independent parts of one piece of arithmetic, side by side on several cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Part = TypeVar("Part")


def side_by_side(work: Callable[[Part], None], parts: Iterable[Part], threads: int) -> None:
    """Works on all parts, each on one core; what a part gives does not depend on how many run at once."""
    import torch

    def quietly(part: Part) -> None:
        with torch.no_grad():
            work(part)

    tasks = list(parts)
    with _one_torch_thread():
        if len(tasks) < 2 or threads < 2:
            list(map(quietly, tasks))
            return
        with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
            list(pool.map(quietly, tasks))


def cut(count: int, size: int) -> list[slice]:
    """The places up to `count` in slices of at most `size`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
