"""Whether cohorts count as secret samples: what must hold for every cohort that a scenario might draw."""

from __future__ import annotations

import numpy as np

from nodes.faults.availability import Always
from privacy.calibration.noise_plan import NoisePlan
from scenarios.schema import Scenario


def why_not_sampled(scenario: Scenario, noise: NoisePlan | None) -> str:
    """Returns the premise of amplification by sampling that the scenario itself violates, as a sentence; else nothing.

    All premises are about all clients: one that was not drawn might have been.
    """
    if scenario.schedule.reads:
        return "noise and number of rounds depend on earlier outputs"
    if scenario.aggregate.why_not_amplified:
        return scenario.aggregate.why_not_amplified
    if scenario.protocol.selection != "uniform":
        return "the cohort is no uniform sample"
    if noise is None or np.ptp(noise.noise_std) > 0.0:
        return "noise differs between clients, so the noise of a mean tells who is in it"
    if len(set(noise.sensitivities.tolist())) > 1:
        return "bounds differ between clients, and sampling is counted for equal ones only"
    if may_lose_updates(scenario):
        return "updates may be lost, and the mean of another cohort might have had fewer updates and less noise"
    return ""


def may_lose_updates(scenario: Scenario) -> bool:
    """Returns whether an update may fail to reach its aggregator: by loss, churn or faults.

    Deadlines are not looked at: a client that was not drawn is taken to be as much in time as those that were.
    """
    return scenario.network.loss > 0.0 or not isinstance(scenario.availability, Always) or bool(scenario.faults)
