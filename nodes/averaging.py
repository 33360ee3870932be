"""Steps of many nodes at once: each subtracts a weighted sum of updates from its model.

Together they are one product, weights [nodes, updates] times updates [updates, d], taken in blocks of columns that stay
in the cache. Where a node uses few of the updates the weights are nearly all zero, and are kept as lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from nodes.cores import cut, side_by_side
from nodes.vectors import Matrix, Vector

if TYPE_CHECKING:
    from torch import Tensor

NUMBERS_AT_ONCE = 1 << 19
LEAST_COLUMNS = 4096
# A dense product does about ten times as many multiplications in the same time.
DENSE_FROM = 0.1


@dataclass(frozen=True, slots=True)
class Step:
    """A row of models moves by minus the mean of some updates, or by minus their sum times a weight."""

    row: int
    updates: Sequence[Vector]
    weight: float | None = None

    def share(self) -> float:
        """What each update is multiplied by."""
        return 1.0 / len(self.updates) if self.weight is None else self.weight


class Mixture:
    """What some steps subtract from which rows of the models."""

    def __init__(self, steps: Sequence[Step]) -> None:
        place = {vector: i for i, vector in enumerate(dict.fromkeys(chain.from_iterable(s.updates for s in steps)))}
        self._updates = [vector.array() for vector in place]
        self._columns: dict[int, list[int]] = {}
        self._shares: dict[int, list[float]] = {}
        for step in steps:
            self._columns.setdefault(step.row, []).extend(map(place.__getitem__, step.updates))
            self._shares.setdefault(step.row, []).extend([step.share()] * len(step.updates))

    def subtract(self, models: Matrix) -> None:
        """Takes the steps, in place; on one core, as two were mostly no faster when this was measured."""
        import torch

        product = self._product()

        def subtract_block(block: slice) -> None:
            updates = torch.from_numpy(np.stack([update[block] for update in self._updates]))
            for row, move in zip(self._columns, product(updates).numpy(), strict=True):
                models[row, block] -= move

        columns = max(LEAST_COLUMNS, NUMBERS_AT_ONCE // len(self._updates))
        side_by_side(subtract_block, cut(models.shape[1], columns), threads=1)

    def _product(self) -> Callable[[Tensor], Tensor]:
        """Gives what each row subtracts, for some columns of the updates."""
        import torch

        columns = np.array(list(chain.from_iterable(self._columns.values())))
        shares = np.array(list(chain.from_iterable(self._shares.values())), dtype=np.float32)
        counts = np.array([len(used) for used in self._columns.values()])
        if len(columns) < DENSE_FROM * len(counts) * len(self._updates):
            bags = partial(torch.nn.functional.embedding_bag, mode="sum", per_sample_weights=torch.from_numpy(shares))
            starts = torch.from_numpy(counts.cumsum() - counts)
            return lambda updates: bags(torch.from_numpy(columns), updates, starts)
        weights = np.zeros((len(counts), len(self._updates)), dtype=np.float32)
        np.add.at(weights, (np.repeat(np.arange(len(counts)), counts), columns), shares)
        return lambda updates: torch.from_numpy(weights) @ updates
