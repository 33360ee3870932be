"""What a peer learns in gossip, as `peerveil calc` asks: by paths if noise is fresh in every round, by linear algebra
if it is added once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Edges = Sequence[tuple[int, int]]


def taint_count(source: int, observer: int, rounds: Iterable[Edges]) -> tuple[int, int]:
    """How many of the source's releases reached the observer: directly, and by any path.

    Every node that sends in a round makes one fresh release in it. Direct receipts alone are a lower bound of what
    the observer learns; `mu^2 <= mu_per_release^2 * (by any path)` is proved.
    """
    direct, reached = 0, [frozenset[int]() for _ in range(2)]
    held: dict[int, frozenset[int]] = {source: reached[0], observer: reached[1]}
    for number, edges in enumerate(rounds):
        # All messages of a round carry what was held when it began: a chain of two edges takes two rounds.
        before = dict(held)
        for sender, receiver in edges:
            # A release that is sent to several receivers in a round is one release, named by its round.
            fresh = {number} if sender == source else set()
            held[receiver] = held.get(receiver, frozenset()) | before.get(sender, frozenset()) | fresh
            direct += sender == source and receiver == observer
    return direct, len(held[observer])


class LinearView(NamedTuple):
    """Exact share of a node's privacy loss that an observer sees, and the sum of ratios that is no bound."""

    loss_fraction: float
    squared_ratio_sum: float


def linear_view(weights: NDArray[np.float64], observed_steps: int, source: int, observer: int) -> LinearView:
    """What the observer learns about the source when noise is added once and then averaged again and again.

    The observer receives its neighbours' values before each of the steps, knows the mixing matrix and its own noise:
    `mu^2 = (sensitivity / std)^2 * loss_fraction`, the squared length of the source's unit vector projected on
    the row space of what is seen (own column removed).

    Guarantees:
        exact for Gaussian noise (Koskela & Kulkarni 2025 use the same view); 1 means the full local loss.
    """
    neighbours = np.flatnonzero(weights[observer] > 0.0)
    neighbours = neighbours[neighbours != observer]
    power, rows = np.eye(len(weights)), []
    for _ in range(observed_steps):
        # Values before the step: what a neighbour sends is W^k of all initial values, seen from its row.
        rows.append(power[neighbours])
        power = weights @ power
    seen = np.concatenate(rows) if rows else np.zeros((0, len(weights)))
    norms = np.square(seen).sum(axis=1)
    # The sum of single ratios is shown beside the exact share because it is no bound: differences of messages tell
    # more.
    ratios = np.square(seen[norms > 0.0, source]) / norms[norms > 0.0]
    # The observer knows its own noise, so its column is gone, and later columns move up by one.
    return LinearView(_projected(np.delete(seen, observer, axis=1), source - (source > observer)), float(ratios.sum()))


def _projected(rows: NDArray[np.float64], column: int) -> float:
    """Squared length of unit vector `column` projected on the row space, by singular values."""
    if rows.size == 0:
        return 0.0
    _, values, right = np.linalg.svd(rows, full_matrices=False)
    # Singular values at rounding level are zeros; counted as directions they would reveal what was never seen.
    rank = int(np.sum(values > values[0] * max(rows.shape) * np.finfo(np.float64).eps * 8)) if values[0] > 0 else 0
    return float(np.square(right[:rank, column]).sum())
