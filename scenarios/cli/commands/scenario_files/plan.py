"""`peerveil plan`: estimates the cost and the privacy guarantees of a run before it starts."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from typing import Any

from p2p.config.errors import UserError
from p2p.config.units import parse_quantity
from scenarios.cli.console import make_console, print_rows
from scenarios.loading.load import load_scenario
from scenarios.loading.plugins import blaming_plugins
from scenarios.loading.problems import printable
from scenarios.metrics.headline.headline_rows import trouble_rows
from scenarios.metrics.headline.number_format import bytes_text, count_text, epsilon_text, seconds_text
from scenarios.metrics.privacy.privacy_verdict import published_text
from scenarios.metrics.privacy.view_labels import reasons, record_rows, view_labels
from scenarios.planning.plan import make_plan
from scenarios.run_folder.json_text import to_json

_LEAST_MEMORY = 1e6


def plan_command(args: argparse.Namespace) -> int:
    """Prints the plan of each scenario; raises if one does not fit into memory."""
    memory = _memory(args.memory)
    scenarios = [load_scenario(ref, args.overrides, args.seed, args.allow_plugins) for ref in args.scenarios]
    plans = []
    for scenario in scenarios:
        with blaming_plugins(scenario.plugins):
            plans.append(make_plan(scenario, memory, args.data_dir))
    if args.json:
        print(to_json(plans[0] if len(plans) == 1 else {"plans": plans}))
        return 0
    console = make_console(None)
    for plan in plans:
        console.print(printable(_title(plan)))
        print_rows(console, [("", label, text) for label, text in plan_rows(plan)])
    return 0


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
    yield from trouble_rows(plan)
    yield "rounds", _rounds_text(plan["rounds"])
    for group in plan["classes"]:
        yield "budget", _class_text(group)
    yield from _privacy_rows(plan)
    for when, label in (("per_round", "bytes per round"), ("total", "bytes in total")):
        amounts = plan["bytes"][when]
        kinds = ", ".join(f"{kind} {bytes_text(amount)}" for kind, amount in amounts["by_kind"].items())
        yield label, f"{bytes_text(amounts['sent'])}: {kinds}"
    seconds = plan["simulated_s"]
    if seconds is not None:
        yield (
            "simulated time",
            f"{seconds_text(seconds['per_round'])} per round, {seconds_text(seconds['total'])} in total",
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
    rigorous = privacy["rigorous"]
    labels = view_labels(rigorous)
    proven = ", ".join(f"{label.figure} {label.name}" for label in labels if label.name != "median peer")
    at = f", delta {rigorous['delta']:g}" if "delta" in rigorous else ""
    yield "epsilon at the end", f"published {published_text(privacy)}; rigorous {proven} ({rigorous['unit']} level{at})"
    for reason in reasons(labels):
        yield "rigorous", reason
    yield from record_rows(privacy.get("record") or {})
    yield "verdict", privacy["verdict"]
    if noise is not None:
        ratios = f"{noise['release']:.3g} in a release, {noise['mean']:.3g} in the mean of {noise['averaged']}"
        yield "noise to signal", f"{ratios} (noise norm to clip norm {noise['clip_norm']:g})"


def _memory_text(memory: Mapping[str, int]) -> str:
    parts = {name: amount for name, amount in memory.items() if name not in ("total", "available")}
    largest = sorted(parts, key=lambda name: -parts[name])[:3]
    named = ", ".join(f"{name} {bytes_text(parts[name])}" for name in largest)
    return f"about {bytes_text(memory['total'])} of {bytes_text(memory['available'])} ({named})"
