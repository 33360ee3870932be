"""What a diagnosis says, and what it is given about the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What limited a run.

    Attributes:
        deadlines_s: the protocol's deadlines by key, such as `deadline` and `model_deadline`.
        up, down: rate of each node's links in bytes per second.
        train_s: how long each client trains in a round.
        waits_for_all: whether aggregations wait for every update.
    """

    deadlines_s: Mapping[str, float]
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    train_s: NDArray[np.float64]
    waits_for_all: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and what would change it."""

    code: str
    problem: str
    cure: str

    def to_json(self) -> dict[str, str]:
        """Returns the entry of the summary."""
        return {"code": self.code, "problem": self.problem, "cure": self.cure}
