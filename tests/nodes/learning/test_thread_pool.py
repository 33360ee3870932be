"""Sums in parallel parts are rounded alike, however many threads work on parts or inside BLAS."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from nodes.learning.thread_pool import run_parallel


@pytest.mark.parametrize("of_blas", [1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_of_parts_and_of_blas_change_no_bit(threads: int, of_blas: int) -> None:
    """BLAS splits long vectors among its threads, if it may, and then rounds otherwise."""
    vectors = np.random.default_rng(0).standard_normal((40, 50_000))
    with threadpool_limits(1, user_api="blas"):
        expected = [float(vector @ vector) for vector in vectors]
    found = [0.0] * len(vectors)

    def measure(place: int) -> None:
        found[place] = float(vectors[place] @ vectors[place])

    with threadpool_limits(of_blas, user_api="blas"):
        run_parallel(measure, range(len(vectors)), threads)
    assert found == expected
