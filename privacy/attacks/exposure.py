"""Who is exposed to an observer of gossip by linear algebra, although it is no neighbour (Mrini et al. 2024).

Every message that an observer hears is a known linear combination of unknowns, one for each client. A client is exposed
if its unknown alone is a combination of what was heard: if its unit vector lies in the row space of the knowledge
matrix K, that is if the diagonal of the projection K^+ K is 1 at its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Nodes = NDArray[np.int64]
_RANK = 1e-13
"""Singular values below this, times the largest one and the longer side of the matrix, are rounding errors."""
_EXPOSED = 1.0 - 1e-8


class Mixing(NamedTuple):
    """One round: row i of `weights` makes node i's next model, `trained` says who took a local step before."""

    weights: Matrix
    trained: NDArray[np.bool_]


class Exposure(NamedTuple):
    """Which clients are exposed, and by which factor noise on what was heard grows in its estimate; inf if not."""

    exposed: NDArray[np.bool_]
    noise_factor: Matrix


def averaging_knowledge(rounds: Sequence[Mixing], heard: Sequence[Nodes], own: Sequence[int]) -> Iterator[Matrix]:
    """Yields what each round adds to K if clients only average, x' = W x; the unknowns are their values before round 1.

    The observer's own values come with the first round.
    """
    clients = len(rounds[0].weights)
    state = np.eye(clients)
    for number, (mixing, senders) in enumerate(zip(rounds, heard, strict=True)):
        rows = np.concatenate([np.array(own, dtype=np.int64), senders]) if not number else senders
        yield state[rows]
        state = mixing.weights @ state


def training_knowledge(rounds: Sequence[Mixing], heard: Sequence[Nodes], own: Sequence[int]) -> Iterator[Matrix]:
    """Yields what each round adds to K if clients take a step before each averaging, x' = W (x - g).

    The unknowns are their steps g, taken for the same in every round. What the observer's own nodes put in is known to
    it and subtracted, so their columns are zero.
    """
    clients = len(rounds[0].weights)
    others = np.ones(clients)
    others[list(own)] = 0.0
    state = np.zeros((clients, clients))
    for mixing, senders in zip(rounds, heard, strict=True):
        state = (state + np.diag(mixing.trained.astype(np.float64))) * others[:, None]
        yield state[senders]
        state = mixing.weights @ state


def exposure(knowledge: Matrix) -> Exposure:
    """Returns whose unknown a knowledge matrix determines."""
    clients = knowledge.shape[1]
    if not knowledge.any():
        return Exposure(np.zeros(clients, dtype=np.bool_), np.full(clients, np.inf))
    # The rows of `right` whose singular value is above rounding span the row space, and their squares add up to the
    # projection's diagonal.
    _, values, right = np.linalg.svd(knowledge, full_matrices=False)
    kept = values >= values[0] * max(knowledge.shape) * _RANK
    exposed = (right[kept] ** 2).sum(axis=0) >= _EXPOSED
    # The norm of row j of K^+.
    factor = np.sqrt(((right[kept] / values[kept, None]) ** 2).sum(axis=0))
    return Exposure(exposed, np.where(exposed, factor, np.inf))
