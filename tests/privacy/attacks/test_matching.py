"""Similarities in blocks of columns are those of whole matrices, whatever rows are broken."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from p2p.random_streams import stream
from privacy.attacks.matching import (
    Preparation,
    Seen,
    as_sent,
    centred,
    column_blocks,
    cosines_by_preparation,
    whitened,
)
from privacy.attacks.tracks import Directions

Doubles = NDArray[np.float64]
WIDTH = 30_000


def whole_matrix(vectors: NDArray[np.float32], prepared: Preparation) -> Doubles:
    """What each preparation promises, in double precision and without blocks; broken rows are zero."""
    rows = vectors.astype(np.float64)
    whole = np.isfinite((rows**2).sum(axis=1))
    rows[~whole] = 0.0
    if prepared is not as_sent:
        rows[whole] -= rows[whole].mean(axis=0)
    if prepared is whitened:
        rows[whole] /= rows[whole].std(axis=0)
    return rows


def reference(targets: Doubles, candidates: Doubles) -> Doubles:
    lengths = np.outer(np.linalg.norm(targets, axis=1), np.linalg.norm(candidates, axis=1))
    products: Doubles = targets @ candidates.T
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


def rounds(broken: bool) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Two rounds of clients with parts of their own, a large common part, and coordinates of unequal scale."""
    rng = stream(0, "matching")
    scale, own = rng.exponential(size=WIDTH), rng.standard_normal((23, WIDTH))
    one, two = (scale * (own + 20 * rng.standard_normal(WIDTH) + rng.standard_normal((23, WIDTH))) for _ in range(2))
    if broken:
        one[3, 7], two[5, -1], two[0] = np.nan, np.inf, 0.0
    return one.astype(np.float32), two.astype(np.float32)


@pytest.mark.parametrize("prepared", [as_sent, centred, whitened])
@pytest.mark.parametrize("broken", [False, True])
def test_blocks_give_the_cosines_of_whole_matrices(prepared: Preparation, broken: bool) -> None:
    """Several blocks, a last one that is shorter, and rows that are not finite."""
    one, two = rounds(broken)
    assert len(list(column_blocks(one))) >= 3
    expected = reference(whole_matrix(one, prepared), whole_matrix(two, prepared))
    assert cosines_by_preparation(one, two, [prepared])[0] == pytest.approx(expected, abs=2e-6)


def test_blocks_cover_every_column_once() -> None:
    """Also of rows that are wider or more numerous than a block."""
    for shape in ((1, 5), (3, 100_000), (5_000, 300)):
        vectors = np.zeros(shape, dtype=np.float32)
        columns = np.concatenate([np.arange(shape[1])[block] for block in column_blocks(vectors)])
        assert columns.tolist() == list(range(shape[1]))


def test_directions_have_no_mean_and_length_one() -> None:
    """But for rows that are broken, which have no direction."""
    seen = Seen([b""] * 23, rounds(broken=True)[0], np.ones(23))
    parts = np.concatenate([part for _, part in Directions.of(seen).blocks()], axis=1)
    expected = np.ones(23)
    expected[3] = 0.0
    assert np.linalg.norm(parts, axis=1) == pytest.approx(expected, abs=1e-5)
    centre = whole_matrix(seen.vectors, centred)
    lengths = np.maximum(np.linalg.norm(centre, axis=1), 1e-12)
    assert parts == pytest.approx(centre / lengths[:, None], abs=1e-6)


@pytest.mark.parametrize("broken", [False, True])
def test_neither_threads_nor_other_preparations_change_a_bit(broken: bool) -> None:
    """Blocks are computed by several threads and added up in order."""
    one, two = rounds(broken)
    assert len(list(column_blocks(one))) >= 3
    every: list[Preparation] = [as_sent, centred, whitened]
    for threads in (1, 2, 5):
        found = cosines_by_preparation(one, two, every, threads)
        for prepared, scores in zip(every, found, strict=True):
            assert np.array_equal(scores, cosines_by_preparation(one, two, [prepared])[0])
