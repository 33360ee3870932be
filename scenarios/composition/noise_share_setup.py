"""The exchange of noise shares of a run, from the `noise_shares` section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nodes.noise_shares.run_exchange import NoiseSharing
    from nodes.roles.participant import Participant
    from nodes.world import World
    from privacy.calibration.noise_plan import NoisePlan
    from scenarios.schema import Scenario


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
    from nodes.noise_shares.run_exchange import NoiseSharing
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
    share_log = NoiseShareLog(maker, measures=scenario.learning != "none")
    for node, participant in participants.items():
        participant.share_noise(NoiseShareClient(node, world, plan, share_log))
    return NoiseSharing(plan, Tracker(plan, protocol, scenario.seed), share_log)
