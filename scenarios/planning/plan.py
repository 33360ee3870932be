"""The plan of a run: its cost and its privacy guarantees, estimated before it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.datasets.preparation import record_counts
from privacy.accounting.ledger import LedgerRule, release_mu2
from privacy.calibration.noise_plan import NoisePlan
from scenarios.composition.learning_setup import update_shape
from scenarios.composition.run_terms import ledger_rules, run_terms, topology_of
from scenarios.loading.checks.implausible import implausible_settings
from scenarios.loading.privacy_classes import budget_epsilons
from scenarios.metrics.headline.objective_report import objective_report
from scenarios.metrics.implausible_results import label_warning
from scenarios.planning.memory import estimate_memory, machine_bytes, refuse_what_does_not_fit
from scenarios.planning.participation import ParticipationLimits, Rehearsal, project_participation
from scenarios.planning.privacy_forecast import noise_to_signal, privacy_forecast
from scenarios.planning.problem_size import ProblemSize, shape_of
from scenarios.planning.timing import Trial, measure, proxy_latency_s
from scenarios.planning.wire_bytes import planned_bytes
from scenarios.schema import Scenario


def make_plan(scenario: Scenario, memory_bytes: int | None = None, data_dir: Path | None = None) -> dict[str, Any]:
    """Estimates the rounds, budgets, epsilons, noise, bytes, seconds and memory of a run.

    Raises:
        UserError: the run would not fit into memory.
    """
    available = machine_bytes() if memory_bytes is None else memory_bytes
    shape = shape_of(scenario, data_dir)
    # Checked twice: projecting the rounds of a far too large run would itself exhaust the memory.
    # Without edges, so this estimate lacks most messages: what it refuses is too large in any case.
    unprojected = Rehearsal(scenario.rounds, None, "", np.zeros(scenario.clients), None)
    refuse_what_does_not_fit(estimate_memory(scenario, shape, unprojected), available, scenario)
    # Noise may depend on record counts, so they are those of the run.
    records = record_counts(scenario.data, scenario.clients, data_dir, scenario.seed, scenario.reserved)
    terms = run_terms(scenario, records, update_shape(scenario, (shape.record, shape.classes), shape.dimension))
    noise = terms.noise
    rules, costs = ledger_rules(scenario, terms), _release_costs(scenario, noise)
    rehearsal = project_participation(scenario, rules, costs, terms.schedule, terms.most_trainings)
    memory = estimate_memory(scenario, shape, rehearsal)
    refuse_what_does_not_fit(memory, available, scenario)
    trial = measure(scenario, shape, rehearsal)
    return {
        "scenario": scenario.name,
        "warnings": [*implausible_settings(scenario), *_label_warning(scenario, shape)],
        "diagnosis": [] if trial is None else [finding.to_json() for finding in trial.findings],
        "seed": scenario.seed,
        "clients": scenario.clients,
        "model_size": shape.dimension,
        "records_per_client": shape.records / scenario.clients,
        "rounds": {
            "planned": scenario.rounds,
            "possible": rehearsal.rounds,
            "stopped_in": rehearsal.stopped_in,
            "because": rehearsal.why,
            "first_exhaustion_round": rehearsal.first_exhaustion,
        },
        "classes": _classes(scenario, rules, costs, rehearsal),
        "privacy": privacy_forecast(
            scenario,
            topology_of(scenario),
            noise,
            rehearsal,
            float(costs.max(initial=0.0)),
            records,
            terms.record_account,
        ),
        "noise_to_signal": None if noise is None else noise_to_signal(scenario, noise, shape.dimension),
        "bytes": _bytes(planned_bytes(scenario, rehearsal, shape.dimension, noise, trial)),
        "simulated_s": None
        if trial is None
        else {"per_round": trial.round_s, "total": trial.total_s(rehearsal.rounds)},
        "memory_bytes": memory | {"available": available},
        "about": [*_caveats(scenario, rehearsal, trial), *_remarks(scenario, records)],
    }


def _release_costs(scenario: Scenario, noise: NoisePlan | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    if noise is None:
        return np.zeros(scenario.clients)
    if noise.losses:
        return np.zeros(scenario.clients)  # counted, not added up
    # Clients share a few levels of noise and bounds; each is converted once.
    levels = np.column_stack([noise.noise_std, noise.sensitivities])
    kinds, place = np.unique(levels, axis=0, return_inverse=True)
    return np.array([release_mu2(float(std), float(moves)) for std, moves in kinds])[place.ravel()]


def _classes(
    scenario: Scenario, rules: list[LedgerRule], costs: np.ndarray[Any, Any], rehearsal: Rehearsal
) -> list[dict[str, Any]]:
    """Returns for each budget its number of clients, how long it lasts, and their expected participations."""
    if scenario.privacy is None or not rules:
        return []
    limits = ParticipationLimits.of(scenario.clients, rules, costs)
    epsilons = budget_epsilons(scenario.privacy, scenario.clients, scenario.seed)
    rate = scenario.protocol.cohort_size / scenario.clients
    classes = []
    for epsilon in np.unique(epsilons).tolist():
        mine = epsilons == epsilon
        done, by = rehearsal.participations[mine], rules[int(np.argmax(mine))].by
        # Asked about the round after the last: who could not take part in it.
        over = ~limits.eligible(rehearsal.rounds + 1, rehearsal.participations)[mine]
        classes.append(
            {
                "epsilon": epsilon,
                "by": by,
                "clients": int(mine.sum()),
                "last_round": float(limits.last_round[mine].min()),
                "releases_allowed": float(limits.releases[mine].min()),
                "expected_participations": rate * scenario.rounds,
                "participations": {"min": done.min(), "mean": done.mean(), "max": done.max()},
                "exhausted_at_the_end": int(over.sum()),
            }
        )
    return classes


def _bytes(found: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    return {
        when: {"sent": sum(kinds.values()), "by_kind": dict(sorted(kinds.items(), key=lambda item: -item[1]))}
        for when, kinds in found.items()
    }


def _remarks(scenario: Scenario, records: NDArray[np.int64]) -> list[str]:
    found = objective_report(scenario, records)
    return [] if found is None else list(found["notes"])


def _label_warning(scenario: Scenario, shape: ProblemSize) -> Iterator[str]:
    # Data sets that ship have classes; only a file may have a quantity in the place of a label.
    found = label_warning(shape.classes, shape.records) if scenario.data.form() is None else None
    if found is not None and scenario.learning == "torch":
        yield found


def _caveats(scenario: Scenario, rehearsal: Rehearsal, trial: Trial | None) -> Iterator[str]:
    if scenario.network.loss:
        yield "lost messages are counted by their expectation"
    if scenario.schedule.reads:
        yield "the schedule may end the run earlier: it depends on losses"
    if scenario.faults:
        yield "faults are left out"
    if type(scenario.availability).__name__ != "Always":
        yield (
            "clients that are offline are left out, seconds and bytes not told apart"
            if trial is None
            else f"bytes and seconds are those of a trial of {trial.rounds} rounds, with clients that come and go"
        )
    if scenario.protocol.selection == "first_come":
        yield "who comes first is not known: the smallest numbers stand for the fastest"
    if rehearsal.extrapolated or len(rehearsal.arranged) < rehearsal.rounds:
        yield f"extrapolated from the first {len(rehearsal.arranged)} rounds"
    if trial is None:
        yield "seconds are not told: a round has too many messages to be tried, or none"
    yield from _timeout_caveats(scenario)


def _timeout_caveats(scenario: Scenario) -> Iterator[str]:
    timeout_s: float | None = getattr(scenario.protocol, "leader_timeout", None)
    if timeout_s is None:
        return
    latency_s = proxy_latency_s(scenario)
    # The proxy's probe of a leader and its grant to commit are valid that long; acknowledgements take no time.
    if timeout_s <= latency_s:
        yield (
            f"protocol.leader_timeout = {timeout_s:g} s: is not above the median latency from the proxy, "
            f"{latency_s:g} s, so leaders that are up count as lost; raise it"
        )
