"""Clipping and noise on rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from scipy import stats

from p2p.random_streams import stream
from privacy.calibration.noise_plan import PlanContext
from privacy.mechanisms.clip_and_noise import NoClip, clip_rows, row_norms
from privacy.stages.api import ReleaseBatch, Update, UpdateShape
from privacy.stages.gaussian import Gaussian
from privacy.stages.release_plan import plan_stages

ROWS = arrays(np.float32, array_shapes(min_dims=2, max_dims=2), elements=st.floats(-(2.0**100), 2.0**100, width=32))


@pytest.mark.slow
@given(ROWS, st.floats(1e-3, 1e6))
def test_no_row_is_longer_than_the_bound(rows: NDArray[np.float32], bound: float) -> None:
    """After clipping every norm is at most C, rounding included; short rows are untouched."""
    before = rows.copy()
    norms = clip_rows(rows, bound)
    assert (row_norms(rows) <= bound).all()
    short = norms <= bound
    np.testing.assert_array_equal(rows[short], before[short])


def test_clipping_keeps_the_direction() -> None:
    """A row of norm 5 becomes one of norm 1 with the same angle."""
    rows = np.array([[3.0, 4.0]], dtype=np.float32)
    assert clip_rows(rows, 1.0).tolist() == [5.0]
    np.testing.assert_allclose(rows, [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_broken_update_becomes_zero(broken: float) -> None:
    """What is not finite carries no bound, so nothing of it leaves."""
    rows = np.array([[1.0, broken], [0.5, 0.5]], dtype=np.float32)
    clip_rows(rows, 1.0)
    np.testing.assert_array_equal(rows, [[0.0, 0.0], [0.5, 0.5]])


def noised(stds: Sequence[float], nodes: Sequence[int], dimension: int) -> NDArray[np.float32]:
    """Zeros with the noise of some clients, of which each has its own deviation."""
    stds_of = np.asarray(stds)
    rows, stage = Update(np.zeros((len(nodes), dimension), np.float32)), Gaussian(sigma=1.0)
    context = PlanContext(
        clients=len(stds_of),
        train_per_round=1,
        exchange_with=None,
        rounds=1,
        records=np.ones(len(stds_of), np.int64),
        topology="central",
        shape=UpdateShape(dimension),
    )
    (planned,) = plan_stages((stage,), context)
    batch = ReleaseBatch(
        nodes=np.asarray(nodes),
        generators=[stream(7, "noise", node, 0) for node in nodes],
        round_number=1,
        rounds=1,
        records=np.ones(len(nodes), np.int64),
        seed=7,
        rate=1.0,
        models=rows.rows,
        memory={},
    )
    return planned.stage.apply(rows, replace(planned.declared, std=stds_of), batch).rows


def test_noise_depends_on_its_own_stream_alone() -> None:
    """A row gets the same noise alone and in a batch."""
    stds = [1.0, 2.0, 0.5]
    together = noised(stds, [0, 1, 2], 7)
    for node in range(3):
        np.testing.assert_array_equal(noised(stds, [node], 7)[0], together[node])
    assert len(np.unique(together)) == together.size


def test_noise_is_normal_with_the_given_deviation() -> None:
    """Twenty thousand coordinates pass a Kolmogorov-Smirnov test; float32 stays float32."""
    rows = noised([3.0], [0], 20_000)
    assert rows.dtype == np.float32
    assert stats.kstest(rows[0] / 3.0, "norm").pvalue > 0.01


def test_nothing_to_do_does_nothing() -> None:
    """Zero deviation: the same numbers; no clipping bounds nothing."""
    assert not noised([0.0], [0], 5).any()
    assert NoClip().norm_bound == math.inf
