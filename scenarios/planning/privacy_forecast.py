"""Privacy forecast of a run: the run's own accountants applied to its projected rounds, without simulating events."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from nodes.proxy.cohort_selection import choose_cohort
from p2p.random_streams import stream
from privacy.calibration.noise_plan import NoisePlan
from privacy.views.rigorous import Aggregations, Releases, Topology, Trace, Views, rigorous_views
from scenarios.loading.privacy_classes import colluding_nodes
from scenarios.metrics.privacy_report import claims_a_formula, unaccounted_releases, views_report, why_infinite
from scenarios.metrics.privacy_verdict import verdict
from scenarios.planning.participation import PlannedRound, Rehearsal
from scenarios.schema import Scenario

Ids = NDArray[np.int64]


def privacy_forecast(
    scenario: Scenario, topology: Topology, noise: NoisePlan | None, rehearsal: Rehearsal, release_mu2: float
) -> dict[str, Any]:
    """Returns the `privacy` entry that the summary of a fault-free run will have, and its verdict."""
    unaccounted = unaccounted_releases(scenario)
    if scenario.privacy is None or noise is None:
        rigorous: dict[str, Any] = {"local": math.inf, "peer": {"worst": math.inf}, "model": math.inf, "unit": "client"}
        entry: dict[str, Any] = {"published": None, "rigorous": rigorous, "notes": []}
    else:
        delta = scenario.privacy.resolved_budget().delta
        views = _views(scenario, topology, noise, rehearsal, release_mu2, delta)
        rigorous = views_report(views, topology) | {"unit": "client", "delta": delta}
        entry = {"published": _published(scenario, noise, rehearsal), "rigorous": rigorous, "notes": list(noise.notes)}
    entry["rigorous"]["unaccounted_releases"] = unaccounted
    entry["why_infinite"] = why_infinite(unaccounted, noise)
    return entry | {"verdict": verdict(entry)}


def noise_to_signal(scenario: Scenario, noise: NoisePlan, dimension: int) -> dict[str, Any]:
    """Returns the ratio of the noise's expected norm to the clipping norm, for one release and for a round's mean."""
    std, averaged = float(noise.noise_std.mean()), contributions(scenario)
    # The norm of a Gaussian vector concentrates at std * sqrt(dimension); averaging k releases divides it by sqrt(k).
    release = std * math.sqrt(dimension)
    mean = release / math.sqrt(max(averaged, 1))
    signal = noise.clip_norm
    return {
        "noise_std": std,
        "release_norm": release,
        "mean_norm": mean,
        "averaged": averaged,
        "clip_norm": signal,
        "release": release / signal,
        "mean": mean / signal,
    }


def contributions(scenario: Scenario) -> int:
    """Returns how many updates enter one mean when all of them arrive."""
    protocol = scenario.protocol
    if isinstance(protocol, Gossip):
        return _mean_degree(scenario, protocol) + protocol.include_own
    if isinstance(protocol, RotatingLeader):
        return protocol.cohort_size - 1 + protocol.include_own
    return protocol.cohort_size


def _mean_degree(scenario: Scenario, protocol: Gossip) -> int:
    """Returns how many updates reach a member on average: as in the first round, where the graph fixes it."""
    if protocol.exchange_with is not None and not protocol.redraw.over_clients:
        return protocol.exchange_with
    clients = np.arange(scenario.clients)
    members = choose_cohort(clients, protocol.cohort_size, "uniform", scenario.seed, 1)
    return max(1, round(len(protocol.edges_of(scenario.seed, scenario.clients, members, 1)) / len(members)))


def _published(scenario: Scenario, noise: NoisePlan, rehearsal: Rehearsal) -> dict[str, Any] | str | None:
    if scenario.privacy is None or noise.published is None:
        return "not applicable" if scenario.privacy is not None and claims_a_formula(scenario.privacy) else None
    epsilon = noise.published.epsilon_after(rehearsal.rounds)
    return {"epsilon": epsilon, "delta": noise.published.delta, "formula": noise.published.formula}


def _views(
    scenario: Scenario, topology: Topology, noise: NoisePlan, rehearsal: Rehearsal, release_mu2: float, delta: float
) -> Views:
    """Returns the rigorous views: exact if every round was projected, otherwise bounded by the local view."""
    privacy = scenario.privacy
    colluders = colluding_nodes(privacy, scenario.clients, scenario.seed) if privacy is not None else ()
    # Plug-ins are unaccounted in any case, so the partial trace does no harm.
    if len(rehearsal.arranged) == rehearsal.rounds or scenario.plugins:
        return rigorous_views(_trace(scenario, topology, noise, rehearsal), noise.sensitivity, delta, colluders)
    from privacy.accounting.fixed_size_sampling import model_epsilon
    from privacy.accounting.gaussian import epsilon_of

    # Gaussian mechanisms compose by adding mu^2.
    local = epsilon_of(math.sqrt(rehearsal.participations.max(initial=0.0) * release_mu2), delta)
    model = local
    if topology != "gossip":
        # The smallest noise of any client gives an upper bound on epsilon.
        z = float(noise.noise_std.min()) * math.sqrt(contributions(scenario)) / noise.sensitivity
        model = min(local, model_epsilon(_rate(scenario, rehearsal) or 1.0, [z] * rehearsal.rounds, delta))
    coalition = local if colluders else None
    return Views(local=local, peer_worst=local, peer_median=local, coalition=coalition, model=model, peer_is_bound=True)


def _rate(scenario: Scenario, rehearsal: Rehearsal) -> float | None:
    """Returns the sampling rate if every round's cohort is a uniform sample of all clients, otherwise None.

    Once a client has exhausted its budget, cohorts are samples of the remaining clients only.
    """
    first = rehearsal.first_exhaustion
    sampled = scenario.protocol.selection == "uniform" and (first is None or first > rehearsal.rounds)
    return scenario.protocol.cohort_size / scenario.clients if sampled else None


def _trace(scenario: Scenario, topology: Topology, noise: NoisePlan, rehearsal: Rehearsal) -> Trace:
    """Returns the accountants' input: all releases and aggregations of the projected rounds."""
    releases = [_rows(planned.number, planned.releasing) for planned in rehearsal.arranged]
    arrived = [_arrivals(scenario, planned) for planned in rehearsal.arranged]
    released, came = (np.concatenate([*rows, np.zeros((0, width), dtype=np.int64)]) for rows, width in (
        (releases, 2), (arrived, 3)))  # fmt: skip
    asks_one = isinstance(scenario.protocol, Gossip) and scenario.protocol.collect == "random"
    return Trace(
        clients=scenario.clients,
        topology=topology,
        releases=Releases(round=released[:, 0], client=released[:, 1], noise_std=noise.noise_std[released[:, 1]]),
        aggregations=Aggregations(round=came[:, 0], aggregator=came[:, 2], contributor=came[:, 1]),
        sampling_rate=_rate(scenario, rehearsal),
        collected=int(stream(scenario.seed, "collect").choice(scenario.clients)) if asks_one else None,
        accounted=not scenario.plugins,
    )


def _rows(number: int, *columns: Ids) -> Ids:
    return np.column_stack([np.full(len(columns[0]), number), *columns]).astype(np.int64)


def _arrivals(scenario: Scenario, planned: PlannedRound) -> Ids:
    """Returns rows (round, contributor, aggregator), with an aggregator's own update where it is averaged."""
    edges, protocol = planned.round_plan.edges["update"], scenario.protocol
    rows = _rows(planned.number, edges[:, 0], edges[:, 1])
    own = np.unique(edges[:, 1]) if protocol.include_own else np.zeros(0, dtype=np.int64)
    if isinstance(protocol, Gossip) and protocol.exchange == "model" and protocol.include_own:
        own = planned.releasing  # a member that receives nothing still takes its own step
    # A server aggregates too, but has no update of its own.
    own = own[own < scenario.clients]
    return np.concatenate([rows, _rows(planned.number, own, own)])
