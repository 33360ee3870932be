"""Which records each client sees in each step of a round, for many clients side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.training import Training
from p2p.streams import streams

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """The steps of clients sorted by how many they have, most first.

    Attributes:
        rows: training records, [steps, clients, batch size]; row 0 stands where a batch is short
        weights: share of each record in its batch's mean, 0 where a batch is short
        active: how many clients still train in each step; they are the first ones
    """

    rows: Ints
    weights: NDArray[np.float32]
    active: Ints


def draw_batches(
    shards: Sequence[Ints], nodes: Sequence[int], training: Training, seed: int, round_number: int
) -> Batches:
    """The batches of `nodes`, which must come sorted by number of steps, most first.

    Each client's order is its own stream's, so it does not depend on who trains beside it.
    """
    sizes = np.array([len(shards[node]) for node in nodes])
    steps = np.array([training.steps(int(size)) for size in sizes])
    rows = np.zeros((len(nodes), steps[0], training.batch_size), dtype=np.int64)
    weights = np.zeros(rows.shape, dtype=np.float32)
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size).tolist()
        rngs = streams(seed, [("batches", nodes[member], round_number) for member in members])
        orders = [_orders(shards[nodes[i]], training.epochs, rng) for i, rng in zip(members, rngs, strict=True)]
        count = training.steps(int(size))
        rows[members, :count] = _cut(np.stack(orders), training.batch_size)
        weights[members, :count] = _weights(int(size), training)
    active = (steps[None, :] > np.arange(steps[0])[:, None]).sum(axis=1)
    return Batches(_steps_first(rows), _steps_first(weights), active)


def _orders(shard: Ints, epochs: int, rng: np.random.Generator) -> Ints:
    """A new random order of the shard for each epoch, [epochs, records]."""
    return np.concatenate([rng.permutation(shard) for _ in range(epochs)]).reshape(epochs, -1)


def _cut(orders: Ints, batch_size: int) -> Ints:
    """Orders [clients, epochs, records] to rows [clients, steps, batch size], an epoch's last batch filled with 0."""
    clients, _, size = orders.shape
    filled = np.pad(orders, ((0, 0), (0, 0), (0, -size % batch_size)))
    return filled.reshape(clients, -1, batch_size)


def _weights(size: int, training: Training) -> NDArray[np.float32]:
    """The weights of one client's steps, [steps, batch size]."""
    there = _cut(np.ones((1, training.epochs, size), dtype=np.int64), training.batch_size)[0]
    shares: NDArray[np.float64] = there / there.sum(axis=1, keepdims=True)
    return shares.astype(np.float32)


def _steps_first(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array.swapaxes(0, 1))
