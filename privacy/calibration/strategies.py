"""Calibration strategies of a scenario, from epsilon to noise: published, classic baseline, rigorous."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from p2p.config.errors import UserError
from privacy.calibration.claims import FedSmpCalibration
from privacy.calibration.noise_plan import NoisePlan, PlanContext
from privacy.calibration.published_rules import (
    NO_REHASH,
    SampledRule,
    Theorem8Rule,
    WeiRule,
    theorem8_for,
    theorem8_notes,
)
from privacy.papers.cdp_discounting import best_moment, corrected_sigma, epsilon_by_own_moments, published_sigma

Epsilon = Annotated[float, Gt(0)]
Delta = Annotated[float, Gt(0), Lt(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdpdflCalibration:
    """Theorem 8 of Weng (2025), literally: the published claim, which is not proved.

    Attributes:
        epsilon: claimed epsilon after all rounds; must be below 2 ln(1/delta).
        delta: failure probability of the claim.
        m_reading: meaning of the theorem's m, all clients `M` or the cohort `m_tcs`.
        noise_reading: `eq_5_3` adds 2 C sigma/n, `theorem_8` adds 2 C sigma/m; Weng (2025) prints both.
    """

    epsilon: Epsilon = 8.0
    delta: Delta = 1e-5
    m_reading: Literal["M", "m_tcs"] = "M"
    noise_reading: Literal["eq_5_3", "theorem_8"] = "eq_5_3"

    def __post_init__(self) -> None:
        limit = 2.0 * math.log(1.0 / self.delta)
        if not self.epsilon < limit:
            raise ValueError(
                f"epsilon = {self.epsilon:g}: Theorem 8 needs epsilon < 2 ln(1/delta) = {limit:.4g}; "
                "lower epsilon or delta, or use `kind: rigorous`"
            )

    def plan(self, clip_norm: float, context: PlanContext) -> NoisePlan:
        """Returns the noise by Theorem 8 for this topology, cohort and rounds; notes list its unmet conditions."""
        theorem = theorem8_for(context, self.delta, self.m_reading)
        sigma = theorem.sigma(context.rounds, self.epsilon)
        # Weng (2025) prints both; their variances differ by (n/m)^2 (E-T07).
        divisor = context.records if self.noise_reading == "eq_5_3" else np.full(context.clients, theorem.m)
        rule = Theorem8Rule(theorem=theorem, sigma=sigma)
        # `maximum` guards against clients without records.
        return NoisePlan(
            noise_std=2.0 * clip_norm * sigma / np.maximum(divisor, 1).astype(np.float64),
            clip_norm=clip_norm,
            sensitivity=2.0 * clip_norm,
            published=rule if context.rehash else None,
            unpublished=NO_REHASH,
            notes=theorem8_notes(context, theorem, sigma, self.epsilon),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DpFedAvgCalibration:
    """Noise of DP-FedAvg: the mean of a round meets epsilon, each client adds its part, `z C / sqrt(m)`.

    Attributes:
        epsilon: for an observer of the means only, add or remove one client, Poisson sampling assumed.
        delta: failure probability.
        accountant: `rdp` (integer orders) or the tighter `pld`.
    """

    epsilon: Epsilon = 8.0
    delta: Delta = 1e-5
    accountant: Literal["rdp", "pld"] = "rdp"

    def plan(self, clip_norm: float, context: PlanContext) -> NoisePlan:
        """Returns the smallest noise multiplier that meets the target, divided over the cohort."""
        from privacy.accounting.curves.poisson_sampling import calibrated_multiplier

        try:
            z = calibrated_multiplier(context.rate, context.rounds, self.epsilon, self.delta, self.accountant)
        except (ArithmeticError, ValueError) as error:
            # RDP bounds of this library overflow for very small noise, and no large noise brings them near 0.
            raise UserError(
                f"privacy.noise.calibrate.epsilon = {self.epsilon:g}: no noise that can be computed gives it at delta "
                f"{self.delta:g} over {context.rounds} rounds; use a less extreme one"
            ) from error
        return _sampled_plan(z, clip_norm, context, self.delta, self.accountant)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseNoise:
    """Noise of DP-FedAvg with a given multiplier z, each client adds `z C / sqrt(m)`; epsilon follows from it.

    Attributes:
        multiplier: z, the noise of a round's sum in multiples of the clip norm; Weng (2025) compares with 2.
        delta: failure probability.
        accountant: `rdp` (integer orders) or the tighter `pld`.
    """

    multiplier: Annotated[float, Gt(0)] = 2.0
    delta: Delta = 1e-5
    accountant: Literal["rdp", "pld"] = "rdp"

    @property
    def epsilon(self) -> float:
        """No target: the noise is given, and only a budget of its own limits the run."""
        return math.inf

    def plan(self, clip_norm: float, context: PlanContext) -> NoisePlan:
        """Returns the given noise, divided over the cohort."""
        return _sampled_plan(self.multiplier, clip_norm, context, self.delta, self.accountant)


def _sampled_plan(
    z: float, clip_norm: float, context: PlanContext, delta: float, accountant: Literal["rdp", "pld"]
) -> NoisePlan:
    rule = SampledRule(rate=context.rate, noise_multiplier=z, delta=delta, accountant=accountant)
    note = "the accountant assumes Poisson sampling; the cohort here has a fixed size"
    if context.selection == "first_come":
        note = "first-come selection is not sampling: calibrated without amplification"
    # m independent noises of standard deviation z C / sqrt(m) sum to the z C that the accountant assumes.
    return NoisePlan(
        noise_std=np.full(context.clients, z * clip_norm / math.sqrt(context.train_per_round)),
        clip_norm=clip_norm,
        sensitivity=2.0 * clip_norm,
        published=rule,
        notes=(note,),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeiCdpCalibration:
    """Theorem 1 of Wei et al. 2020: `2C/n sqrt(2 q T ln(1/delta)) / epsilon` at a client with n records.

    Attributes:
        epsilon: claimed epsilon after all planned rounds.
        delta: failure probability of the claim.
        reading: `published` is too small by its own moments (E-C06); `corrected` is what they give.
        unit: `record` divides by the records as printed (E-C02); `client` does not, and counts no sampling (E-C03),
            so that with `corrected` the claim is proved.
    """

    epsilon: Epsilon = 10.0
    delta: Delta = 0.01
    reading: Literal["published", "corrected"] = "published"
    unit: Literal["record", "client"] = "record"

    def plan(self, clip_norm: float, context: PlanContext) -> NoisePlan:
        """Returns the noise for the planned rounds; notes list the conditions of the proof that fail."""
        # Replaced clipped weights differ by 2 C, which the formula takes as its sensitivity.
        formula = published_sigma if self.reading == "published" else corrected_sigma
        # A receiver of single messages, such as the server, knows who was sampled (E-C03): the provable rate is 1.
        rate = context.rate if self.unit == "record" else 1.0
        sigma = formula(rate, 2.0 * clip_norm, context.rounds, self.epsilon, self.delta)
        divisor = np.maximum(context.records, 1) if self.unit == "record" else np.ones(context.clients)
        return NoisePlan(
            noise_std=sigma / divisor.astype(np.float64),
            clip_norm=clip_norm,
            sensitivity=2.0 * clip_norm,
            published=WeiRule(
                epsilon=self.epsilon,
                delta=self.delta,
                rounds=context.rounds,
                corrected=self.reading == "corrected",
                noise_factor=context.noise_factor,
            ),
            notes=tuple(self._notes(context)),
        )

    def _notes(self, context: PlanContext) -> Iterator[str]:
        if self.reading == "published":
            more = epsilon_by_own_moments(self.epsilon, self.delta)
            yield f"by its own moments the published noise gives epsilon {more:.4g}, not {self.epsilon:g} (E-C06)"
            # The proof takes moments of integer order, of which there is none below 1.
            if best_moment(self.epsilon, self.delta) < 1.0:
                yield f"epsilon {self.epsilon:g} is above the 4/3 ln(1/delta) that integer moments need (E-C05)"
        if self.unit == "record":
            yield "the sensitivity 2C/n holds for one full-batch step with clipped records only (E-C02)"
            if context.rate < 1.0:
                yield "the server knows who was sampled, so sampling hides nothing from it (E-C03)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RigorousCalibration:
    """The least noise that provably meets epsilon for a view, by exact Gaussian composition.

    Attributes:
        epsilon: privacy loss to the view over the whole run.
        delta: failure probability.
        view: `local` protects against the receivers of the message; `model` only against observers of the means.
        unit: `client` or `record`; both change a clipped update by at most 2C, so the noise is the same.
        releases: planned releases per client; default one in every round, so that no client exhausts its budget.
    """

    epsilon: Epsilon = 8.0
    delta: Delta = 1e-5
    view: Literal["local", "model"] = "local"
    unit: Literal["client", "record"] = "client"
    releases: Annotated[int, Ge(1)] | None = None

    def plan(self, clip_norm: float, context: PlanContext) -> NoisePlan:
        """Returns the noise for the planned releases; `model` divides it by the root of the updates in a mean."""
        from privacy.accounting.curves.gaussian import analytic_std

        # A mean contains the noise of all k updates in it, so each needs only 1/sqrt(k) of it; k is what an aggregator
        # waits for. In gossip there is no common mean, and receivers see single updates.
        averaged = self.view == "model" and context.topology != "gossip"
        share = 1.0 / (context.in_mean or context.train_per_round) if averaged else 1.0
        # A client may be drawn in every round, and budgets must not run out before the last.
        releases = self.releases or context.rounds
        std = analytic_std(self.epsilon, self.delta, 2.0 * clip_norm, releases) * math.sqrt(share)
        notes = []
        if self.view == "model" and not averaged:
            notes.append("gossip has no single mean to hide in: `model` is calibrated like `local`")
        if averaged:
            # The noise is planned for k updates; with fewer, the budgeted view sees a larger share of each.
            notes.append("the mean of a round with missing updates has less noise than planned")
        return NoisePlan(
            noise_std=np.full(context.clients, std),
            clip_norm=clip_norm,
            sensitivity=2.0 * clip_norm,
            published=None,
            unpublished="the noise is calibrated by the exact formula, which is the rigorous figure",
            view_share=share,
            notes=tuple(notes),
        )


CALIBRATIONS: dict[str, type] = {
    "adpdfl": AdpdflCalibration,
    "dp_fedavg": DpFedAvgCalibration,
    "base_noise": BaseNoise,
    "wei_cdp": WeiCdpCalibration,
    "fed_smp": FedSmpCalibration,
    "rigorous": RigorousCalibration,
}
PUBLISHED = (AdpdflCalibration, DpFedAvgCalibration, BaseNoise, WeiCdpCalibration, FedSmpCalibration)
"""Those that claim a paper's epsilon."""
Calibration = (
    AdpdflCalibration | DpFedAvgCalibration | BaseNoise | WeiCdpCalibration | FedSmpCalibration | RigorousCalibration
)
