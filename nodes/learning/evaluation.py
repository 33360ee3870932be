"""The rounds and clients for which accuracy on the global test set is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray

from p2p.random_streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Which rounds and clients are evaluated; evaluation takes no simulated time and changes no other random draw.

    Attributes:
        every: evaluate every this many rounds; 0 evaluates only after the last
        clients: number of clients evaluated, the same ones throughout the run, or all
        target_accuracy: the headline reports the cost of reaching this accuracy; none omits it
        measure_from: rounds before this one (warm-up, and the set-up) are excluded from the summary's costs and losses
    """

    every: Annotated[int, Ge(0)] = 1
    clients: Literal["all"] | Annotated[int, Ge(1)] = "all"
    target_accuracy: Annotated[float, Interval(gt=0, le=1)] | None = None
    measure_from: Annotated[int, Ge(0)] = 0

    def due(self, round_number: int, rounds: int) -> bool:
        """Returns whether a round is evaluated; the last round always is. Rounds count from 1."""
        return round_number >= rounds or (self.every > 0 and round_number % self.every == 0)

    def chosen(self, clients: int, seed: int) -> NDArray[np.int64]:
        """Returns the evaluated clients, in order."""
        if self.clients == "all" or self.clients >= clients:
            return np.arange(clients)
        # A stream of its own: evaluating other clients changes no other draw of the run.
        return np.sort(stream(seed, "evaluation").choice(clients, self.clients, replace=False))
