"""Chains over all rounds: every message is put on a track, which may have gaps; one track for each client."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privacy.attacks.matching import (
    MAD,
    Guess,
    Matrix,
    Rows,
    Scores,
    Seen,
    assigned,
    centred,
    column_blocks,
    timed,
    whole_rows,
)
from privacy.blas_threads import one_blas_thread

_STEPS = 5
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Directions:
    """The messages of a round: centred vectors of length one, made block by block, and log arrival times."""

    vectors: Matrix
    whole: Rows
    lengths: NDArray[np.float32]
    log_times: NDArray[np.float64]

    @classmethod
    def of(cls, seen: Seen) -> Directions:
        """Returns those of what an observer saw in a round."""
        whole = whole_rows(seen.vectors)
        squares = np.zeros(len(seen.vectors))
        for columns in column_blocks(seen.vectors):
            part = centred(seen.vectors[:, columns], whole)
            squares += np.einsum("ij,ij->i", part, part)
        lengths = np.maximum(np.sqrt(squares), _LEAST).astype(np.float32)
        return cls(seen.vectors, whole, lengths, np.log(np.maximum(seen.times_s, 1e-9)))

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yields blocks of columns of the directions."""
        for columns in column_blocks(self.vectors):
            part = centred(self.vectors[:, columns], self.whole)
            part /= self.lengths[:, None]
            yield columns, part


@dataclass(slots=True)
class Tracks:
    """Tracks so far: sums of centred, normalised vectors, and of log arrival times.

    Args:
        most: the number of clients, which is public; there are no more tracks.
    """

    most: int
    use_times: bool = True
    sums: Matrix = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    lengths: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    log_times: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _strength: float = 5.0

    def extend(self, seen: Directions) -> Guess:
        """Puts the messages of a round on tracks; returns the track of each."""
        known = len(self.lengths)
        found = assigned(np.column_stack([self._ratios(seen), self._new(len(seen.vectors))]))
        fresh = np.flatnonzero(found >= known)
        # New tracks are numbered in the order of messages, whichever column the assignment took.
        found[fresh] = known + np.arange(len(fresh))
        if len(fresh):
            self._begin(len(fresh), seen.vectors.shape[1])
        self._add(found, seen, 1)
        return found

    def revise(self, seen: Directions, tracks: Guess) -> Guess:
        """Takes the messages of a round off their tracks and puts them on again, now that all rounds are known."""
        # Its own messages would make every track the best fit for them.
        self._add(tracks, seen, -1)
        ratios = self._ratios(seen)
        # An empty track is a client that has not been seen elsewhere.
        ratios[:, self.lengths == 0] = 0.0
        found = assigned(ratios)
        self._add(found, seen, 1)
        return found

    def _begin(self, count: int, width: int) -> None:
        """Adds empty tracks."""
        self.sums = np.concatenate([self.sums.reshape(-1, width), np.zeros((count, width), dtype=np.float32)])
        self.lengths = np.concatenate([self.lengths, np.zeros(count)])
        self.log_times = np.concatenate([self.log_times, np.zeros(count)])

    def _add(self, tracks: Guess, seen: Directions, sign: int) -> None:
        for columns, part in seen.blocks():
            # Tracks are distinct within a round, so no index occurs twice.
            self.sums[tracks, columns] += sign * part
        self.lengths[tracks] += sign
        self.log_times[tracks] += sign * seen.log_times

    def _ratios(self, seen: Directions) -> Scores:
        """Returns the log-likelihood ratio of each message belonging to each track."""
        if not len(self.lengths):
            return np.zeros((len(seen.vectors), 0))
        lengths = np.maximum(self.lengths, 1.0)
        norms = np.sqrt(np.einsum("ij,ij->i", self.sums, self.sums))
        products = sum(part @ self.sums[:, columns].T for columns, part in seen.blocks())
        z = _standard_columns(products / np.maximum(norms, np.float32(_LEAST)))
        # A track of n messages has n times the signal and the root of n times the noise of one.
        growth = np.sqrt(2.0 * lengths / (lengths + 1.0))
        ratios: Scores = z
        for _ in range(_STEPS):
            mean = self._strength * growth
            ratios = mean * z - mean**2 / 2
            found = assigned(np.maximum(ratios, 0.0))
            right = (found >= 0) & (ratios[np.arange(len(z)), np.maximum(found, 0)] > 0)
            # Too few pairs to estimate from: the strength stays as it was.
            if np.count_nonzero(right) < 3:
                break
            self._strength = float(np.clip(np.mean(z[right, found[right]] / growth[found[right]]), 1.0, 50.0))
        return timed(ratios, np.exp(seen.log_times), np.exp(self.log_times / lengths)) if self.use_times else ratios

    def _new(self, count: int) -> Scores:
        """Returns the scores of new tracks: likelier the more clients have not been seen, and never more than these."""
        left = max(self.most - len(self.lengths), 0)
        # Where more messages come at once than there are clients, some clients sent twice.
        columns = max(min(left, count), count - len(self.lengths))
        return np.full((count, columns), math.log(max(left, 1)))


def _standard_columns(scores: NDArray[np.float32]) -> Scores:
    """Returns scores in robust standard deviations of each column: tracks of different length differ in scale."""
    middle = np.median(scores, axis=0)
    spread = np.median(np.abs(scores - middle), axis=0) * MAD
    found: Scores = ((scores - middle) / np.maximum(spread, _LEAST)).astype(np.float64)
    return found


def link_tracks(rounds: Sequence[Seen], most: int, *, use_times: bool = True, passes: int = 2) -> list[Guess]:
    """Returns the track of every message of every round."""
    tracks, messages = Tracks(most, use_times), [Directions.of(seen) for seen in rounds]
    with one_blas_thread():
        found = [tracks.extend(one) for one in messages]
        for _ in range(passes):
            found = [tracks.revise(one, before) for one, before in zip(messages, found, strict=True)]
    return found
