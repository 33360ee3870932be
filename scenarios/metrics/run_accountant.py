"""The accountant of a run: what it is told before the first round, and what makes every proof void."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.protocols.api import Disclosure, disclosure_of
from privacy.accounting.accountant import Setting
from privacy.calibration.noise_plan import NoisePlan
from privacy.noise_shares.settings import NoiseShares
from privacy.settings import Privacy
from scenarios.loading.privacy_classes import colluding_nodes
from scenarios.schema import Scenario

_SERVER = 3  # offset of the server's node number after the clients
_DEPENDS = "who sends what and when depends on what was learned"
_CANCEL = "shares cancel: the sum of all uploads shows a client to one who knows the others (a masking scheme)"
_FACTORS = "factors on received shares (tau > 0) are random without a bound, so shares that both ends use do not count"


def disclosed(scenario: Scenario) -> Disclosure:
    """Returns what the protocol declares; a protocol that declares nothing is followed by all paths."""
    return disclosure_of(scenario.protocol) or Disclosure()


def unaccounted_releases(scenario: Scenario, pooled: Sequence[str] = ()) -> list[str]:
    """Returns what leaves clients and is not charged, one sentence each; any of it makes every figure infinite.

    Models, data sets and graphs release nothing. A protocol or a part of the privacy section that is a plug-in may.

    Args:
        pooled: what the preparation of the data computed over several clients' records.
    """
    found = [*pooled, *_undeclared(scenario), *disclosed(scenario).unaccounted]
    if disclosed(scenario).events_depend_on_learning:
        found.append(_DEPENDS)
    settings = scenario.noise_shares
    if settings is not None and settings.weights == "records" and not settings.records_public:
        found.append("record counts, which the weights of updates tell; declare `noise_shares.records_public`")
    sizes = None if settings is None else settings.sigma_k or settings.epsilon
    if settings is not None and settings.unequal == "list" and isinstance(sizes, tuple) and len(set(sizes)) > 1:
        found.append("sigma_k, which the number of partners tells; use `noise_shares.unequal: pad`")
    return found


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


def _undeclared(scenario: Scenario) -> list[str]:
    """Returns the plug-ins through which updates pass and that do not say what they release."""
    privacy = scenario.privacy
    parts: list[object] = [] if disclosure_of(scenario.protocol) else [scenario.protocol]
    if privacy is not None:
        parts += [privacy.clip, privacy.noise, privacy.calibration]
    names = [f"{type(part).__module__}:{type(part).__qualname__}" for part in parts]
    return [f"plug-in {name} does not declare what it releases" for name in scenario.plugins if name in names]


def _if_infinite(noise: NoisePlan, shares: NoiseShares | None) -> str:
    if shares is None:
        return "no noise is added" if not noise.noise_std.min() > 0.0 else "an update left without noise"
    if has_random_factors(shares):
        return _FACTORS
    return _CANCEL if shares.tau_ind == 0.0 else "an upload was left without noise that its receiver does not know"
