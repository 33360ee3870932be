"""The page of one run, section by section: words from the summary, places for the charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.amounts import accuracy_text, bytes_text, count_text, epsilon_text, seconds_text
from scenarios.console import headline_rows
from scenarios.report import markup
from scenarios.report.account import Account
from scenarios.report.captions import (
    accuracy_alternative,
    bytes_alternative,
    dropout_alternative,
    gap_alternative,
    node_bytes_alternative,
    spent_alternative,
    views_alternative,
)
from scenarios.report.privacy_data import views_of

LINKS = (
    ("headline", "Headline"),
    ("accuracy", "Accuracy"),
    ("bytes", "Bytes"),
    ("timeline-section", "Timeline"),
    ("topology-section", "Topology"),
    ("dropouts", "Dropouts"),
    ("privacy", "Privacy"),
    ("scenario", "Scenario"),
    ("reproduce", "Reproduce"),
)


def run_body(account: Account, data: Mapping[str, Any]) -> str:
    """All sections in order."""
    parts = (
        header(account),
        headline(account),
        _accuracy(data),
        _bytes(data),
        timeline(data),
        topology(data),
        _dropouts(account),
        _privacy(account, data),
        markup.section("scenario", "The scenario", markup.code(account.run.scenario_text or "(no scenario.yaml)")),
        _reproduce(account),
    )
    return "\n".join(parts)


def header(account: Account) -> str:
    """Title, question and answer."""
    summary = account.summary
    title = f"<h1>{markup.text(account.name)}</h1>"
    question = markup.paragraph(str(summary.get("question") or ""), "question")
    return f"<header>{title}{question}{markup.paragraph(answer(summary), 'answer')}</header>"


def answer(summary: Mapping[str, Any]) -> str:
    """The run in one sentence."""
    head = summary["headline"]
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


def headline(account: Account) -> str:
    """The figures a run is judged by, the same as in the final table."""
    try:
        rows = list(headline_rows(account.summary))
    except (KeyError, TypeError, AttributeError, ValueError):
        rows = []
    missing = () if rows else ("The summary is of another version; its headline cannot be told.",)
    done = f"{account.summary.get('rounds_completed', '?')} of {account.summary.get('rounds_planned', '?')} rounds"
    why = f"seed {account.summary.get('seed', '?')}: {done}, {account.summary.get('stopped_because', 'unknown')}"
    table = markup.facts([("run", why), *rows])
    return markup.section("headline", "Headline", markup.notes((*account.notes, *missing)), table)


def _accuracy(data: Mapping[str, Any]) -> str:
    rounds = data["rounds"]
    over_rounds = markup.figure(
        "accuracy-rounds",
        "Share of test records classified correctly after each round's aggregation. Line: mean over the evaluated "
        "clients; band: worst to best client; dotted: mean of the local models before aggregation.",
        accuracy_alternative(rounds, "round"),
    )
    over_time = markup.figure(
        "accuracy-time",
        "The same against simulated time (seconds): each point stands where its round ended.",
        accuracy_alternative(rounds, "time"),
    )
    return markup.section("accuracy", "Accuracy", f'<div class="pair">{over_rounds}{over_time}</div>')


def _bytes(data: Mapping[str, Any]) -> str:
    by_round = markup.figure(
        "bytes-rounds",
        "Bytes handed over in each round by kind of message, retransmissions and sealing included.",
        bytes_alternative(data["rounds"]),
    )
    by_node = markup.figure(
        "bytes-nodes",
        "Bytes sent and received by each node over the whole run."
        if "histogram" not in data["traffic"]
        else "How many clients sent and received how many bytes over the whole run.",
        node_bytes_alternative(data["traffic"]),
    )
    return markup.section("bytes", "Bytes", f'<div class="pair">{by_round}{by_node}</div>')


def timeline(data: Mapping[str, Any]) -> str:
    """The round timeline with its controls."""
    controls = markup.controls(
        markup.button("round-before", "◀", "Earlier round"),
        '<label>Round <select id="timeline-round"></select></label>',
        markup.button("round-after", "▶", "Later round"),
        markup.choice("timeline-span", "Show", [("1", "1 round"), ("2", "2 rounds"), ("5", "5 rounds")]),
        markup.choice("timeline-order", "Order", [("id", "by node"), ("late", "last to finish first")]),
        '<label>Messages of <select id="timeline-node"></select></label>',
        '<label><input type="checkbox" id="timeline-path" checked> critical path</label>',
        '<span class="group">',
        markup.button("zoom-in", "+", "Zoom in"),
        markup.button("zoom-out", "−", "Zoom out"),
        markup.button("pan-left", "←", "Earlier"),
        markup.button("pan-right", "→", "Later"),
        markup.button("zoom-reset", "All", "Show all"),
        "</span>",
    )
    chart = markup.figure(
        "timeline",
        "What each node did, in simulated seconds since the first shown round began. Thick bars: joining, training, "
        "waiting; thin bars: sending (upper) and aggregating (lower). Red line: the critical path, the chain of "
        "training, transfers and waits that made the round as long as it was. Crosses: dropouts; open circles: absences. Drag to zoom, "
        "double-click to see all; choose a node (or click its row) to see its messages as arrows. Keys: + - and arrows.",
        "Timeline of one round: one row per node, spans coloured by name. The fold below lists every span shown.",
        controls,
    )
    pictures = data["pictures"]
    hints = markup.notes(line for line in (pictures["note"], pictures["message_note"]) if line)
    status = '<p id="timeline-status" class="status" aria-live="polite"></p>'
    return markup.section("timeline-section", "Round timeline", hints, chart, status)


def topology(data: Mapping[str, Any]) -> str:
    """The graph of any round with its controls, and the spectral gap."""
    controls = markup.controls(
        '<label class="wide">Round <input type="range" id="topology-round" min="0" max="0" step="1" value="0">'
        ' <output id="topology-number"></output></label>',
        markup.choice("topology-view", "View", [("graph", "graph"), ("matrix", "matrix")]),
        markup.choice(
            "topology-colour",
            "Nodes by",
            [
                ("role", "role"),
                ("traffic", "bytes in this round"),
                ("published", "epsilon, published"),
                ("rigorous", "epsilon, rigorous (local)"),
            ],
        ),
        markup.choice("topology-edges", "Edges by", [("bytes", "bytes"), ("fate", "outcome")]),
        '<label>Edges of <select id="topology-node"></select></label>',
        '<label><input type="checkbox" id="topology-control"> control messages too</label>',
    )
    chart = markup.figure(
        "topology",
        "Who sent data to whom in one round. Nodes keep their places from round to round (clients by id, clockwise from "
        "the top). Graphs with many edges are drawn faintly; choose a node (or click it) to see its own. "
        "Bytes are those handed over; arrow keys move the slider.",
        "Graph of one round: nodes on a circle, an edge where one sent data to another. The fold below lists the edges.",
        controls,
    )
    gap = markup.figure(
        "gap",
        "Spectral gap of the mixing matrix that each round's aggregations really applied to its cohort: "
        "1 is instant agreement, 0 is none. Disagreement shrinks by the factor 1 - gap per round in the long run.",
        gap_alternative(data["rounds"]),
    )
    status = '<p id="topology-status" class="status" aria-live="polite"></p>'
    return markup.section("topology-section", "Topology", chart, status, gap)


def _dropouts(account: Account) -> str:
    summary = account.summary
    rows = []
    for key, name in (("absences", "absent when invited"), ("missing", "updates missing"), ("dropouts", "dropouts")):
        entry = summary.get(key) or {}
        reasons = ", ".join(f"{count_text(n)} {word}" for word, n in (entry.get("by_reason") or {}).items() if n)
        rows.append((name, f"{count_text(entry.get('total'))}{f': {reasons}' if reasons else ''}"))
    facts = markup.facts(rows)
    if not len(account.log.dropouts):
        return markup.section("dropouts", "Dropouts", facts, markup.paragraph("Nobody dropped out in this run."))
    options = [("dropout", "dropouts"), ("missing", "missing updates"), ("absence", "absences")]
    which = markup.controls(markup.choice("dropouts-what", "Show", options))
    by_round = markup.figure(
        "dropouts-rounds", "How many per round, by reason.", dropout_alternative(summary, account.log), which
    )
    moments = markup.figure(
        "dropouts-moments",
        "When in the round it happened: simulated seconds since the round began, one mark each.",
        "Marks over the seconds since the round began, one row per reason. The fold below lists them.",
    )
    return markup.section("dropouts", "Dropouts", facts, f'<div class="pair">{by_round}{moments}</div>')


def _privacy(account: Account, data: Mapping[str, Any]) -> str:
    privacy = account.summary.get("privacy") or {}
    epsilon = account.summary["headline"].get("epsilon") or {}
    verdict = markup.paragraph(f"Verdict: {epsilon.get('verdict', 'none stated')}")
    views = [(f"rigorous, {view}", epsilon_text(value)) for view, value in views_of(privacy).items()]
    claim = privacy.get("published")
    formula = f" ({claim['formula']})" if isinstance(claim, dict) and claim.get("formula") else ""
    table = markup.facts([(f"published{formula}", epsilon_text(data["privacy"]["published"])), *views])
    charts = [
        markup.figure(
            "epsilon-views",
            f"Epsilon claimed by the published formula and proven per view ({epsilon.get('unit', 'client')} level"
            f"{'' if epsilon.get('delta') is None else ', delta ' + format(epsilon['delta'], 'g')}); log scale. The two "
            "answer different questions and are not to be mixed. Views without a finite epsilon are left out.",
            views_alternative(data["privacy"]),
        )
    ]
    for name in ("published", "rigorous"):
        if data["privacy"]["spent"]["round"]:
            charts.append(_spent(name, data["privacy"]))
    charts.append(
        markup.figure(
            "seen",
            "How many updates of each sender (column) reached each receiver (row), late ones too: who saw what."
            + (f" Each square is a group of {data['privacy']['seen']['group']} nodes." if data["privacy"]["seen"]["group"] > 1 else ""),
            "Matrix of receivers and senders, coloured by the number of updates received.",
        )
    )
    hints = markup.notes(str(note) for note in privacy.get("notes") or ())
    return markup.section("privacy", "Privacy", verdict, table, hints, f'<div class="pair">{"".join(charts)}</div>')


def _spent(name: str, privacy: Mapping[str, Any]) -> str:
    what = "as published" if name == "published" else "rigorous, local view"
    rest = "; dashed: the epsilon allowed" if name == "published" else "; log scale"
    return markup.figure(
        f"spent-{name}",
        f"Epsilon spent so far by the clients that have released, {what}. Line: median; band: least to most{rest}.",
        spent_alternative(name, privacy),
    )


def _reproduce(account: Account) -> str:
    summary, environment = account.summary, account.run.environment
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
        ("plug-ins", ", ".join(f"{name} {digest}" for name, digest in (environment.get("plugins") or {}).items()) or "none"),
    ]
    return markup.section("reproduce", "How to reproduce", markup.facts(rows))
