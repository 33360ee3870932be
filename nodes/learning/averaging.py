"""Model steps of many nodes as one matrix product: each node subtracts a weighted sum of updates from its model.

Where models are exchanged, a weighted sum of models replaces its model instead.

The product is weights [nodes, updates] times updates [updates, d], computed in blocks of columns that fit the cache.
If each node uses few of the updates, the weights are stored as sparse lists instead of a dense matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodes.aggregation.aggregator import ServerStep
from nodes.learning.deferred_vectors import Matrix, Vector
from nodes.learning.thread_pool import chunks, run_parallel
from privacy.blas_threads import one_blas_thread
from privacy.mechanisms.clip_and_noise import row_norms
from privacy.mechanisms.layer_clipping import scale_factors

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Weight = float | Sequence[float] | Callable[[], Sequence[float]] | None

# Floats per block of updates: 2 MiB in float32, which a core's cache holds.
NUMBERS_AT_ONCE = 1 << 19
# Least columns per block, so that the calls' overhead stays small beside the product.
LEAST_COLUMNS = 4096
# A dense product does about ten times as many multiplications as a sparse one in the same time.
DENSE_FROM = 0.1


@dataclass(frozen=True, slots=True)
class AveragingStep:
    """A row of models moves by minus a weighted sum of updates, or is replaced by a weighted sum of models.

    Attributes:
        weight: of each vector, or of all of them; None means their mean. A function is asked when the step is taken
        replaces: whether the vectors are models
        finish: what an aggregator does with the sum before it is subtracted; such a row has one step at a time
        to_median: whether each vector is first scaled down to the median of their norms
    """

    row: int
    updates: Sequence[Vector]
    weight: Weight = None
    replaces: bool = False
    finish: ServerStep | None = None
    to_median: bool = False

    def shares(self) -> Floats:
        """Returns the factor of each vector."""
        shares = self._weights()
        if not self.to_median:
            return shares
        vectors = [vector.array()[None] for vector in self.updates]
        with one_blas_thread():
            norms = np.array([row_norms(vector)[0] for vector in vectors])
        median = max(float(np.median(norms)), 1e-30)
        if self.finish is not None:
            self.finish.scale_noise(median)
        return shares * scale_factors(norms, median)

    def _weights(self) -> Floats:
        if self.weight is None:
            return np.full(len(self.updates), 1.0 / len(self.updates))
        weight = self.weight() if callable(self.weight) else self.weight
        return np.full(len(self.updates), weight) if isinstance(weight, float) else np.array(weight, dtype=np.float64)


class WeightedSums:
    """The weighted sums that a list of steps subtracts from rows of the model matrix."""

    def __init__(self, steps: Sequence[AveragingStep]) -> None:
        # `dict.fromkeys` keeps first-use order: the columns, and so the rounding, do not depend on hashes.
        place = {vector: i for i, vector in enumerate(dict.fromkeys(chain.from_iterable(s.updates for s in steps)))}
        self._updates = [vector.array() for vector in place]
        self._replaced: set[int] = set()
        self._finish = {step.row: step.finish for step in steps if step.finish is not None}
        by_row: dict[int, list[AveragingStep]] = {}
        for step in steps:
            if step.replaces:
                # What the row was before does not matter any more.
                self._replaced.add(step.row)
                by_row[step.row] = []
            by_row.setdefault(step.row, []).append(step)
        self._rows = list(by_row)
        self._counts = np.array([sum(len(step.updates) for step in taken) for taken in by_row.values()])
        ordered = list(chain.from_iterable(by_row.values()))
        used = chain.from_iterable(step.updates for step in ordered)
        self._columns = np.fromiter(map(place.__getitem__, used), np.int64)
        self._shares = np.concatenate([step.shares() for step in ordered]).astype(np.float32)

    def subtract(self, models: Matrix) -> None:
        """Takes the steps in place."""
        import torch

        # On one core: two were mostly no faster when this was measured.
        product = self._product()

        def subtract_block(block: slice) -> None:
            updates = torch.from_numpy(np.stack([update[block] for update in self._updates]))
            for row, move in zip(self._rows, product(updates).numpy(), strict=True):
                finish = self._finish.get(row)
                if row in self._replaced:
                    models[row, block] = move
                else:
                    models[row, block] -= move if finish is None else finish.move(move, block)

        columns = max(LEAST_COLUMNS, NUMBERS_AT_ONCE // len(self._updates))
        run_parallel(subtract_block, chunks(models.shape[1], columns), threads=1)

    def _product(self) -> Callable[[Tensor], Tensor]:
        """Returns the function from a block of update columns to the amounts that each row subtracts."""
        import torch

        columns, shares, counts = self._columns, self._shares, self._counts
        if len(columns) < DENSE_FROM * len(counts) * len(self._updates):
            # `embedding_bag` in mode sum is the sparse product: each bag sums the listed rows with their weights.
            bags = partial(torch.nn.functional.embedding_bag, mode="sum", per_sample_weights=torch.from_numpy(shares))
            starts = torch.from_numpy(counts.cumsum() - counts)  # where each row's list begins
            return lambda updates: bags(torch.from_numpy(columns), updates, starts)
        weights = np.zeros((len(counts), len(self._updates)), dtype=np.float32)
        # `add.at`, not `+=`: a row may use one update in several steps, and `+=` would keep only the last weight. Flat,
        # which numpy adds fastest.
        rows = np.repeat(np.arange(len(counts)), counts)
        np.add.at(weights.reshape(-1), rows * len(self._updates) + columns, shares)
        return lambda updates: torch.from_numpy(weights) @ updates
