"""`peerveil plan`: estimates the cost and the privacy guarantees of a run before it starts."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from p2p.config.errors import UserError
from p2p.config.units import parse_quantity
from privacy.accounting.ledger import LedgerRule, release_mu2
from privacy.calibration.noise_plan import NoisePlan
from scenarios.build import ledger_rules, plan_run_noise, topology_of
from scenarios.cli.console import make_console, print_rows
from scenarios.loading.load import load_scenario
from scenarios.loading.privacy_classes import budget_epsilons
from scenarios.loading.problems import printable
from scenarios.metrics.number_format import bytes_text, count_text, epsilon_text, seconds_text
from scenarios.planning.memory import estimate_memory, machine_bytes, refuse_what_does_not_fit
from scenarios.planning.participation import Limits, Rehearsal, project_participation
from scenarios.planning.privacy_forecast import noise_to_signal, privacy_forecast
from scenarios.planning.problem_size import is_equal_split, shape_of
from scenarios.planning.timing import measure
from scenarios.planning.wire_bytes import planned_bytes
from scenarios.run_folder.json_text import to_json
from scenarios.schema import Scenario

_LEAST_MEMORY = 1e6


def plan_command(args: argparse.Namespace) -> int:
    """Prints the plan of each scenario; raises if one does not fit into memory."""
    memory = _memory(args.memory)
    scenarios = [load_scenario(ref, args.overrides, args.seed, args.allow_plugins) for ref in args.scenarios]
    plans = [make_plan(scenario, memory, args.data_dir) for scenario in scenarios]
    if args.json:
        print(to_json(plans[0] if len(plans) == 1 else {"plans": plans}))
        return 0
    console = make_console(None)
    for plan in plans:
        console.print(printable(_title(plan)))
        print_rows(console, [("", label, text) for label, text in plan_rows(plan)])
    return 0


def make_plan(scenario: Scenario, memory_bytes: int | None = None, data_dir: Path | None = None) -> dict[str, Any]:
    """Estimates the rounds, budgets, epsilons, noise, bytes, seconds and memory of a run.

    Raises:
        UserError: the run would not fit into memory.
    """
    available = machine_bytes() if memory_bytes is None else memory_bytes
    shape = shape_of(scenario, data_dir)
    # Checked twice: projecting the rounds of a far too large run would itself exhaust the memory.
    unprojected = Rehearsal(scenario.rounds, None, "", np.zeros(scenario.clients), None)
    refuse_what_does_not_fit(estimate_memory(scenario, shape, unprojected), available, scenario)
    # Records are assumed to be split equally; the caveats say so where they are not.
    noise = plan_run_noise(scenario, shape.per_client(scenario.clients))
    rules, costs = ledger_rules(scenario, noise), _release_costs(scenario, noise)
    rehearsal = project_participation(scenario, rules, costs)
    memory = estimate_memory(scenario, shape, rehearsal)
    refuse_what_does_not_fit(memory, available, scenario)
    timing = measure(scenario, shape, rehearsal)
    return {
        "scenario": scenario.name,
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
        "privacy": privacy_forecast(scenario, topology_of(scenario), noise, rehearsal, float(costs.max(initial=0.0))),
        "noise_to_signal": None if noise is None else noise_to_signal(scenario, noise, shape.dimension),
        "bytes": _bytes(planned_bytes(scenario, rehearsal, shape.dimension)),
        "simulated_s": None
        if timing is None
        else {"per_round": timing.round_s, "total": timing.total_s(rehearsal.rounds)},
        "memory_bytes": memory | {"available": available},
        "about": list(_caveats(scenario, rehearsal, timing is None)),
    }


def _release_costs(scenario: Scenario, noise: NoisePlan | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    if noise is None:
        return np.zeros(scenario.clients)
    # Clients share a few noise levels; each is converted once.
    stds, place = np.unique(noise.noise_std, return_inverse=True)
    return np.array([release_mu2(float(std), noise.sensitivity) for std in stds])[place]


def _classes(
    scenario: Scenario, rules: list[LedgerRule], costs: np.ndarray[Any, Any], rehearsal: Rehearsal
) -> list[dict[str, Any]]:
    """Returns for each budget its number of clients, how long it lasts, and their expected participations."""
    if scenario.privacy is None or not rules:
        return []
    limits = Limits.of(scenario.clients, rules, costs)
    epsilons = budget_epsilons(scenario.privacy, scenario.clients, scenario.seed)
    rate = scenario.protocol.cohort_size / scenario.clients
    classes = []
    for epsilon in np.unique(epsilons).tolist():
        mine = epsilons == epsilon
        done, by = rehearsal.participations[mine], rules[int(np.argmax(mine))].by
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


def _caveats(scenario: Scenario, rehearsal: Rehearsal, untimed: bool) -> Iterator[str]:
    if scenario.network.loss:
        yield "lost messages are counted by their expectation"
    if scenario.faults:
        yield "faults are left out"
    if type(scenario.availability).__name__ != "Always":
        yield "clients that are offline are left out, except from the seconds"
    if scenario.protocol.selection == "first_come":
        yield "who comes first is not known: the smallest numbers stand for the fastest"
    if not is_equal_split(scenario):
        yield "all clients are taken to hold the same number of records"
    if rehearsal.extrapolated or len(rehearsal.arranged) < rehearsal.rounds:
        yield f"extrapolated from the first {len(rehearsal.arranged)} rounds"
    if untimed:
        yield "seconds are not told: a round has too many messages to be tried, or none"


def _memory(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        amount = parse_quantity(text, "bytes")
    except ValueError as reason:
        raise UserError(f"--memory = {text}: {reason}") from reason
    # Written as a negation, so that NaN is refused too.
    if not amount >= _LEAST_MEMORY:
        raise UserError(f"--memory = {text}: must be at least 1 MB; write for example `8 GB`")
    return int(amount)


def _title(plan: Mapping[str, Any]) -> str:
    size = f"{count_text(plan['clients'])} clients, {count_text(plan['model_size'])} numbers in the model"
    return f"{plan['scenario']}, seed {plan['seed']}: plan for {plan['rounds']['planned']} rounds, {size}"


def plan_rows(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the rows of the plan as (label, text)."""
    yield "rounds", _rounds_text(plan["rounds"])
    for group in plan["classes"]:
        yield "budget", _class_text(group)
    yield from _privacy_rows(plan)
    for when, label in (("per_round", "bytes per round"), ("total", "bytes in all")):
        amounts = plan["bytes"][when]
        kinds = ", ".join(f"{kind} {bytes_text(amount)}" for kind, amount in amounts["by_kind"].items())
        yield label, f"{bytes_text(amounts['sent'])}: {kinds}"
    seconds = plan["simulated_s"]
    if seconds is not None:
        yield (
            "simulated time",
            f"{seconds_text(seconds['per_round'])} per round, {seconds_text(seconds['total'])} in all",
        )
    yield "memory", _memory_text(plan["memory_bytes"])
    if plan["about"]:
        yield "about", "; ".join(plan["about"])


