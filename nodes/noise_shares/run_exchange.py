"""The exchange of noise shares of one run: its plan, tracker and log, and the figures of each round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodes.noise_shares.exchange_log import NoiseShareLog
from nodes.noise_shares.partner_graph import Tracker
from nodes.noise_shares.plan import NoiseSharePlan
from p2p.log.log import Log


@dataclass(frozen=True, slots=True)
class NoiseSharing:
    """The exchange of one run."""

    plan: NoiseSharePlan
    tracker: Tracker
    share_log: NoiseShareLog

    @property
    def extra_s(self) -> float:
        """The time that corrections may add to a round."""
        return self.plan.settings.correct_within if self.plan.settings.policy == "correct" else 0.0

    def figures(self, round_number: int, log: Log) -> dict[str, float]:
        """Returns the mean residual variance of a round's aggregations, and the predicted one."""
        found = self.share_log.close(round_number, log)
        if not found:
            return {"residual_variance": np.nan, "predicted_variance": np.nan}
        measured, predicted = ([getattr(one, name) for one in found] for name in ("measured", "predicted"))
        return {"residual_variance": float(np.mean(measured)), "predicted_variance": float(np.mean(predicted))}
