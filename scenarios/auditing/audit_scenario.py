"""Audits a scenario: runs it with canaries and compares, per view, what is measured, proved and published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from privacy.audits.settings import Audit
from privacy.audits.verdict import CanaryScores, lower_bounds
from scenarios.auditing.audited_run import ViewScores, run_with_canaries
from scenarios.composition.simulation import Simulation
from scenarios.loading.checks.adversary_checks import audit_problems
from scenarios.loading.privacy_classes import colluding_nodes
from scenarios.metrics.privacy.noise_share_report import add_share_views
from scenarios.metrics.privacy.privacy_report import report_privacy, views_report
from scenarios.metrics.privacy.privacy_verdict import epsilon_of
from scenarios.schema import Scenario

Scores = NDArray[np.float64]
SLACK = 1e-6
"""Relative tolerance of the comparison: proved figures come out of numerical solvers."""


def audit_scenario(
    scenario: Scenario,
    audit: Audit,
    data_dir: Path | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda number: None,
) -> dict[str, Any]:
    """Returns the audit of a scenario: for each view lower bounds, what is proved, what is published, a verdict."""
    refuse_unfit(scenario, audit)
    kept: list[tuple[NDArray[np.int64], Scores, ViewScores]] = []
    for number in range(audit.runs):
        simulation, canaries, scores = run_with_canaries(scenario, audit, number, data_dir, threads)
        kept.append((canaries.nodes, canaries.coins, scores))
        progress(number + 1)
    privacy = _claims(simulation, add_share_views(simulation, report_privacy(simulation)), audit)
    views = _views(simulation, privacy["rigorous"], [scores for _, _, scores in kept], kept[0][0])
    delta = float(privacy["rigorous"]["delta"])
    coins = np.stack([tossed for _, tossed, _ in kept])
    error = (1.0 - audit.confidence) / len(views)
    compared = {
        name: _compare(privacy, name, CanaryScores(scores=found, coins=coins), delta, error, gaussian)
        for name, (found, gaussian) in views.items()
    }
    return {
        "views": compared,
        "delta": delta,
        "confidence": audit.confidence,
        "canaries": len(kept[0][0]),
        "clients": scenario.clients,
        "runs": audit.runs,
        "others": audit.others,
        "neighbours": audit.neighbours,
        "published": epsilon_of(privacy["published"]),
        "accuracy_with_canaries": _accuracy(simulation),
        "cost": _cost(len(kept[0][0]), scenario.clients, audit),
    }


def _claims(simulation: Simulation, privacy: dict[str, Any], audit: Audit) -> dict[str, Any]:
    """Returns the claims about the relation that the canaries test.

    What is proved and published is about replaced clients. In/out canaries are compared with the add/remove figures
    only, which nothing else in a summary shows.
    """
    if audit.neighbours == "replace":
        return privacy
    views = simulation.observer.privacy.add_remove_views(simulation.proxy.outcome.collected_from or None)
    # Without them nothing is proved, by either relation.
    proved = {} if views is None else views_report(views)
    return {**privacy, "rigorous": {**privacy["rigorous"], **proved}, "published": None}


def refuse_unfit(scenario: Scenario, audit: Audit) -> None:
    """Raises UserError for what cannot be audited by canaries."""
    parts = scenario.learning, scenario.privacy, scenario.noise_shares, scenario.schedule
    problems = list(audit_problems(*parts, audit))
    if problems:
        raise UserError([f"audit: {problem}" for problem in problems], scenario.name)


def _views(
    simulation: Simulation, rigorous: Mapping[str, Any], runs: list[ViewScores], nodes: NDArray[np.int64]
) -> dict[str, tuple[Scores, bool]]:
    """Returns the scores of each view, a row per run, and whether it is proved Gaussian."""
    to_all, clients = simulation.topology != "gossip", simulation.scenario.clients
    noise = simulation.noise
    # Noise of other kinds has other trade-off functions.
    normal = noise is not None and not noise.losses
    proved = {view: normal and how != "inf" for view, how in rigorous["how"].items()}
    # Events are the same in all runs, so the first one tells who received most.
    received = Counter(node for heard in runs[0].heard.values() for node in heard.by)
    receiver = max(received, key=lambda node: received[node], default=0)
    peer = max((node for node in received if node < clients), key=lambda node: received[node], default=0)
    teams = {"local": set(received), "receiver": {receiver}, "peer": {peer}}
    privacy = simulation.scenario.privacy
    colluders = () if privacy is None else colluding_nodes(privacy, clients, simulation.scenario.seed)
    if colluders:
        teams["coalition"] = set(colluders)
    found = {
        # All receivers together are not excluded from being guessed: each is guessed by the others.
        view: (np.stack([_seen_by(one, team, nodes, to_all, own=view == "local") for one in runs]), proved[view])
        for view, team in teams.items()
    }
    found["model"] = np.stack([_from_models(one, nodes) for one in runs]), proved["model"] and _unamplified(rigorous)
    return found


def _unamplified(rigorous: Mapping[str, Any]) -> bool:
    return bool(rigorous.get("no_amplification_because"))


def _seen_by(one: ViewScores, team: set[int], nodes: NDArray[np.int64], to_all: bool, *, own: bool) -> Scores:
    """Returns the scores of nodes that pool what they received; where aggregates are public, also by these.

    An aggregate counts for a canary in rounds in which the team did not receive its own update. Canaries that are
    members of the team are guessed only if `own`.
    """
    scores = np.full(len(nodes), np.nan)
    direct: set[tuple[int, int]] = set()
    for heard in one.heard.values():
        if heard.by & team:
            scores[heard.canary] = np.nan_to_num(scores[heard.canary]) + heard.score
            direct.add((heard.canary, heard.round_number))
    for number, steps in one.models.items() if to_all else ():
        unheard = np.array([(who, number) not in direct for who in range(len(nodes))])
        scores[unheard] = np.nan_to_num(scores[unheard]) + steps[unheard]
    if not own:
        scores[np.isin(nodes, list(team))] = np.nan
    return scores


def _from_models(one: ViewScores, nodes: NDArray[np.int64]) -> Scores:
    if not one.models:
        return np.full(len(nodes), np.nan)
    total: Scores = np.sum(list(one.models.values()), axis=0)
    return total


def _compare(
    privacy: Mapping[str, Any], view: str, found: CanaryScores, delta: float, error: float, gaussian: bool
) -> dict[str, Any]:
    rigorous = privacy["rigorous"]
    proved = rigorous["peer"]["worst"] if view == "peer" else rigorous[view]
    measured = lower_bounds(found, delta, error, gaussian=gaussian)
    published = epsilon_of(privacy["published"])
    return {
        **measured,
        "proved": proved,
        "how": rigorous["how"][view],
        "published": published,
        "proof_refuted": bool(measured["epsilon"] > proved * (1.0 + SLACK)),
        "published_refuted": published is not None and bool(measured["epsilon"] > published * (1.0 + SLACK)),
    }


def _accuracy(simulation: Simulation) -> float | None:
    _, collected = simulation.final_scores()
    return None if collected is None else collected[0]


def _cost(canaries: int, clients: int, audit: Audit) -> str:
    trained = "the others trained" if audit.others == "train" else "the others sent noise only"
    if canaries == clients:
        trained = "there were no others"
    runs = "a run of its own" if audit.runs == 1 else f"{audit.runs} runs of their own"
    sent = f"{canaries} of {clients} clients sent canaries instead of updates in {runs}; {trained}"
    return sent if audit.neighbours == "replace" else f"{sent}; in or out by a coin, compared with add/remove figures"
