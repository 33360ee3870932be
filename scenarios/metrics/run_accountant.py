"""What the accountant of a run is told before the first round."""

from __future__ import annotations

from privacy.accounting.setting import Setting
from privacy.calibration.noise_plan import NoisePlan
from privacy.noise_shares.settings import NoiseShares
from privacy.settings import Privacy
from scenarios.loading.privacy_classes import colluding_nodes
from scenarios.metrics.unaccounted import disclosed
from scenarios.schema import Scenario

_SERVER = 3  # offset of the server's node number after the clients
_CANCEL = "shares cancel: the sum of all uploads shows a client to one who knows the others (a masking scheme)"
_FACTORS = "factors on received shares (tau > 0) are random without a bound, so shares that both ends use do not count"


def setting_of(scenario: Scenario, privacy: Privacy, noise: NoisePlan, *, central: bool) -> Setting:
    """Returns what the accountant knows before the first round."""
    shares = scenario.noise_shares
    return Setting(
        clients=scenario.clients,
        spread=disclosed(scenario).spread,
        delta=privacy.resolved_budget().delta,
        rounds=scenario.rounds,
        colluders=colluding_nodes(privacy, scenario.clients, scenario.seed),
        server=scenario.clients + _SERVER if central else None,
        random_factors=shares is not None and has_random_factors(shares),
        if_infinite=_if_infinite(noise, shares),
    )


def has_random_factors(shares: NoiseShares) -> bool:
    """Returns whether received shares may be multiplied by random factors."""
    return bool(shares.tau or shares.rho or (shares.coalitions and shares.coalition_tau))


def _if_infinite(noise: NoisePlan, shares: NoiseShares | None) -> str:
    if shares is None:
        return "no noise is added" if not noise.noise_std.min() > 0.0 else "an update left without noise"
    if has_random_factors(shares):
        return _FACTORS
    return _CANCEL if shares.tau_ind == 0.0 else "an upload was left without noise that its receiver does not know"
