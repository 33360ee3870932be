"""Rows of the final table of a run, as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scenarios.metrics.diagnosis import findings_text
from scenarios.metrics.headline.generated_rows import generated_rows
from scenarios.metrics.headline.headline import TRANSPORT_ASSUMED
from scenarios.metrics.headline.measured_rows import measured_rows
from scenarios.metrics.headline.number_format import (
    accuracy_text,
    bytes_text,
    count_text,
    epsilon_text,
    joules_text,
    seconds_text,
    share_text,
)
from scenarios.metrics.privacy.privacy_verdict import published_text
from scenarios.metrics.privacy.view_labels import reasons, record_rows, view_labels


def headline_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the rows of the final table as (label, text): what is wrong first, then the figures."""
    head = summary["headline"]
    yield from trouble_rows(summary)
    if learns(summary):
        yield from _accuracy_rows(head)
    yield "in total", f"{seconds_text(summary['simulated_s'])} simulated, {bytes_text(summary['bytes']['sent'])} sent"
    yield "bytes per client", _client_bytes(head["bytes_per_client"])
    yield from _round_rows(head.get("per_round"))
    # The standby is included in the proxy's bytes.
    others = ((name, head[f"{name}_bytes"]) for name in ("proxy", "server", "relay"))
    amounts = [f"{name} {bytes_text(amount)}" for name, amount in others if amount or name == "proxy"]
    yield "other nodes", ", ".join(amounts)
    yield (
        "lost",
        f"{count_text(head['rounds_lost'])} rounds, {bytes_text(head['wasted_bytes'])} wasted, "
        f"{seconds_text(head['stalled_s'])} stalled; {count_text(head['updates_used'])} updates used",
    )
    yield from energy_rows(summary)
    privacy = summary.get("privacy") or {}
    yield from _privacy_rows(head["epsilon"], privacy)
    if learns(summary):
        yield _linked_row(head["linkability"])
    yield from measured_rows(summary)
    for note in grouped_by_erratum(privacy.get("notes") or ()):
        yield "privacy", note
    yield from _share_rows(summary)
    if summary.get("generated"):
        yield from generated_rows(summary["generated"])
    for note in (summary.get("objective") or {}).get("notes", ()):
        yield "objective", note
    if head["transport"] == TRANSPORT_ASSUMED:
        yield "transport", TRANSPORT_ASSUMED


def grouped_by_erratum(notes: Iterable[str]) -> list[str]:
    """Returns the notes, those that end with the same erratum such as `(E-T04)` as one, with where it is explained."""
    groups: dict[str, list[str]] = {}
    for note in notes:
        found = re.fullmatch(r"(.*) \((E-\w+)\)", str(note))
        groups.setdefault(found[2] if found else str(note), []).append(found[1] if found else str(note))
    return [
        f"{'; '.join(texts)} (erratum {code} of docs/privacy.md)" if re.fullmatch(r"E-\w+", code) else texts[0]
        for code, texts in groups.items()
    ]


