"""Chains over all rounds: every message is put on a track, which may have gaps; one track for each client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privacy.attacks.matching import MAD, Guess, Matrix, Scores, Seen, assigned, centred, timed

_STEPS = 5
_LEAST = 1e-12


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

    def extend(self, vectors: Matrix, log_times: NDArray[np.float64]) -> Guess:
        """Puts the messages of a round on tracks; returns the track of each."""
        known = len(self.lengths)
        ratios = self._ratios(vectors, log_times)
        found = assigned(np.column_stack([ratios, self._new(len(vectors))]))
        fresh = np.flatnonzero(found >= known)
        found[fresh] = known + np.arange(len(fresh))
        width = vectors.shape[1]
        self.sums = np.concatenate([self.sums.reshape(-1, width), np.zeros((len(fresh), width), dtype=np.float32)])
        self.lengths = np.concatenate([self.lengths, np.zeros(len(fresh))])
        self.log_times = np.concatenate([self.log_times, np.zeros(len(fresh))])
        self._add(found, vectors, log_times, 1)
        return found

    def revise(self, vectors: Matrix, log_times: NDArray[np.float64], tracks: Guess) -> Guess:
        """Takes the messages of a round off their tracks and puts them on again, now that all rounds are known."""
        self._add(tracks, vectors, log_times, -1)
        ratios = self._ratios(vectors, log_times)
        # An empty track is a client that has not been seen elsewhere.
        ratios[:, self.lengths == 0] = 0.0
        found = assigned(ratios)
        self._add(found, vectors, log_times, 1)
        return found

    def _add(self, tracks: Guess, vectors: Matrix, log_times: NDArray[np.float64], sign: int) -> None:
        # Tracks are distinct within a round, so no index occurs twice.
        self.sums[tracks] += sign * vectors
        self.lengths[tracks] += sign
        self.log_times[tracks] += sign * log_times

    def _ratios(self, vectors: Matrix, log_times: NDArray[np.float64]) -> Scores:
        """Returns the log-likelihood ratio of each message belonging to each track."""
        if not len(self.lengths):
            return np.zeros((len(vectors), 0))
        lengths = np.maximum(self.lengths, 1.0)
        norms = np.sqrt(np.einsum("ij,ij->i", self.sums, self.sums))
        z = _standard_columns((vectors @ self.sums.T) / np.maximum(norms, np.float32(_LEAST)))
        # A track of n messages has n times the signal and the root of n times the noise of one.
        growth = np.sqrt(2.0 * lengths / (lengths + 1.0))
        ratios: Scores = z
        for _ in range(_STEPS):
            mean = self._strength * growth
            ratios = mean * z - mean**2 / 2
            found = assigned(np.maximum(ratios, 0.0))
            right = (found >= 0) & (ratios[np.arange(len(z)), np.maximum(found, 0)] > 0)
            if np.count_nonzero(right) < 3:
                break
            self._strength = float(np.clip(np.mean(z[right, found[right]] / growth[found[right]]), 1.0, 50.0))
        return timed(ratios, np.exp(log_times), np.exp(self.log_times / lengths)) if self.use_times else ratios

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
    tracks = Tracks(most, use_times)
    # Prepared anew in every pass: copies of all rounds together would double the memory of the attack.
    found = [tracks.extend(_prepared(seen.vectors), _log_times(seen)) for seen in rounds]
    for _ in range(passes):
        found = [
            tracks.revise(_prepared(seen.vectors), _log_times(seen), before)
            for seen, before in zip(rounds, found, strict=True)
        ]
    return found


def _log_times(seen: Seen) -> NDArray[np.float64]:
    times: NDArray[np.float64] = np.log(np.maximum(seen.times_s, 1e-9))
    return times


def _prepared(vectors: Matrix) -> Matrix:
    """Returns centred rows of length one."""
    rows = centred(vectors)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    found: Matrix = rows / np.maximum(lengths, np.float32(_LEAST))[:, None]
    return found
