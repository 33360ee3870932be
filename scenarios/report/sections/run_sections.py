"""The sections of a run's page: text from the summary, and placeholders for the charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.metrics.headline.headline_rows import headline_rows, learns, trouble_rows
from scenarios.metrics.headline.number_format import accuracy_text, bytes_text, count_text, seconds_text
from scenarios.report import html
from scenarios.report.data.node_data import reason_in_words
from scenarios.report.data.run_data import RunData
from scenarios.report.sections.alt_text import (
    accuracy_alternative,
    bytes_alternative,
    dropout_alternative,
    load_alternative,
    node_bytes_alternative,
    time_alternative,
)
from scenarios.report.sections.attack_section import attack_section, read_attacks
from scenarios.report.sections.generated_section import generated_section
from scenarios.report.sections.picture_sections import timeline, topology
from scenarios.report.sections.privacy_section import privacy_section


@dataclass(frozen=True, slots=True)
class PageSection:
    """One section of a run's page: its anchor, its words in the navigation, and its HTML; empty HTML leaves it out."""

    anchor: str
    link: str
    render: Callable[[RunData, Mapping[str, Any]], str]


def run_sections() -> tuple[PageSection, ...]:
    """Returns the sections in their order. A new section is one line here."""
    return (
        PageSection("headline", "Headline", lambda run_data, data: headline(run_data)),
        PageSection("accuracy", "Accuracy", _accuracy),
        PageSection("bytes", "Bytes", lambda run_data, data: _bytes(data)),
        PageSection("time", "Time and load", lambda run_data, data: _time(data)),
        PageSection("timeline-section", "Timeline", lambda run_data, data: timeline(data)),
        PageSection("topology-section", "Topology", lambda run_data, data: topology(data)),
        PageSection("dropouts", "Dropouts", lambda run_data, data: _dropouts(run_data)),
        PageSection("privacy", "Privacy", privacy_section),
        PageSection("generated", "Generated records", lambda run_data, data: generated_section(run_data)),
        PageSection("attacks", "Attacks", lambda run_data, data: attack_section(read_attacks(run_data))),
        PageSection("scenario", "Scenario", lambda run_data, data: _scenario(run_data)),
        PageSection("reproduce", "Reproduce", lambda run_data, data: _reproduce(run_data)),
    )


def run_body(run_data: RunData, data: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """Returns the HTML of all sections in order, and the links of the navigation."""
    made = [(section, section.render(run_data, data)) for section in run_sections()]
    links = [(section.anchor, section.link) for section, content in made if content]
    return "\n".join([header(run_data), *(content for _, content in made if content)]), links


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
        spent = (
            f"{bytes_text(spread['median'])} per client (median) and {bytes_text(summary['bytes']['sent'])} in total"
        )
        took = f"{count_text(summary['rounds_completed'])} rounds"
        time = seconds_text(summary["simulated_s"])
        if not learns(summary):
            return f"{took} took {time} of simulated time and {spent}; no model was trained, as asked."
        learned = f"{what} reaches accuracy {accuracy_text(right)}" if right is not None else "nothing was learned"
        return f"After {took} and {time} of simulated time {learned}, at {spent}; {head['epsilon']['verdict']}"
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
    troubles = list(trouble_rows(run_data.summary))
    notes = html.notes((*run_data.notes, *(f"{label}: {text}" for label, text in troubles), *missing))
    # Told above the table, where they are seen first.
    table = html.facts([("run", why), *(row for row in rows if row not in troubles)])
    return html.section("headline", "Headline", notes, table)


def _accuracy(run_data: RunData, data: Mapping[str, Any]) -> str:
    # Without learning there is nothing to measure, by choice.
    if not learns(run_data.summary):
        return ""
    rounds = data["rounds"]
    over_rounds = html.figure(
        "accuracy-rounds",
        "Share of test records classified correctly after each round's aggregation. Line: mean over the evaluated "
        "clients; band: worst to best client; dotted: mean of the local models before aggregation, "
        "as trained: without clipping and noise, so only their owners ever have them.",
        accuracy_alternative(rounds, "round"),
    )
    over_time = html.figure(
        "accuracy-time",
        "The same against simulated time (seconds): each point stands where its round ended.",
        accuracy_alternative(rounds, "time"),
    )
    return html.section("accuracy", "Accuracy", html.pair(over_rounds, over_time))


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
    return html.section("bytes", "Bytes", html.pair(by_round, by_node))


def _time(data: Mapping[str, Any]) -> str:
    """Returns what the rounds' time went into, and what the busiest client of each round sent."""
    seconds = html.figure(
        "time-rounds",
        "Length of each round, by what it waited for along its critical path: training, messages under way, timers.",
        time_alternative(data["rounds"]),
    )
    load = html.figure(
        "load-rounds",
        "Bytes that clients sent in each round: the busiest one (line; its number on hover) and the one in the middle "
        "of the cohort (dashed). A wide gap means that one user carries the others.",
        load_alternative(data["load"]),
    )
    return html.section("time", "Time and load", html.pair(seconds, load))


def _scenario(run_data: RunData) -> str:
    return html.section("scenario", "The scenario", html.code(run_data.run.scenario_text or "(no scenario.yaml)"))


def _dropouts(run_data: RunData) -> str:
    summary, words = run_data.summary, reason_in_words(run_data)
    rows = []
    for key, name in (("absences", "absent when invited"), ("missing", "updates missing"), ("dropouts", "dropouts")):
        entry = summary.get(key) or {}
        counts = (entry.get("by_reason") or {}).items()
        reasons = ", ".join(f"{count_text(n)} {words(reason)}" for reason, n in counts if n)
        rows.append((name, f"{count_text(entry.get('total'))}{f': {reasons}' if reasons else ''}"))
    facts = html.facts(rows)
    if not len(run_data.log.dropouts):
        return html.section("dropouts", "Dropouts", facts, html.paragraph("No member dropped out in this run."))
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
    return html.section("dropouts", "Dropouts", facts, html.pair(by_round, moments))


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
