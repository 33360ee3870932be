"""Privacy forecast of a run: the run's own accountants applied to its projected rounds, without simulating events."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from nodes.proxy.cohort_selection import choose_cohort
from p2p.random_streams import stream
from privacy.accounting.accountant import Accountant, Views
from privacy.accounting.content_log import RoundContents
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.curves.loss_events import composed_epsilon
from privacy.accounting.curves.zcdp import zcdp_epsilon
from privacy.accounting.figures import EpsilonFigure
from privacy.accounting.record_level import RecordAccount
from privacy.accounting.sampling_premises import Amplification, Draw
from privacy.calibration.noise_plan import NoisePlan
from privacy.settings import Privacy
from privacy.stages.release_plan import NOTHING_ADDED
from scenarios.accounting.round_contents import Aggregation, aggregated, aggregation_of
from scenarios.accounting.run_accountant import setting_of
from scenarios.accounting.sampling import why_not_sampled
from scenarios.accounting.unaccounted import disclosed, sums_hide, unaccounted_releases
from scenarios.metrics.privacy.privacy_report import (
    RECORDS_ONLY,
    claimed,
    no_views,
    record_entry,
    views_report,
    why_infinite,
)
from scenarios.metrics.privacy.privacy_verdict import verdict
from scenarios.planning.participation import PlannedRound, Rehearsal
from scenarios.schema import Scenario

Topology = Literal["gossip", "pseudo_central", "central"]


def privacy_forecast(
    scenario: Scenario,
    topology: Topology,
    noise: NoisePlan | None,
    rehearsal: Rehearsal,
    release_mu2: float,
    records_per_client: NDArray[np.int64],
    records: RecordAccount | None = None,
) -> dict[str, Any]:
    """Returns the `privacy` entry that the summary of a fault-free run will have, and its verdict."""
    unaccounted = unaccounted_releases(scenario, noise)
    if scenario.privacy is None or noise is None:
        none = no_views("no noise is added" if records is None else RECORDS_ONLY, ())
        claim = NOTHING_ADDED if records is None else RECORDS_ONLY
        rigorous: dict[str, Any] = views_report(none) | {"unit": "client"}
        entry: dict[str, Any] = {"published": claim, "rigorous": rigorous, "notes": []}
    else:
        delta = scenario.privacy.resolved_budget().delta
        views = _views(scenario, scenario.privacy, topology, noise, rehearsal, release_mu2, records_per_client)
        rigorous = views_report(views) | {"unit": "client", "delta": delta}
        # Not proved before the run: whatever is lost or late takes its noise out of the means.
        rigorous["how"] = {view: how if how == "inf" else "projected" for view, how in rigorous["how"].items()}
        entry = {"published": claimed(noise, rehearsal.rounds), "rigorous": rigorous, "notes": list(noise.notes)}
    entry["rigorous"]["unaccounted_releases"] = unaccounted
    if records is not None:
        # Rounded up: an extrapolated number of participations is an expectation.
        figure = records.worst(np.ceil(rehearsal.participations).astype(np.int64))
        entry["record"] = record_entry(scenario, records, figure)
        entry["record"]["how"] = "inf" if figure.how == "inf" else "projected"
    entry["why_infinite"] = why_infinite(entry["rigorous"])
    return entry | {"verdict": verdict(entry)}


def noise_to_signal(scenario: Scenario, noise: NoisePlan, dimension: int) -> dict[str, Any]:
    """Returns the ratio of the noise's expected norm to the clipping norm, for one release and for a round's mean."""
    std, averaged = float(noise.stds.mean()), contributions(scenario)
    # The norm of a Gaussian vector concentrates at std * sqrt(dimension); averaging k releases divides it by sqrt(k).
    release = std * math.sqrt(noise.kept or dimension)
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


def _views(
    scenario: Scenario,
    privacy: Privacy,
    topology: Topology,
    noise: NoisePlan,
    rehearsal: Rehearsal,
    release_mu2: float,
    records_per_client: NDArray[np.int64],
) -> Views:
    """Returns the views of the projected rounds; bounded by the local view where not every round was projected."""
    setting = setting_of(scenario, privacy, noise, central=topology == "central")
    unaccounted = unaccounted_releases(scenario, noise)
    if unaccounted:
        return no_views(unaccounted[0], setting.colluders)
    noised = noise.noised or (scenario.aggregate.noise is not None and setting.spread == "to_all")
    if math.isinf(noise.sensitivity) or not noised:
        return no_views("updates are not clipped" if noised else "no noise is added", setting.colluders)
    if len(rehearsal.arranged) < rehearsal.rounds or scenario.noise_shares is not None:
        # Gaussian mechanisms compose by adding mu^2. With shares, their noise comes on top of what is counted here.
        # The client that takes part most often bounds all others.
        most = float(rehearsal.participations.max(initial=0.0))
        counts = [(loss, math.ceil(most)) for loss in setting.losses]
        epsilon = epsilon_of(math.sqrt(most * release_mu2), setting.delta)
        if counts:
            # One loss for each client, never several for one: clients differ in their bounds, and the worst one counts.
            epsilon = max(composed_epsilon(0.0, [each], setting.delta) for each in counts)
        if setting.preset_rho is not None:
            epsilon = zcdp_epsilon(setting.preset_rho, setting.delta)
        figure = EpsilonFigure(epsilon, "bound", "the plan counts every release as seen by everyone")
        views = no_views("", setting.colluders)
        bound = replace(views, local=figure, receiver=figure, peer_worst=figure, peer_median=figure, model=figure)
        return bound if views.coalition is None else replace(bound, coalition=figure)
    accountant, amplification = Accountant(setting), Amplification()
    shares = records_per_client / max(int(records_per_client.sum()), 1)
    aggregation = aggregation_of(scenario, noise, shares)
    for planned in rehearsal.arranged:
        contents = _contents(scenario, noise, planned, aggregation)
        accountant.add(contents)
        amplification.add(contents, _draw(scenario, noise, rehearsal, planned))
    views = accountant.views(_collected(scenario))
    if setting.spread == "by_path":
        return views
    return replace(views, model=amplification.amplified(views.model, setting.delta))


def _collected(scenario: Scenario) -> list[int] | None:
    """Returns the clients whose models the server will ask for, if that is known."""
    asked = getattr(scenario.protocol, "collect", "")
    if asked == "random":
        return [int(stream(scenario.seed, "collect").choice(scenario.clients))]
    return list(range(scenario.clients)) if asked == "mean" else None


def _draw(scenario: Scenario, noise: NoisePlan, rehearsal: Rehearsal, planned: PlannedRound) -> Draw:
    """Returns how a projected cohort is drawn: from all clients, as long as none has exhausted its budget."""
    first, failed = rehearsal.first_exhaustion, why_not_sampled(scenario, noise)
    if not failed and first is not None and first <= planned.number:
        failed = "some clients have no budget left, so the cohort depends on who took part before"
    cohort = scenario.protocol.cohort_size
    return Draw(cohort / scenario.clients, cohort, failed)


def _contents(
    scenario: Scenario, noise: NoisePlan, planned: PlannedRound, aggregation: Aggregation | None
) -> RoundContents:
    """Returns the contents of a projected round: every update arrives in time and is used."""
    clients = np.sort(planned.releasing)
    edges = planned.round_plan.edges["update"]
    edges = edges[np.isin(edges[:, 0], clients)]
    place = np.searchsorted(clients, edges[:, 0])
    # (receiver, row of the release): what `RoundContents` takes.
    receipts = np.column_stack([edges[:, 1], place])
    aggregators = np.unique(edges[:, 1])
    own = aggregators[np.isin(aggregators, clients)] if scenario.protocol.include_own else aggregators[:0]
    protocol = scenario.protocol
    if isinstance(protocol, Gossip) and protocol.exchange == "model" and protocol.include_own:
        own = clients  # a member that receives nothing still takes its own step
    # An aggregator's own update is averaged too; a server has none.
    own_rows = np.column_stack([np.searchsorted(clients, own), own])
    used = np.concatenate([np.column_stack([place, edges[:, 1]]), own_rows])
    known: dict[str, Any] = {"used": used, "sums": np.zeros((0, len(clients)))}
    if disclosed(scenario).spread == "to_all":
        sums = np.zeros((len(aggregators), len(clients)))
        sums[np.searchsorted(aggregators, used[:, 1]), used[:, 0]] = 1.0
        known = {"sums": sums} | aggregated(aggregation, sums, clients, aggregators)
        if not sums_hide(scenario, noise):
            known = {"sums": sums[:0], "opened": np.flatnonzero(sums.any(axis=0))}
    return RoundContents(
        round_number=planned.number,
        clients=clients,
        sensitivity=noise.sensitivities[clients],
        variance=np.square(noise.noise_std[clients]),
        receipts=receipts,
        losses=tuple(noise.losses[client] for client in clients.tolist()) if noise.losses else (),
        **known,
    )
