"""Scores and matchings between the messages of two rounds: contents, arrival times, one-to-one assignment.

Nothing here knows a client. Scales are estimated from the scores themselves: most pairs are of different clients, so
medians over all pairs describe these, and the pairs of a one-to-one assignment are mostly those of equal clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.blas_threads import block_by_block

Matrix = NDArray[np.float32]
Scores = NDArray[np.float64]
Guess = NDArray[np.int64]
Rows = NDArray[np.bool_]
Preparation = Callable[[Matrix, Rows], Matrix]
"""What is done to a block of columns before rows are compared; the second argument are the rows that are whole."""
_BLOCK_FLOATS = 2**18
"""Size of a block of columns: 1 MiB, a share of a processor's own cache."""
_STEPS = 4
"""Alternations between matching and the estimate of scales."""
MAD = 1.4826
"""Ratio of the standard deviation to the median absolute deviation of a normal distribution."""
_TINY = 1e-12


class Seen(NamedTuple):
    """The distinct messages that an observer got in one round, with their arrival since the round began."""

    addresses: Sequence[bytes]
    vectors: Matrix
    times_s: NDArray[np.float64]


def column_blocks(vectors: Matrix) -> Iterator[slice]:
    """Yields slices of columns whose rows together fit into a processor's cache.

    Whole copies of a round's vectors cost ten times their arithmetic: every page of new memory is cleared first.
    """
    width = max(_BLOCK_FLOATS // max(len(vectors), 1), 64)
    for start in range(0, vectors.shape[1], width):
        yield slice(start, start + width)


def whole_rows(vectors: Matrix) -> Rows:
    """Returns which rows have a finite length; others, as in a diverged run, match nothing."""
    with np.errstate(over="ignore", invalid="ignore"):
        # `einsum` needs no temporary matrix.
        found: Rows = np.isfinite(np.einsum("ij,ij->i", vectors, vectors))
    return found


def as_sent(part: Matrix, whole: Rows) -> Matrix:
    """Returns a block of columns, rows that are not whole as zeros."""
    return part if whole.all() else np.where(whole[:, None], part, np.float32(0))


def centred(part: Matrix, whole: Rows) -> Matrix:
    """Returns a block of columns less its mean: what all clients have in common hides what is a client's own."""
    found = as_sent(part, whole)
    found = found - found.sum(axis=0) / np.float32(max(int(np.count_nonzero(whole)), 1))
    return as_sent(found, whole)


def whitened(part: Matrix, whole: Rows) -> Matrix:
    """Returns the centred block with equal variance in every coordinate, so that no layer outweighs the others."""
    found = centred(part, whole)
    spread = np.sqrt(np.einsum("ij,ij->j", found, found) / np.float32(max(len(found), 1)))
    found /= np.maximum(spread, np.float32(_TINY))
    return found


def cosines_by_preparation(
    targets: Matrix, candidates: Matrix, preparations: Sequence[Preparation], threads: int = 1
) -> list[Scores]:
    """Returns the cosine of each target with each candidate after each of several preparations, in one pass.

    It is 0 for rows that are zero or not finite.

    Guarantees:
        Equal bits for any number of threads, and for any other preparations beside one.
    """
    kept = whole_rows(targets), whole_rows(candidates)

    def add_up(columns: slice) -> list[_Sums]:
        # Overflow of single products shows in the sums, which then count as 0.
        with np.errstate(over="ignore", invalid="ignore"):
            pair = targets[:, columns], candidates[:, columns]
            return [_Sums.of(prepared(pair[0], kept[0]), prepared(pair[1], kept[1])) for prepared in preparations]

    totals = [_Sums.zero(len(targets), len(candidates)) for _ in preparations]
    for found in block_by_block(add_up, column_blocks(targets), threads):
        for total, part in zip(totals, found, strict=True):
            total.add(part)
    return [total.cosines() for total in totals]


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Inner products of two sets of rows and their squares, over some columns."""

    products: Scores
    target_squares: NDArray[np.float64]
    candidate_squares: NDArray[np.float64]

    @classmethod
    def zero(cls, targets: int, candidates: int) -> _Sums:
        """Returns those over no columns."""
        return cls(np.zeros((targets, candidates)), np.zeros(targets), np.zeros(candidates))

    @classmethod
    def of(cls, targets: Matrix, candidates: Matrix) -> _Sums:
        """Returns those over a block of columns, in single precision."""
        squares = [np.einsum("ij,ij->i", rows, rows) for rows in (targets, candidates)]
        return cls(targets @ candidates.T, *squares)  # type: ignore[arg-type]

    def add(self, part: _Sums) -> None:
        """Adds those over other columns."""
        with np.errstate(over="ignore", invalid="ignore"):
            np.add(self.products, part.products, out=self.products)
            np.add(self.target_squares, part.target_squares, out=self.target_squares)
            np.add(self.candidate_squares, part.candidate_squares, out=self.candidate_squares)

    def cosines(self) -> Scores:
        """Returns products by lengths; 0 where that is no number."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = self.products / np.sqrt(np.outer(self.target_squares, self.candidate_squares))
        return np.where(np.isfinite(found), found, 0.0)


def nearest(scores: Scores) -> Guess:
    """Returns the best candidate of each target, several targets may have the same."""
    found: Guess = np.argmax(scores, axis=1).astype(np.int64)
    return found


def assigned(scores: Scores) -> Guess:
    """Returns the one-to-one assignment with the largest sum; -1 for targets that are left over."""
    # Imported here: scenarios are read without it.
    from scipy.optimize import linear_sum_assignment

    found = np.full(len(scores), -1, dtype=np.int64)
    rows, columns = linear_sum_assignment(scores, maximize=True)
    found[rows] = columns
    return found


def matched(ratios: Scores) -> Guess:
    """Returns the one-to-one matching of the likeliest pairs.

    Pairs that are unlikelier than not count as nothing, so that messages of clients that did not come back, which match
    nothing, take no candidate from others.
    """
    # The small rest decides among those, so that each message has a guess.
    return assigned(np.maximum(ratios, 0.0) + 1e-6 * np.clip(ratios, -1e3, 0.0))


def log_ratios(scores: Scores) -> Scores:
    """Returns the log-likelihood ratio of "the same client" for each pair, from scores of any scale."""
    z = standard(scores)
    found = assigned(z)
    mean = _matched_mean(z, found, np.ones(len(z)))
    for _ in range(_STEPS):
        ratios = mean * z - mean**2 / 2
        found = matched(ratios)
        mean = _matched_mean(z, found, _weights(ratios, found))
    return mean * z - mean**2 / 2


def timed(content: Scores, targets_s: NDArray[np.float64], candidates_s: NDArray[np.float64]) -> Scores:
    """Adds to log-likelihood ratios of contents those of arrival times.

    A client's training time and rates hardly change, so log times of one client differ little between rounds.
    """
    gaps = np.subtract.outer(np.log(np.maximum(targets_s, 1e-9)), np.log(np.maximum(candidates_s, 1e-9)))
    others = max(float(np.median(np.abs(gaps))) * MAD, _TINY)
    total, same = content, others / 4
    for _ in range(_STEPS):
        found = matched(total)
        there = np.flatnonzero(found >= 0)
        weights = _weights(total, found)[there]
        # A weighted median would be more robust; the weights already leave wrong pairs out.
        same = float(np.sqrt(np.average(gaps[there, found[there]] ** 2, weights=weights + _TINY)))
        # Not above the spread of different clients, or a small gap would speak against a pair.
        same = min(max(same, others / 1e4), others)
        total = content + np.log(others / same) - gaps**2 / 2 * (1 / same**2 - 1 / others**2)
    return total


def standard(scores: Scores) -> Scores:
    """Returns scores in robust standard deviations of those of different clients."""
    middle = float(np.median(scores))
    spread = float(np.median(np.abs(scores - middle))) * MAD
    found: Scores = (scores - middle) / max(spread, _TINY)
    return found


def _matched_mean(z: Scores, found: Guess, weights: NDArray[np.float64]) -> float:
    """Returns by how many standard deviations pairs of one client stand out, without the effect of choosing pairs."""
    there = np.flatnonzero(found >= 0)
    mean = float(np.average(z[there, found[there]], weights=weights[there] + _TINY))
    # The best assignment among n scores of pure noise has about this mean (simulated for 5 to 512: within 0.05).
    by_chance = NormalDist().inv_cdf(1.0 - 1.0 / max(min(z.shape), 2))
    return float(np.sqrt(np.clip(mean**2 - by_chance**2, 0.05**2, 50.0**2)))


def _weights(ratios: Scores, found: Guess) -> NDArray[np.float64]:
    """Returns how likely each guessed pair is right, if half of them are."""
    values = np.where(found >= 0, ratios[np.arange(len(ratios)), np.maximum(found, 0)], -50.0)
    likely: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(values, -50.0, 50.0)))
    return likely
