"""The `noise_shares` section put to work: its parts, and what it leaves in the round's row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError

if TYPE_CHECKING:
    from nodes.noise_shares.exchange_log import NoiseShareLog
    from nodes.noise_shares.partner_graph import Tracker
    from nodes.noise_shares.plan import NoiseSharePlan
    from nodes.roles.participant import Participant
    from nodes.world import World
    from privacy.calibration.noise_plan import NoisePlan
    from scenarios.schema import Scenario


def check_resumable(scenario: Scenario) -> None:
    """Rejects resumption of runs whose noise is derived from keys: a resumed run draws other keys.

    Raises:
        UserError: the shares are pairwise.
    """
    if scenario.noise_shares is not None and scenario.noise_shares.share_as == "pairwise":
        rule = "a resumed run has other keys, and the noise follows from them; run it anew, or use `seed`"
        raise UserError(f"noise_shares.share_as = pairwise: {rule}")


@dataclass(frozen=True, slots=True)
class NoiseSharing:
    """The exchange of one run."""

    plan: NoiseSharePlan
    tracker: Tracker
    book: NoiseShareLog

    @property
    def extra_s(self) -> float:
        """The time that corrections may add to a round."""
        return self.plan.settings.correct_within if self.plan.settings.policy == "correct" else 0.0

    def figures(self, round_number: int, log: Any) -> dict[str, float]:
        """Returns the mean residual variance of a round's aggregations, and the predicted one."""
        found = self.book.close(round_number, log)
        if not found:
            return {"residual_variance": np.nan, "predicted_variance": np.nan}
        measured, predicted = ([getattr(one, name) for one in found] for name in ("measured", "predicted"))
        return {"residual_variance": float(np.mean(measured)), "predicted_variance": float(np.mean(predicted))}


def share_noise(
    scenario: Scenario,
    world: World,
    participants: Mapping[int, Participant],
    noise: NoisePlan | None,
    records: NDArray[np.int64],
) -> NoiseSharing | None:
    """Equips every participant for the exchange; returns None if the scenario has none."""
    settings = scenario.noise_shares
    if settings is None:
        return None
    # Imported here, so that runs without an exchange do not load its modules.
    from nodes.noise_shares.client_exchange import NoiseShareClient
    from nodes.noise_shares.exchange_log import NoiseShareLog
    from nodes.noise_shares.partner_graph import Tracker
    from nodes.noise_shares.plan import NoiseSharePlan
    from privacy.noise_shares.uploads import NoiseExpander

    protocol, privacy = scenario.protocol, scenario.privacy
    # Half of the protocol's deadline by default: uploads need the other half.
    deadline_s = settings.deadline if settings.deadline is not None else protocol.deadline / 2.0
    plan = NoiseSharePlan(
        settings=settings,
        clients=scenario.clients,
        clip_norm=np.inf if noise is None else noise.clip_norm,
        delta=1e-5 if privacy is None else privacy.resolved_budget().delta,
        records=records,
        margin_s=protocol.deadline - deadline_s,
        noise_std=np.zeros(scenario.clients) if noise is None else noise.noise_std,
    )
    dimension = next(iter(participants.values())).learning.dimension
    maker = NoiseExpander(dimension, settings.expansion, settings.tau_mode, settings.share_as == "vector")
    book = NoiseShareLog(maker, measures=scenario.learning != "none")
    for node, participant in participants.items():
        participant.share_noise(NoiseShareClient(node, world, plan, book))
    return NoiseSharing(plan, Tracker(plan, protocol, scenario.seed), book)
