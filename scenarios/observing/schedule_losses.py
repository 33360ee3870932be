"""The losses that a schedule reads, measured when a round closes or taken from the run that is resumed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.learning.byte_counts_only import NoLearning
from nodes.learning.deferred_learning import DeferredLearning
from nodes.round_record import RoundRecord
from nodes.schedules.discounting import NoisyLosses, PublicLoss, driven_by
from nodes.schedules.fixed import RunSchedule
from scenarios.schema import Scenario

Arrays = Mapping[str, NDArray[Any]]


class RoundLosses:
    """Measures the loss of each round; a replay has no models, so it reads what was measured before.

    Attributes:
        measured: the loss of each round, or none if it did not reach the proxy; part of a checkpoint.
    """

    def __init__(self, scenario: Scenario, learning: DeferredLearning | NoLearning, schedule: RunSchedule) -> None:
        self._learning, self._driven_by = learning, driven_by(scenario.schedule)
        self.measured: dict[int, float | None] = {}
        self._server = scenario.clients  # all node numbers from here on mean the server's model
        if isinstance(self._driven_by, PublicLoss) and isinstance(learning, DeferredLearning):
            # The first model is public, and so is its loss.
            schedule.note(0, learning.public_loss(self._server))

    def of(self, record: RoundRecord, reported: Sequence[int]) -> float | None:
        """Returns the loss that reached the proxy in a round; none if none did."""
        number = record.round_number
        if number not in self.measured:
            self.measured[number] = self._measure(record, sorted(reported))
        return self.measured[number]

    def _measure(self, record: RoundRecord, reported: Sequence[int]) -> float | None:
        learning, driver = self._learning, self._driven_by
        if isinstance(learning, NoLearning) or not reported:
            return None
        if isinstance(driver, NoisyLosses):
            noisy = learning.noisy_losses(reported, record.round_number, driver.sigma)
            return float(np.mean(noisy)) if noisy else None
        loss = learning.public_loss(record.leader)
        # A model that diverged has not improved.
        return math.inf if math.isnan(loss) else loss

    def state(self) -> Arrays:
        """Returns the losses as an array with one row per round: its number, the loss, whether there is one."""
        rows = [(number, 0.0 if loss is None else loss, loss is not None) for number, loss in self.measured.items()]
        return {"losses": np.array(rows, dtype=np.float64).reshape(-1, 3)}

    def restore(self, arrays: Arrays) -> None:
        """Takes over the losses of an earlier run, before its rounds are replayed."""
        rows = arrays["losses"].tolist() if "losses" in arrays else []
        self.measured = {int(number): loss if known else None for number, loss, known in rows}
