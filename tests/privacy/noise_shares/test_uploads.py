"""Shared noise: its expansion from seeds, its variance when peers are lost, and colluding partners."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.random_streams import stream
from privacy.noise_shares.seed_expansion import address_number, expand_share, fast_normals
from privacy.noise_shares.uploads import ReceivedShare, Share, Upload, predicted_variance
from privacy.noise_shares.variance import collusion_quantile, collusion_tail, residual_variance
from topologies.round_graph import round_graph


def make(edges: list[tuple[int, int]], members: int, variance: float, tau: float, independent: float) -> list[Upload]:
    """Uploads of an exchange along these edges."""
    shares = {
        (a, b): Share(1, a, b, a, b, math.sqrt(variance), bytes([a, b]) + bytes(30)) for a, b in map(tuple, edges)
    }
    return [
        Upload(
            1,
            node,
            1.0,
            tuple(share for share in shares.values() if share.sender == node),
            tuple(
                ReceivedShare(share, tau, bytes([7, share.sender, node]) + bytes(29))
                for share in shares.values()
                if share.receiver == node
            ),
            math.sqrt(independent),
            bytes([node]) * 32,
        )
        for node in range(members)
    ]


@pytest.mark.parametrize("expansion", ["fast", "shake"])
def test_expansions_are_normal_and_named(expansion: Any) -> None:
    """Mean, variance, tails and correlations as of a normal; another round, end, index or seed is another draw."""
    seed = bytes(range(32))
    drawn = expand_share(expansion, seed, 3, 7, 12, 0, 100_001)
    assert drawn.shape == (100_001,)
    assert drawn.dtype == np.float64
    assert abs(drawn.mean()) < 0.015
    assert drawn.var() == pytest.approx(1.0, abs=0.02)
    assert np.mean(drawn**4) == pytest.approx(3.0, abs=0.15)
    assert np.mean(np.abs(drawn) > 3) == pytest.approx(0.0027, abs=0.0008)
    others = [
        (seed, 4, 7, 12, 0),
        (seed, 3, 8, 12, 0),
        (seed, 3, 7, 13, 0),
        (seed, 3, 7, 12, 1),
        (bytes(32), 3, 7, 12, 0),
    ]
    for other in others:
        assert abs(np.corrcoef(drawn, expand_share(expansion, *other, 100_001))[0, 1]) < 0.015
    assert (expand_share(expansion, seed, 3, 7, 12, 0, 100_001) == drawn).all()


def test_the_fast_expansion_keeps_its_vectors() -> None:
    """Both ends of two versions must agree: these numbers may not change."""
    found = fast_normals(bytes(range(32)), 3, 7, 12, 0, 4)
    assert found == pytest.approx([FAST[0], FAST[1], FAST[2], FAST[3]], abs=1e-6)
    assert address_number(bytes([1, 2, 0, 0, 9])) == 0x0201


FAST = (-0.414979398, -0.925267339, 1.035508275, -0.301782548)


@pytest.mark.slow
@given(st.integers(3, 9), st.integers(0, 1000), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_prediction_is_the_drop_out_table(members: int, seed: int, tau: float, lost: int) -> None:
    """For uploads of those who are left, with every share used, the two formulas agree."""
    degree = 1 + seed % (members - 1)
    edges = [(int(a), int(b)) for a, b in round_graph(np.arange(members), degree, stream(seed, "t"))]
    gone = set(range(min(lost, members - 1)))
    uploads = [upload for upload in make(edges, members, 0.04, tau, 0.0) if upload.node not in gone]
    assert predicted_variance(uploads) == pytest.approx(residual_variance(edges, gone, 0.04, tau), rel=1e-9, abs=1e-12)


@pytest.mark.slow
def test_quantiles_of_colluding_partners() -> None:
    """The least count that is exceeded with at most the remaining probability."""
    count = collusion_quantile(99, 40, 7, 0.95)
    assert collusion_tail(99, 40, 7, count + 1) <= 0.05 < collusion_tail(99, 40, 7, count)
