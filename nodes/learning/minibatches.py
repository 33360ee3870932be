"""Mini-batches of a round: the records each client uses in each SGD step, for many clients in one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.learning.training import Training
from p2p.random_streams import streams

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """The batches of clients sorted by number of steps, largest first.

    Attributes:
        rows: indices of training records, [steps, clients, batch size]; short batches are padded with index 0
        weights: weight of each record in its batch's mean, 0 for padding
        active: number of clients that still train in each step; they are the first ones
    """

    rows: Ints
    weights: NDArray[np.float32]
    active: Ints


def draw_batches(
    shards: Sequence[Ints], nodes: Sequence[int], training: Training, seed: int, round_number: int
) -> Batches:
    """Draws the batches of `nodes`, which must be sorted by number of steps, largest first.

    Each client's order comes from its own random stream, so it does not depend on the other clients of the call.
    """
    sizes = np.array([len(shards[node]) for node in nodes])
    distinct, kind = np.unique(sizes, return_inverse=True)
    steps_of = [training.steps(size) for size in distinct.tolist()]
    steps = np.array(steps_of)[kind]
    width = training.widest_batch(int(distinct[-1]))
    # Equally many steps for all with `batch_size: all`, so the first client need not be the largest.
    rows = np.zeros((len(nodes), steps[0], width), dtype=np.int64)
    weights = np.zeros(rows.shape, dtype=np.float32)
    # Clients with equally many records have equal array shapes, so each group is filled by one assignment.
    for size, count in zip(distinct.tolist(), steps_of, strict=True):
        members = np.flatnonzero(sizes == size).tolist()
        rngs = streams(seed, [("batches", nodes[member], round_number) for member in members])
        pairs = zip(members, rngs, strict=True)
        orders = [rng.permutation(shards[nodes[i]]) for i, rng in pairs for _ in range(training.epochs)]
        stacked = np.concatenate(orders).reshape(len(members), training.epochs, size)
        rows[members, :count] = _split_batches(stacked, width)
        weights[members, :count] = _weights(size, training.epochs, width)
    # Steps are sorted in descending order, so the clients that still train are a prefix.
    active = (steps[None, :] > np.arange(steps[0])[:, None]).sum(axis=1)
    return Batches(_steps_first(rows), _steps_first(weights), active)


def _split_batches(orders: Ints, batch_size: int) -> Ints:
    """Reshapes orders [clients, epochs, records] to [clients, steps, batch size], padding each epoch's last batch."""
    clients, epochs, size = orders.shape
    filled = np.zeros((clients, epochs, size + -size % batch_size), dtype=np.int64)
    filled[:, :, :size] = orders
    return filled.reshape(clients, -1, batch_size)


def _weights(size: int, epochs: int, width: int) -> NDArray[np.float32]:
    """Returns the weights of one client's steps, [steps, batch size]."""
    present = _split_batches(np.ones((1, epochs, size), dtype=np.int64), width)[0]
    weights: NDArray[np.float64] = present / present.sum(axis=1, keepdims=True)
    return weights.astype(np.float32)


def _steps_first(array: NDArray[Any]) -> NDArray[Any]:
    # A training step reads all clients' batches of one step, so that axis comes first and is contiguous.
    return np.ascontiguousarray(array.swapaxes(0, 1))
