"""What a run promised and what is true: the `privacy` entry of the summary, `published` beside `rigorous`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import Log
from p2p.records import KIND, OUTCOME
from privacy.calibration import NoisePlan
from privacy.settings import Privacy
from privacy.views import Aggregations, Releases, Trace, rigorous_views
from scenarios.build import Simulation

NOT_APPLICABLE = "not applicable"


def report_privacy(simulation: Simulation) -> dict[str, Any]:
    """The published epsilon, the rigorous ones per view, and what was left out of both."""
    privacy, noise = simulation.scenario.privacy, simulation.noise
    if privacy is None or noise is None:
        nothing = {"local": np.inf, "peer": {"worst": np.inf, "median": np.inf}, "model": np.inf, "unit": "client"}
        return {"published": None, "rigorous": nothing, "notes": ["no privacy: updates leave as they are"]}
    return {
        "published": _published(simulation, privacy, noise),
        "rigorous": _rigorous(simulation, privacy, noise),
        "noise_std": {"min": float(noise.noise_std.min()), "max": float(noise.noise_std.max())},
        "clip_norm": noise.clip_norm,
        "notes": list(noise.notes),
    }


def _published(simulation: Simulation, privacy: Privacy, noise: NoisePlan) -> dict[str, Any] | str:
    if noise.published is None:
        return NOT_APPLICABLE
    rounds = int(simulation.log.privacy["round"].max(initial=0))
    delta = privacy.resolved_budget().delta
    return {"epsilon": noise.published.epsilon_after(rounds), "delta": delta, "formula": noise.published.formula}


def _rigorous(simulation: Simulation, privacy: Privacy, noise: NoisePlan) -> dict[str, Any]:
    delta = privacy.resolved_budget().delta
    views = rigorous_views(_trace(simulation), noise.sensitivity, delta)
    return {
        "local": views.local,
        "peer": {"worst": views.peer_worst, "median": views.peer_median, "is_bound": views.peer_is_bound},
        "model": views.model,
        "unit": "client",
        "delta": delta,
        "record": {"local": views.local, "model": views.model},
        "unaccounted_releases": [],
    }


def _trace(simulation: Simulation) -> Trace:
    table, scenario = simulation.log.privacy, simulation.scenario
    collected = simulation.proxy.outcome.collected_from
    uniform = scenario.protocol.selection == "uniform"
    return Trace(
        clients=scenario.clients,
        topology=simulation.topology,
        releases=Releases(
            round=table["round"].astype(np.int64),
            client=table["node"].astype(np.int64),
            noise_std=table["noise_std"].copy(),
        ),
        aggregations=_arrivals(simulation.log),
        sampling_rate=scenario.protocol.cohort_size / scenario.clients if uniform else None,
        collected=collected[0] if len(collected) == 1 else None,
        accounted=not scenario.plugins,
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
