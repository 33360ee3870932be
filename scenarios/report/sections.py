"""The sections of a run's page: text from the summary, and placeholders for the charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.metrics.headline_rows import headline_rows
from scenarios.metrics.number_format import accuracy_text, bytes_text, count_text, seconds_text
from scenarios.report import html
from scenarios.report.alt_text import (
    accuracy_alternative,
    bytes_alternative,
    dropout_alternative,
    node_bytes_alternative,
)
from scenarios.report.picture_sections import timeline, topology
from scenarios.report.privacy_section import privacy_section
from scenarios.report.run_data import RunData

LINKS = (
    ("headline", "Headline"),
    ("accuracy", "Accuracy"),
    ("bytes", "Bytes"),
    ("timeline-section", "Timeline"),
    ("topology-section", "Topology"),
    ("dropouts", "Dropouts"),
    ("privacy", "Privacy"),
    ("attacks", "Attacks"),
    ("scenario", "Scenario"),
    ("reproduce", "Reproduce"),
)


def run_body(run_data: RunData, data: Mapping[str, Any], attacks: str) -> str:
    """Returns the HTML of all sections in order; `attacks` is empty if there were none."""
    parts = (
        header(run_data),
        headline(run_data),
        _accuracy(data),
        _bytes(data),
        timeline(data),
        topology(data),
        _dropouts(run_data),
        privacy_section(run_data, data),
        attacks,
        html.section("scenario", "The scenario", html.code(run_data.run.scenario_text or "(no scenario.yaml)")),
        _reproduce(run_data),
    )
    return "\n".join(parts)


def header(run_data: RunData) -> str:
    """Returns the title, the scenario's question and a one-sentence answer."""
    summary = run_data.summary
    title = f"<h1>{html.text(run_data.name)}</h1>"
    question = html.paragraph(str(summary.get("question") or ""), "question")
    return f"<header>{title}{question}{html.paragraph(answer(summary), 'answer')}</header>"


def answer(summary: Mapping[str, Any]) -> str:
    """Returns a one-sentence description of the run."""
    head = summary["headline"]
    # Summaries of other versions may lack keys; the page does without the sentence then.
    try:
        accuracy, spread = head["accuracy"], head["bytes_per_client"]
        right = accuracy["collected"] if accuracy["collected"] is not None else accuracy["clients"]["mean"]
        what = "the collected model" if accuracy["collected"] is not None else "the mean client"
        learned = f"{what} reaches accuracy {accuracy_text(right)}" if right is not None else "nothing was learned"
        return (
            f"After {count_text(summary['rounds_completed'])} rounds and {seconds_text(summary['simulated_s'])} of "
            f"simulated time {learned}, at {bytes_text(spread['median'])} per client (median) and "
            f"{bytes_text(summary['bytes']['sent'])} in all; {head['epsilon']['verdict']}"
        )
    except (KeyError, TypeError):
        return ""


def headline(run_data: RunData) -> str:
    """Returns the headline figures, the same as in the console's final table."""
    try:
        rows = list(headline_rows(run_data.summary))
    # A summary of another version; the page is still worth showing without the table.
    except (KeyError, TypeError, AttributeError, ValueError):
        rows = []
    missing = () if rows else ("The summary is of another version; its headline cannot be told.",)
    done = f"{run_data.summary.get('rounds_completed', '?')} of {run_data.summary.get('rounds_planned', '?')} rounds"
    why = f"seed {run_data.summary.get('seed', '?')}: {done}, {run_data.summary.get('stopped_because', 'unknown')}"
    table = html.facts([("run", why), *rows])
    return html.section("headline", "Headline", html.notes((*run_data.notes, *missing)), table)


def _accuracy(data: Mapping[str, Any]) -> str:
    rounds = data["rounds"]
    over_rounds = html.figure(
        "accuracy-rounds",
        "Share of test records classified correctly after each round's aggregation. Line: mean over the evaluated "
        "clients; band: worst to best client; dotted: mean of the local models before aggregation, "
        "as trained: without clipping and noise, so nobody but their owners ever has them.",
        accuracy_alternative(rounds, "round"),
    )
    over_time = html.figure(
        "accuracy-time",
        "The same against simulated time (seconds): each point stands where its round ended.",
        accuracy_alternative(rounds, "time"),
    )
    return html.section("accuracy", "Accuracy", f'<div class="pair">{over_rounds}{over_time}</div>')


def _bytes(data: Mapping[str, Any]) -> str:
    by_round = html.figure(
        "bytes-rounds",
        "Bytes handed over in each round by kind of message, retransmissions and sealing included.",
        bytes_alternative(data["rounds"]),
    )
    by_node = html.figure(
        "bytes-nodes",
        "Bytes sent and received by each node over the whole run."
        if "histogram" not in data["traffic"]
        else "How many clients sent and received how many bytes over the whole run.",
        node_bytes_alternative(data["traffic"]),
    )
    return html.section("bytes", "Bytes", f'<div class="pair">{by_round}{by_node}</div>')


def _dropouts(run_data: RunData) -> str:
    summary = run_data.summary
    rows = []
    for key, name in (("absences", "absent when invited"), ("missing", "updates missing"), ("dropouts", "dropouts")):
        entry = summary.get(key) or {}
        reasons = ", ".join(f"{count_text(n)} {word}" for word, n in (entry.get("by_reason") or {}).items() if n)
        rows.append((name, f"{count_text(entry.get('total'))}{f': {reasons}' if reasons else ''}"))
    facts = html.facts(rows)
    if not len(run_data.log.dropouts):
        return html.section("dropouts", "Dropouts", facts, html.paragraph("Nobody dropped out in this run."))
    options = [("dropout", "dropouts"), ("missing", "missing updates"), ("absence", "absences")]
    which = html.controls(html.choice("dropouts-what", "Show", options))
    by_round = html.figure(
        "dropouts-rounds", "How many per round, by reason.", dropout_alternative(summary, run_data.log), which
    )
    moments = html.figure(
        "dropouts-moments",
        "When in the round it happened: simulated seconds since the round began, one mark each.",
        "Marks over the seconds since the round began, one row per reason. The fold below lists them.",
    )
    return html.section("dropouts", "Dropouts", facts, f'<div class="pair">{by_round}{moments}</div>')


def _reproduce(run_data: RunData) -> str:
    summary, environment = run_data.summary, run_data.run.environment
    versions = environment.get("versions") or {}
    digest = summary.get("digest") or {}
    depends = "; it depends on learning, so on one machine only" if summary.get("events_depend_on_learning") else ""
    rows = [
        ("command", "peerveil run scenario.yaml (the file of this run's folder, shown above)"),
        ("seed", str(summary.get("seed", "?"))),
        ("digest of events", f"{digest.get('events', '-')}{depends}"),
        ("digest of learning", f"{digest.get('learning', '-')} (equal on the same machine and settings)"),
        ("versions", ", ".join(f"{name} {number}" for name, number in versions.items()) or "-"),
        ("python", str(environment.get("python", "-"))),
        ("machine", f"{environment.get('platform', '-')}, {environment.get('cpus', '?')} CPUs"),
        (
            "plug-ins",
            ", ".join(f"{name} {digest}" for name, digest in (environment.get("plugins") or {}).items()) or "none",
        ),
    ]
    return html.section("reproduce", "How to reproduce", html.facts(rows))
