"""The record-level account of a run with DP-SGD in its clients, and the noise that it amounts to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodes.datasets.preparation import generator_of
from p2p.config.errors import UserError
from privacy.accounting.record_level import RecordAccount, SampledGaussian, calibrated_record_noise
from privacy.calibration.noise_plan import NoisePlan
from scenarios.accounting.unaccounted import why_no_record_level
from scenarios.schema import Scenario


def record_account(
    scenario: Scenario, records_per_client: NDArray[np.int64], noise: NoisePlan | None
) -> RecordAccount | None:
    """Returns the account of single records; None if gradients are not clipped and noised record by record.

    Args:
        noise: what the stages between training and release declare.

    Raises:
        UserError: no amount of noise keeps to the epsilon that was asked for.
    """
    training, settings = scenario.training, scenario.training.per_sample
    if settings is None:
        return None
    generator = generator_of(scenario.data)
    share = 0.0 if generator is None else generator.share
    exposures = [training.exposure(int(count), share) for count in records_per_client]
    before = [] if generator is None else [generator.charges(int(count)) for count in records_per_client]
    rates, steps = (np.array(column) for column in zip(*exposures, strict=True))
    multiplier, most = settings.noise, settings.participations
    preset = bool(scenario.schedule.reads)
    if settings.epsilon is not None or preset:
        most = most or scenario.rounds
    if settings.epsilon is not None:
        planned = {
            (*(before[client] if before else ()), SampledGaussian(exposure.rate, 1.0, exposure.steps * (most or 0)))
            for client, exposure in enumerate(exposures)
        }
        multiplier = calibrated_record_noise(planned, settings.epsilon, settings.delta)
    if multiplier is None:
        raise UserError(
            f"training.per_sample.epsilon = {settings.epsilon:g}: no noise keeps {most} trainings within it at delta "
            f"{settings.delta:g}; raise it, or lower participations or what generators of records cost"
        )
    return RecordAccount(
        rates=rates.astype(np.float64),
        steps=steps.astype(np.int64),
        multiplier=multiplier,
        delta=settings.delta,
        before=before,
        most_trainings=most,
        preset=preset,
        why_not=why_no_record_level(scenario, noise),
    )
