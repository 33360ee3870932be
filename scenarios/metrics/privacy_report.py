"""What a run promised and what is true: the `privacy` entry of the summary, `published` beside `rigorous`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.datasets.preparation import public_facts
from p2p.log.log import Log
from p2p.log.records import KIND, OUTCOME
from privacy.calibration.noise_plan import NoisePlan
from privacy.calibration.strategies import AdpdflCalibration, DpFedAvgCalibration
from privacy.settings import Privacy
from privacy.views.rigorous import Aggregations, Releases, Trace, Views, rigorous_views
from scenarios.build import Simulation
from scenarios.loading.privacy_classes import budget_epsilons, colluding_nodes
from scenarios.metrics.unaccounted import unaccounted_releases

NOT_APPLICABLE = "not applicable"
_RECORD_COUNTS = "number of records of each client (training takes time, and noise may be scaled by it)"


def report_privacy(simulation: Simulation) -> dict[str, Any]:
    """The published epsilon, the rigorous ones per view, and what was left out of both."""
    privacy, noise = simulation.scenario.privacy, simulation.noise
    unaccounted = unaccounted_releases(simulation.scenario)
    if privacy is None or noise is None:
        nothing = {"local": np.inf, "peer": {"worst": np.inf, "median": np.inf}, "model": np.inf, "unit": "client"}
        rigorous = nothing | {"unaccounted_releases": unaccounted}
        why = why_infinite(unaccounted, None)
        notes = ["no privacy: updates leave as they are"]
        return {"published": None, "rigorous": rigorous, "why_infinite": why, "notes": notes}
    exhausted = first_exhaustion(simulation)
    return {
        "published": _published(simulation, privacy, noise),
        "rigorous": _rigorous(simulation, privacy, noise, unaccounted),
        "why_infinite": why_infinite(unaccounted, noise),
        "noise_std": {"min": float(noise.noise_std.min()), "max": float(noise.noise_std.max())},
        "clip_norm": noise.clip_norm,
        "budget": budget_report(simulation),
        "first_exhaustion_round": exhausted,
        "notes": [*noise.notes, *([] if exhausted is None else [_exhaustion_note(exhausted)])],
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


def budget_report(simulation: Simulation) -> list[dict[str, Any]]:
    """For each class of clients: its epsilon, how many it has, their releases, and how many are exhausted."""
    epsilons, ledgers = [], []
    privacy, scenario = simulation.scenario.privacy, simulation.scenario
    if privacy is not None:
        epsilons = budget_epsilons(privacy, scenario.clients, scenario.seed).tolist()
        ledgers = [client.ledger for client in simulation.clients if client.ledger is not None]
    told = []
    for epsilon in sorted(set(epsilons)):
        mine = [ledger for ledger, own in zip(ledgers, epsilons, strict=True) if own == epsilon]
        counts = [ledger.releases for ledger in mine]
        begun = simulation.proxy.outcome.rounds_completed + 1
        told.append(
            {
                "epsilon": epsilon,
                "by": mine[0].rule.by,
                "clients": len(mine),
                "releases": {"min": min(counts), "mean": sum(counts) / len(counts), "max": max(counts)},
                "exhausted": sum(ledger.exhausted_from <= begun for ledger in mine),
            }
        )
    return told


def _published(simulation: Simulation, privacy: Privacy, noise: NoisePlan) -> dict[str, Any] | str | None:
    if noise.published is None:
        return NOT_APPLICABLE if claims_a_formula(privacy) else None
    rounds = int(simulation.log.privacy["round"].max(initial=0))
    delta = privacy.resolved_budget().delta
    return {"epsilon": noise.published.epsilon_after(rounds), "delta": delta, "formula": noise.published.formula}


def claims_a_formula(privacy: Privacy) -> bool:
    """Whether the noise or the budget speaks of a paper's epsilon; given or provable noise alone claims none."""
    return privacy.resolved_budget().by == "published" or isinstance(
        privacy.calibration, AdpdflCalibration | DpFedAvgCalibration
    )


def why_infinite(unaccounted: Sequence[str], noise: NoisePlan | None) -> str | None:
    """Why nothing can be proven about a run, if that is so before it starts."""
    if unaccounted:
        return unaccounted[0]
    if noise is None or not noise.noise_std.min() > 0.0:
        return "no noise is added"
    return "updates are not clipped" if math.isinf(noise.clip_norm) else None


def _rigorous(simulation: Simulation, privacy: Privacy, noise: NoisePlan, unaccounted: Sequence[str]) -> dict[str, Any]:
    scenario, delta = simulation.scenario, privacy.resolved_budget().delta
    colluders = colluding_nodes(privacy, scenario.clients, scenario.seed)
    views = rigorous_views(_trace(simulation), noise.sensitivity, delta, colluders)
    told = views_report(views, simulation.topology)
    return {
        **told,
        **({"colluders": list(colluders)} if colluders else {}),
        "unit": "client",
        "delta": delta,
        # A clipped update moves by at most 2C, whether all records of a client are replaced or one.
        "record": told,
        "unaccounted_releases": list(unaccounted),
        "declared_public": [_RECORD_COUNTS, *public_facts(scenario.data)],
    }


def views_report(views: Views, topology: str) -> dict[str, Any]:
    """The views' epsilons; `receiver` is the worst single node that gets updates, a server where there is one."""
    told = {
        "local": views.local,
        "peer": {"worst": views.peer_worst, "median": views.peer_median, "is_bound": views.peer_is_bound},
        "model": views.model,
        "receiver": views.local if topology == "central" else views.peer_worst,
    }
    return told if views.coalition is None else told | {"coalition": views.coalition}


def _trace(simulation: Simulation) -> Trace:
    table, scenario = simulation.log.privacy, simulation.scenario
    collected = simulation.proxy.outcome.collected_from
    return Trace(
        clients=scenario.clients,
        topology=simulation.topology,
        releases=Releases(
            round=table["round"].astype(np.int64),
            client=table["node"].astype(np.int64),
            noise_std=table["noise_std"].copy(),
        ),
        aggregations=_arrivals(simulation.log),
        sampling_rate=simulation.observer.privacy.sampling_rate,
        collected=collected[0] if len(collected) == 1 else None,
        accounted=not unaccounted_releases(scenario),
    )


def _arrivals(log: Log) -> Aggregations:
    """What reached whom: updates that were averaged, and those that came and were not."""
    table, columns = log.aggregations, log.messages
    used = np.flatnonzero(~table["void"])
    came = (columns["kind"] == KIND["update"]) & (columns["outcome"] == OUTCOME["delivered"]) & ~columns["used"]
    unused = np.flatnonzero(came & (columns["receiver"] == columns["destination"]))  # a relay sees no payload
    return Aggregations(
        round=_join(table["round"][used], columns["round"][unused]),
        aggregator=_join(table["aggregator"][used], columns["receiver"][unused]),
        contributor=_join(table["contributor"][used], columns["origin"][unused]),
        used=np.concatenate([np.ones(len(used), dtype=np.bool_), np.zeros(len(unused), dtype=np.bool_)]),
    )


def _join(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([first, second]).astype(np.int64)
