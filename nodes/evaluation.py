"""When and for whom accuracy on the global test set is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray

from p2p.streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Which rounds and clients are measured; observing takes no simulated time and moves no other draw.

    Attributes:
        every: measure each so many rounds; 0 measures only after the last
        clients: how many clients are measured, the same ones all run long, or all
        target_accuracy: the headline says what it cost to get there; none leaves that out
        measure_from: rounds before this one (a warm-up, and the set-up) stay out of the summary's costs and losses
    """

    every: Annotated[int, Ge(0)] = 1
    clients: Literal["all"] | Annotated[int, Ge(1)] = "all"
    target_accuracy: Annotated[float, Interval(gt=0, le=1)] | None = None
    measure_from: Annotated[int, Ge(0)] = 0

    def due(self, round_number: int, rounds: int) -> bool:
        """Whether the models of that round are measured; the last round always is. Rounds count from 1."""
        return round_number >= rounds or (self.every > 0 and round_number % self.every == 0)

    def chosen(self, clients: int, seed: int) -> NDArray[np.int64]:
        """The clients that are measured, in order."""
        if self.clients == "all" or self.clients >= clients:
            return np.arange(clients)
        return np.sort(stream(seed, "evaluation").choice(clients, self.clients, replace=False))
