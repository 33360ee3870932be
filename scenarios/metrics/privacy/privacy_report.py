"""What a run promised and what is true: the `privacy` entry of the summary, `published` beside `rigorous`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nodes.datasets.preparation import public_facts
from privacy.accounting.accountant import Accountant, Views
from privacy.accounting.figures import EpsilonFigure, infinite
from privacy.accounting.record_level import RecordAccount
from privacy.calibration.noise_plan import NoisePlan
from privacy.papers.lcdp_accounting import MomentsAccountants
from privacy.settings import Privacy
from privacy.stages.release_plan import NOTHING_ADDED
from scenarios.accounting.unaccounted import unaccounted_releases
from scenarios.composition.simulation import Simulation
from scenarios.loading.privacy_classes import budget_epsilons, colluding_nodes
from scenarios.metrics.headline.number_format import epsilon_text
from scenarios.metrics.privacy.privacy_verdict import SLACK
from scenarios.metrics.privacy.view_labels import RELATION
from scenarios.schema import Scenario

RECORDS_ONLY = "noise protects single records: a client's update as a whole is neither clipped nor noised"
SHUFFLED = "batches are shuffled, so every pass uses every record in a step that may be known: nothing is amplified"
_RECORD_COUNTS = "number of records of each client (training takes time, and noise may be scaled by it)"


def report_privacy(simulation: Simulation) -> dict[str, Any]:
    """The published epsilon, the rigorous ones per view, and what was left out of both."""
    privacy, noise = simulation.scenario.privacy, simulation.noise
    unaccounted = unaccounted_releases(simulation.scenario, noise)
    records = simulation.observer.privacy.worst_record()
    of_records = {} if records is None else {"record": _records(simulation, records)}
    if privacy is None or noise is None:
        rigorous = views_report(no_views(RECORDS_ONLY if of_records else "no noise is added", ())) | {"unit": "client"}
        rigorous["unaccounted_releases"] = unaccounted
        notes = [] if of_records else ["no privacy: updates leave as they are"]
        why = why_infinite(rigorous)
        claim = RECORDS_ONLY if of_records else NOTHING_ADDED
        return {"published": claim, "rigorous": rigorous, **of_records, "why_infinite": why, "notes": notes}
    exhausted = first_exhaustion(simulation)
    rigorous = _rigorous(simulation, privacy, noise, unaccounted)
    return {
        "published": claimed(noise, int(simulation.log.privacy["round"].max(initial=0))),
        "rigorous": rigorous,
        **of_records,
        "why_infinite": why_infinite(rigorous),
        "noise_std": {"min": float(noise.stds.min()), "max": float(noise.stds.max())},
        "clip_norm": noise.clip_norm,
        "budget": budget_report(simulation),
        "first_exhaustion_round": exhausted,
        "notes": [
            *noise.notes,
            *_overspending_notes(simulation, privacy, noise, rigorous["model"]),
            *([] if exhausted is None else [_exhaustion_note(exhausted)]),
        ],
    }


def _records(simulation: Simulation, figure: EpsilonFigure) -> dict[str, Any]:
    account, settings = simulation.record_account, simulation.scenario.training.per_sample
    if account is None or settings is None:
        raise RuntimeError("a record-level figure without its account")
    trained = [client.trainings for client in simulation.clients]
    return {
        **record_entry(simulation.scenario, account, figure),
        "trainings": {"min": min(trained), "mean": sum(trained) / len(trained), "max": max(trained)},
        "unaccounted_releases": [account.why_not] if account.why_not else [],
        "declared_public": [_RECORD_COUNTS, *public_facts(simulation.scenario.data)],
    }


def record_entry(scenario: Scenario, account: RecordAccount, figure: EpsilonFigure) -> dict[str, Any]:
    """The record-level entry of a summary or plan: one figure, which holds against all views.

    Whatever any observer gets is computed from the noisy sums, so none learns more than one who sees all of them.
    """
    settings = scenario.training.per_sample
    return {
        "epsilon": figure.epsilon,
        "how": figure.how,
        "because": figure.because,
        "unit": "record",
        "relation": RELATION,
        "delta": account.delta,
        "sampling": settings and settings.sampling,
        "no_amplification_because": SHUFFLED if settings and settings.sampling == "shuffled" else "",
        "clip": settings and settings.clip,
        "noise_multiplier": account.multiplier,
        "rate": {"min": float(account.rates.min()), "max": float(account.rates.max())},
        "steps_per_training": {"min": int(account.steps.min()), "max": int(account.steps.max())},
    }


def first_exhaustion(simulation: Simulation) -> int | None:
    """The first round of the run in which some client had no budget for a release; None if that never happened."""
    ledgers = [client.ledger for client in simulation.clients if client.ledger is not None]
    first = min((ledger.exhausted_from for ledger in ledgers), default=math.inf)
    begun = min(simulation.proxy.outcome.rounds_completed + 1, simulation.scenario.rounds)
    return int(first) if first <= begun else None


def _exhaustion_note(round_number: int) -> str:
    return (
        f"from round {round_number} on some clients have no budget left: the cohort is no uniform sample of all "
        "clients any more, which published formulas and sampling presume"
    )


def _overspending_notes(simulation: Simulation, privacy: Privacy, noise: NoisePlan, model_epsilon: float) -> list[str]:
    """One note if the budget is one of the model view and the means revealed more than any client's budget allows."""
    scenario = simulation.scenario
    # The figure is the worst client's, which is not named: above the largest budget it is overspent for certain.
    limit = float(budget_epsilons(privacy, scenario.clients, scenario.seed).max())
    # Ledgers charge releases before their round's mean exists, so they presume the planned number of updates in it.
    of_model_view = privacy.resolved_budget().by == "rigorous" and noise.view_share < 1.0
    # Both epsilons come out of numerical solvers, hence the tolerance; an infinite one has its reason printed.
    if not of_model_view or math.isinf(model_epsilon) or model_epsilon <= limit * (1 + SLACK):
        return []
    spent = f"model epsilon {epsilon_text(model_epsilon)} is above {epsilon_text(limit)}"
    return [f"the budget is overspent: {spent}, because clients are charged for means of all planned updates"]