def _rounds_text(rounds: Mapping[str, Any]) -> str:
    if rounds["stopped_in"] is None:
        possible = f"all {rounds['planned']} can be held"
    else:
        possible = f"{rounds['possible']} of {rounds['planned']}; it stops in {rounds['because']}"
    first = rounds["first_exhaustion_round"]
    return possible if first is None else f"{possible}; first client without budget in round {first}"


def _class_text(group: Mapping[str, Any]) -> str:
    done = group["participations"]
    expected = f"each takes part {done['mean']:.3g} times on average, {done['max']:.3g} at most"
    who = f"{count_text(group['clients'])} clients"
    if group["by"] == "none":
        return f"{who} without limit: {expected}"
    last, releases = group["last_round"], group["releases_allowed"]
    limit = f"until round {last:.0f}" if math.isfinite(last) else f"in {releases:.0f} rounds"
    if not math.isfinite(last) and not math.isfinite(releases):
        limit = "in every round"
    over = group["exhausted_at_the_end"]
    return (
        f"{who} with epsilon {epsilon_text(group['epsilon'])} ({group['by']}) may take part {limit}; {expected}; "
        f"{count_text(over)} will have no budget left"
    )


def _privacy_rows(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    privacy, noise = plan["privacy"], plan["noise_to_signal"]
    claim, rigorous = privacy["published"], privacy["rigorous"]
    published = epsilon_text(claim["epsilon"]) if isinstance(claim, Mapping) else (claim or "-")
    views = [("local", rigorous["local"]), ("worst peer", rigorous["peer"]["worst"]), ("model", rigorous["model"])]
    views += [("coalition", rigorous["coalition"])] if "coalition" in rigorous else []
    proven = ", ".join(f"{epsilon_text(epsilon)} {view}" for view, epsilon in views)
    at = f", delta {rigorous['delta']:g}" if "delta" in rigorous else ""
    yield "epsilon at the end", f"published {published}; rigorous {proven} ({rigorous['unit']} level{at})"
    yield "verdict", privacy["verdict"]
    if noise is not None:
        ratios = f"{noise['release']:.3g} in a release, {noise['mean']:.3g} in the mean of {noise['averaged']}"
        yield "noise to signal", f"{ratios} (noise norm to clip norm {noise['clip_norm']:g})"


def _memory_text(memory: Mapping[str, int]) -> str:
    parts = {name: amount for name, amount in memory.items() if name not in ("total", "available")}
    largest = sorted(parts, key=lambda name: -parts[name])[:3]
    named = ", ".join(f"{name} {bytes_text(parts[name])}" for name in largest)
    return f"about {bytes_text(memory['total'])} of {bytes_text(memory['available'])} ({named})"
