"""The `noise_shares` section of a scenario: noise that is split among peers and cancels in the sum."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Len, Lt

from p2p.config.errors import UserError
from p2p.config.units import PositiveSeconds
from privacy.mechanisms.scales import out_of_range

Expansion = Literal["fast", "shake"]
"""How a share's seed becomes noise; see `privacy/noise_shares/seed_expansion.py`."""
PerClient = tuple[Annotated[float, Gt(0)], ...]
Group = str | Annotated[tuple[int | str, ...], Len(1)]
"""A range such as `0-4`, or a list of clients and ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseShares:
    """Clients add noise in shares and send each share, negated, to a peer that adds it too (NISS).

    Attributes:
        epsilon: calibration target of sigma_k, one number or one per client; give this or `sigma_k`
        sigma_k: the noise of a client's own shares together, as standard deviation per coordinate of its upload
        formula: published uses the classic Gaussian formula (proved below epsilon 1), analytic the exact one
        unit_variance: the variance of one share; a client has sigma_k^2 / unit_variance partners
        tau: standard deviation of the factor on a received share; 0 cancels everything; give this or `rho`
        tau_mode: one factor per share as printed, or one per coordinate (vector), without which nothing is claimed
        rho: assumed share of colluding peers; determines tau
        rho_by: theorem3 takes rho as the exact share among partners, quantile covers a random share up to `quantile`
        quantile: probability with which `rho_by: quantile` covers the colluding partners
        coalitions: groups of clients that trust each other (such as 0-4) and are partners among themselves
        coalition_tau: tau between members of one coalition
        share_as: vector sends the noise, seed 32 bytes that both ends expand, pairwise nothing (keys are agreed)
        expansion: fast is a keyed counter generator, shake the specified reference
        policy: when peers are lost, none does nothing, omit drops shares of senders known to be gone, correct repairs
        deadline: how long shares are awaited, from receipt of the assignment; default half the protocol's
        correct_within: how long the aggregator waits for corrections
        least_shares: number of received shares that an upload needs
        when_short: with fewer, skip withholds the update, fill adds independent noise for the missing ones
        tau_ind: standard deviation of additional independent noise in each upload, which never cancels
        partners: drawn at random, or among clients whose updates reach the same peers (gossip)
        weights: p_k of an update: equal, or by records
        records_public: whether record counts are public; else weights by records are an unaccounted release
        unequal: with different sigma_k, pad gives all the largest number of partners, list reveals the numbers
    """

    epsilon: Annotated[float, Gt(0)] | PerClient | None = None
    sigma_k: Annotated[float, Gt(0)] | PerClient | None = None
    formula: Literal["analytic", "published"] = "analytic"
    unit_variance: Annotated[float, Gt(0)] = 0.01
    tau: Annotated[float, Ge(0)] | None = None
    tau_mode: Literal["scalar", "vector"] = "scalar"
    rho: Annotated[float, Ge(0), Le(1)] | None = None
    rho_by: Literal["theorem3", "quantile"] = "theorem3"
    quantile: Annotated[float, Gt(0), Lt(1)] = 0.95
    coalitions: tuple[Group, ...] = ()
    coalition_tau: Annotated[float, Ge(0)] = 0.0
    share_as: Literal["vector", "seed", "pairwise"] = "seed"
    expansion: Expansion = "fast"
    policy: Literal["none", "omit", "correct"] = "none"
    deadline: PositiveSeconds | None = None
    correct_within: PositiveSeconds = 20.0
    least_shares: Annotated[int, Ge(1)] = 1
    when_short: Literal["skip", "fill"] = "skip"
    tau_ind: Annotated[float, Ge(0)] = 0.0
    partners: Literal["random", "co_recipients"] = "random"
    weights: Literal["equal", "records"] = "equal"
    records_public: bool = False
    unequal: Literal["pad", "list"] = "pad"

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.sigma_k is None):
            raise ValueError("needs exactly one of `epsilon` and `sigma_k`; remove or add one")
        if self.tau is not None and self.rho is not None:
            raise ValueError(f"tau = {self.tau:g}: follows from `rho` where that is given; keep one of them")
        problems = out_of_range(self._scales())
        if problems:
            raise UserError(problems)

    def _scales(self) -> Iterator[tuple[str, float | None]]:
        for key in ("epsilon", "sigma_k", "unit_variance", "tau", "coalition_tau", "tau_ind"):
            given = getattr(self, key)
            for value in given if isinstance(given, tuple) else (given,):
                yield key, value

    def tau_against(self, others: int, count: int) -> float:
        """Returns the tau of a client with `count` partners among `others` peers: as given, or derived from `rho`."""
        from privacy.noise_shares.variance import collusion_quantile, least_tau2

        if self.rho is None:
            return self.tau or 0.0
        if self.rho_by == "theorem3":
            return math.sqrt(least_tau2(self.rho))
        # Among few partners the share that colludes is often above rho, which the theorem takes as exact (E-N07).
        colluding = collusion_quantile(others, round(self.rho * others), count, self.quantile)
        return math.sqrt(least_tau2(colluding / count))

    def per_sensitivity(self, client: int, delta: float) -> float | None:
        """Returns sigma_k over the sensitivity of an upload if it is calibrated, None if sigma_k is given."""
        from privacy.accounting.curves.gaussian import classic_std, mu_of

        if self.epsilon is None:
            return None
        epsilon = self.epsilon[client] if isinstance(self.epsilon, tuple) else self.epsilon
        # Both give sigma over sensitivity: the paper's formula is proved below epsilon 1 only (E-N08).
        return classic_std(epsilon, delta, 1.0) if self.formula == "published" else 1.0 / mu_of(epsilon, delta)

    def given_sigma(self, client: int) -> float:
        """Returns sigma_k as given in the scenario."""
        return self.sigma_k[client] if isinstance(self.sigma_k, tuple) else float(self.sigma_k or 0.0)
