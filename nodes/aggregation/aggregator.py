"""The aggregator's arithmetic: the weights of the updates that arrived, and the step that their mean becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodes.aggregation.settings import Aggregate, Weights
from privacy.papers.dp_fedasgp import weights as loss_and_records

Row = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregator:
    """The `aggregate` section with what it needs to know of the run.

    Attributes:
        settings: the section.
        clip_norm: bound on an update, of which the noise may be a multiple.
    """

    settings: Aggregate = field(default_factory=Aggregate)
    clip_norm: float = 1.0

    @property
    def is_plain(self) -> bool:
        """Whether the step is the weighted mean itself."""
        return self.settings.momentum == 0.0 and self.settings.step_size == 1.0 and self.settings.noise is None

    def mean_std(self, updates: int) -> float:
        """Returns the standard deviation of the noise on a mean of that many updates, or its factor on their median."""
        noise = self.settings.noise
        if noise is None:
            return 0.0
        # With `cohort_median` the result is a factor, which `scale_noise` multiplies by the median once that is known.
        return noise.std(1.0 if noise.by_median else self.clip_norm) / (updates if noise.on == "sum" else 1)


def weigh(rule: Weights, shares: Sequence[float], losses: Sequence[float]) -> list[float]:
    """Returns the factor of each update from its client's share of all records, and from its loss where that counts."""
    given = np.asarray(shares, dtype=np.float64)
    if rule == "records_of_all":
        # As printed, (5) of Wei et al.: divided by the records of all clients, so they sum to the share that arrived.
        return list(given.tolist())
    if rule == "records":
        # Among the updates that arrived, so that lost ones do not shrink the step.
        return list((given / given.sum()).tolist())
    if rule == "loss_and_records":
        # A loss that no computation gives counts as none; if all do, records decide alone.
        usable = np.nan_to_num(np.maximum(np.asarray(losses, dtype=np.float64), 0.0), nan=0.0, posinf=0.0)
        return list((loss_and_records(given, usable) if usable.sum() > 0.0 else given / given.sum()).tolist())
    return [1.0 / len(given)] * len(given)


@dataclass(slots=True)
class ServerStep:
    """Turns the weighted mean of a step into what is subtracted from the model; works on blocks of columns.

    Attributes:
        momentum: beta.
        memory: V, changed in place; none without momentum.
        noise: none without.
        after: whether noise comes after momentum.
        step_size: factor on the step.
        by_median: whether the noise is still to be multiplied by the median norm of the updates.
        taken: what was subtracted, filled in block by block; none if that is not asked for.
    """

    momentum: float
    memory: Row | None
    noise: Row | None
    after: bool
    step_size: float
    by_median: bool = False
    taken: Row | None = None

    def scale_noise(self, median: float) -> None:
        """Multiplies the noise by the median norm of the updates, where it is a multiple of that."""
        if self.by_median and self.noise is not None:
            self.noise *= np.float32(median)

    def move(self, mean: Row, block: slice) -> Row:
        """Returns the step of these columns."""
        moved = mean if self.noise is None or self.after else mean + self.noise[block]
        if self.memory is not None:
            beta = np.float32(self.momentum)
            self.memory[block] = beta * self.memory[block] + (np.float32(1.0) - beta) * moved
            moved = self.memory[block]
        if self.noise is not None and self.after:
            moved = moved + self.noise[block]
        moved = moved if self.step_size == 1.0 else np.float32(self.step_size) * moved
        if self.taken is not None:
            self.taken[block] = moved
        return moved