def budget_report(simulation: Simulation) -> list[dict[str, Any]]:
    """For each class of clients: its epsilon, how many it has, their releases, and how many are exhausted."""
    epsilons, ledgers = [], []
    privacy, scenario = simulation.scenario.privacy, simulation.scenario
    if privacy is not None:
        epsilons = budget_epsilons(privacy, scenario.clients, scenario.seed).tolist()
        ledgers = [client.ledger for client in simulation.clients if client.ledger is not None]
    classes = []
    for epsilon in sorted(set(epsilons)):
        mine = [ledger for ledger, own in zip(ledgers, epsilons, strict=True) if own == epsilon]
        counts = [ledger.releases for ledger in mine]
        begun = simulation.proxy.outcome.rounds_completed + 1
        classes.append(
            {
                "epsilon": epsilon,
                "by": mine[0].rule.by,
                "clients": len(mine),
                "releases": {"min": min(counts), "mean": sum(counts) / len(counts), "max": max(counts)},
                "exhausted": sum(ledger.exhausted_from <= begun for ledger in mine),
            }
        )
    return classes


def claimed(noise: NoisePlan, rounds: int) -> dict[str, Any] | str:
    """The paper's epsilon after that many rounds, with its formula; or why no paper claims one."""
    rule = noise.published
    if rule is None:
        return noise.unpublished
    figures: dict[str, Any] = {"epsilon": rule.epsilon_after(rounds), "delta": rule.delta, "formula": rule.formula}
    return figures | ({"accountants": rule.details(rounds)} if isinstance(rule, MomentsAccountants) else {})


def why_infinite(rigorous: Mapping[str, Any]) -> str | None:
    """Why nothing is proved against those who receive updates, if that is so."""
    return next((rigorous["because"][view] for view in ("receiver", "local") if rigorous["how"][view] == "inf"), None)


def no_views(because: str, colluders: Sequence[int]) -> Views:
    """The views of a run about which nothing can be proved."""
    figure = infinite(because)
    together = figure if colluders else None
    return Views(local=figure, receiver=figure, peer_worst=figure, peer_median=figure, coalition=together, model=figure)


def _rigorous(simulation: Simulation, privacy: Privacy, noise: NoisePlan, unaccounted: Sequence[str]) -> dict[str, Any]:
    scenario, delta = simulation.scenario, privacy.resolved_budget().delta
    colluders = colluding_nodes(privacy, scenario.clients, scenario.seed)
    found = simulation.observer.privacy.account(simulation.proxy.outcome.collected_from or None)
    views = views_report(no_views(unaccounted[0], colluders) if found is None else found[0])
    return {
        **views,
        **({"colluders": list(colluders)} if colluders else {}),
        "no_amplification_because": _sampling(found),
        "unit": "client",
        "delta": delta,
        # A clipped update moves by at most 2C, whether all records of a client are replaced or one.
        "record": {view: views[view] for view in ("local", "peer", "model", "receiver", "coalition") if view in views},
        "unaccounted_releases": list(unaccounted),
        "declared_public": [_RECORD_COUNTS, *public_facts(scenario.data)],
    }


def _sampling(found: tuple[Views, Accountant, str] | None) -> str:
    """Why sampling amplifies nothing in the model view: the premise that failed; empty where it may."""
    if found is None:
        return "nothing is proved"
    by_path = found[1].setting.spread == "by_path"
    return "peers that receive an update know who was sampled" if by_path else found[2]


def views_report(views: Views) -> dict[str, Any]:
    """The views' epsilons; `how` and `because` say of each whether it is exact, a bound or infinite, and why.

    `receiver` is the worst single node that gets updates, a server where there is one.
    """
    report: dict[str, Any] = {
        "local": views.local.epsilon,
        "peer": {
            "worst": views.peer_worst.epsilon,
            "median": views.peer_median.epsilon,
            "is_bound": views.peer_worst.how != "exact",
        },
        "model": views.model.epsilon,
        "receiver": views.receiver.epsilon,
    }
    figures = {"local": views.local, "receiver": views.receiver, "peer": views.peer_worst, "model": views.model}
    if views.coalition is not None:
        report["coalition"] = views.coalition.epsilon
        figures["coalition"] = views.coalition
    report["how"] = {view: figure.how for view, figure in figures.items()}
    report["because"] = {view: figure.because for view, figure in figures.items() if figure.because}
    return report