def trouble_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields what is surely not meant, and what is wrong with the rounds; nothing for most runs."""
    for warning in summary.get("warnings") or ():
        yield "warning", str(warning)
    for finding in findings_text(summary.get("diagnosis") or ()):
        yield "diagnosis", finding


def learns(summary: Mapping[str, Any]) -> bool:
    """Returns whether a run had models to train; `learning: none` is a choice, and no accuracy is missing then."""
    return str(summary.get("learning", "torch")) != "none"


def _accuracy_rows(head: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    clients = {what: accuracy_text(value) for what, value in head["accuracy"]["clients"].items()}
    yield (
        "accuracy",
        f"{accuracy_text(head['accuracy']['collected'])} collected model; clients {clients['max']} max, "
        f"{clients['mean']} mean, {clients['min']} min",
    )
    if head["to_target"]["accuracy"] is not None:
        yield _target_row(head["to_target"])


def _share_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the rows on noise shares, if any were exchanged: residual noise, cost and epsilon."""
    shares, views = summary.get("noise_shares"), summary["privacy"].get("noise_shares") or {}
    if shares is None:
        return
    variances = (
        f"{value:.3g}" if value is not None else "unknown"
        for value in (shares["residual_variance"], shares["predicted_variance"])
    )
    yield "residual noise", "variance {} measured, {} predicted".format(*variances)
    cost = shares["bytes"]
    each, all_of_them = (bytes_text(round(cost[name])) for name in ("per_share", "per_client_round"))
    ratio = f"{cost['ratio_to_vectors']:.3g} of what vectors cost"
    yield "noise shares", f"{each} a share, {all_of_them} a client and round; {ratio}"
    if views.get("marginal") and views.get("joint"):
        joint, alone = views["joint"], views["marginal"]
        yield (
            "joint view",
            f"epsilon {epsilon_text(joint['per_round'])} a round, {epsilon_text(joint['composed'])} in total; "
            f"one upload alone {epsilon_text(alone['per_round'])} and {epsilon_text(alone['composed'])}",
        )


def _round_rows(per_round: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if per_round is not None and per_round["up"]["worst"] is not None:
        up, down = (f"{bytes_text(per_round[way]['median'])} {way}" for way in ("up", "down"))
        worst = ", ".join(
            f"{bytes_text(per_round[way]['worst'])} {way} {worst_of(per_round[way])}" for way in ("up", "down")
        )
        yield "a client's round", f"{up}, {down} (median); at most {worst}"


def worst_of(way: Mapping[str, Any]) -> str:
    """Returns who had the most bytes in a round: `(client 3, leader of round 2)`."""
    who = way["worst_is"]
    if who is None:
        return ""
    what = f"leader of round {who['round']}" if who["role"] == "leader" else f"in round {who['round']}"
    return f"(client {who['node']}, {what})"


def energy_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the energy of a run, if the scenario has rates."""
    energy = summary.get("energy_j")
    if energy is not None:
        parts = ", ".join(f"{name} {joules_text(energy[name])}" for name in ("training", "sending", "receiving"))
        each = {what: joules_text(energy["per_client"][what]) for what in ("median", "max")}
        yield "energy", f"{joules_text(energy['total'])}: {parts}; a client {each['median']} median, {each['max']} most"


def _target_row(target: Mapping[str, Any]) -> tuple[str, str]:
    label = f"to accuracy {target['accuracy']:g}"
    if target["round"] is None:
        return label, "not reached"
    return label, f"round {target['round']}, {seconds_text(target['simulated_s'])}, {bytes_text(target['bytes'])}"


def _client_bytes(spread: Mapping[str, Any]) -> str:
    middle = f"{bytes_text(spread['median'])} median, {bytes_text(spread['p95'])} 95th percentile, "
    most = spread["max_is"]
    who = f" (client {most['node']}, {most['role']})" if most else ""
    return f"{middle}{bytes_text(spread['max'])} most{who}"


def _privacy_rows(epsilon: Mapping[str, Any], privacy: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    at = "" if epsilon["delta"] is None else f", delta {epsilon['delta']:g}"
    labels = view_labels(privacy.get("rigorous") or {})
    proven = ", ".join(f"{label.figure} {label.name}" for label in labels if label.name != "median peer") or "-"
    yield "epsilon", f"published {published_text(privacy)}; rigorous {proven} ({epsilon['unit']} level{at})"
    for reason in reasons(labels):
        yield "rigorous", reason
    yield from record_rows(privacy.get("record") or {})
    yield "verdict", epsilon["verdict"]


def _linked_row(links: Mapping[str, Any]) -> tuple[str, str]:
    linked = ", ".join(f"{share_text(links.get(what))} by {what}" for what in ("address", "content", "chance"))
    best = links.get("content_at_least")
    # A lower bound: a better attack may link more.
    return "rounds linked", linked + ("" if best is None else f"; at least {share_text(best)} by {links['content_by']}")
