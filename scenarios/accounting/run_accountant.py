"""What the accountant of a run is told before the first round."""

from __future__ import annotations

from nodes.schedules.discounting import report_mu2
from privacy.accounting.curves.zcdp import zcdp_budget
from privacy.accounting.ledger import release_mu2
from privacy.accounting.setting import Setting
from privacy.calibration.noise_plan import NoisePlan
from privacy.noise_shares.settings import NoiseShares
from privacy.settings import Privacy
from scenarios.accounting.unaccounted import disclosed, may_be_altered
from scenarios.loading.privacy_classes import budget_epsilons, colluding_nodes
from scenarios.node_numbers import SERVER
from scenarios.schema import Scenario

_AGGREGATE_ONLY = "noise is added to the aggregate only: updates leave their clients without any"
_AFTER = "noise of the aggregate comes after momentum, and is counted as if it came before, which proves no less"
_ALTERED = "updates may be altered on their way unnoticed, so an aggregate is not counted as hiding them in each other"
_ALTERED_BARE = "updates without noise of their own may be altered on their way unnoticed, and then nothing bounds them"
_PROCESSED = "a stage after the noise leaves less of each release than is counted"
_CANCEL = "shares cancel: the sum of all uploads shows a client to one who knows the others (a masking scheme)"
_FACTORS = "factors on received shares (tau > 0) are random without a bound, so shares that both ends use do not count"


def setting_of(scenario: Scenario, privacy: Privacy, noise: NoisePlan, *, central: bool) -> Setting:
    """Returns what the accountant knows before the first round."""
    shares, reads = scenario.noise_shares, bool(scenario.schedule.reads)
    return Setting(
        clients=scenario.clients,
        spread=disclosed(scenario).spread,
        delta=privacy.resolved_budget().delta,
        rounds=scenario.rounds,
        colluders=colluding_nodes(privacy, scenario.clients, scenario.seed),
        server=scenario.clients + SERVER if central else None,
        random_factors=shares is not None and has_random_factors(shares),
        if_infinite=_bare(scenario) if _noise_of_aggregate_only(scenario, noise) else _if_infinite(noise, shares),
        losses=tuple(dict.fromkeys(noise.losses)),
        only_bounds=_only_bounds(scenario, noise),
        preset_rho=_preset_rho(scenario, privacy, noise) if reads else None,
        # Ledgers with a rigorous budget charge every report themselves.
        preset_reports=0.0 if privacy.resolved_budget().by == "rigorous" else _reports_rho(scenario),
    )


def _bare(scenario: Scenario) -> str:
    return _ALTERED_BARE if may_be_altered(scenario) else _AGGREGATE_ONLY


def _only_bounds(scenario: Scenario, noise: NoisePlan) -> str:
    if not noise.linear:
        return _PROCESSED
    if disclosed(scenario).spread == "to_all" and may_be_altered(scenario):
        return _ALTERED
    return _AFTER if scenario.aggregate.noise_after_momentum else ""


def _preset_rho(scenario: Scenario, privacy: Privacy, noise: NoisePlan) -> float:
    """Returns the budget that no client can overspend, whatever the schedule reads, as zCDP.

    A rigorous budget is one; otherwise it is what all planned rounds with the first round's noise spend, and with it a
    report of the loss in each: the schedule spreads that total over fewer rounds.
    """
    by, _, delta = privacy.resolved_budget()
    if by == "rigorous":
        return zcdp_budget(float(budget_epsilons(privacy, scenario.clients, scenario.seed).max()), delta)
    pairs = zip(noise.noise_std.tolist(), noise.sensitivities.tolist(), strict=True)
    each = max(release_mu2(std, sensitivity) for std, sensitivity in set(pairs))
    return scenario.rounds * each / 2.0 + _reports_rho(scenario)


def _reports_rho(scenario: Scenario) -> float:
    """Returns what the reports of losses cost a client at most, as zCDP: one in each round."""
    return scenario.rounds * report_mu2(scenario.schedule) / 2.0


def _noise_of_aggregate_only(scenario: Scenario, noise: NoisePlan) -> bool:
    return scenario.aggregate.noise is not None and not noise.noise_std.any() and scenario.noise_shares is None


def has_random_factors(shares: NoiseShares) -> bool:
    """Returns whether received shares may be multiplied by random factors."""
    return bool(shares.tau or shares.rho or (shares.coalitions and shares.coalition_tau))


def _if_infinite(noise: NoisePlan, shares: NoiseShares | None) -> str:
    if shares is None:
        return "no noise is added" if not noise.noised else "an update left without noise"
    if has_random_factors(shares):
        return _FACTORS
    return _CANCEL if shares.tau_ind == 0.0 else "an upload was left without noise that its receiver does not know"
