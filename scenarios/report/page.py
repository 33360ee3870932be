"""The pages of a report: self-contained HTML with inline styles, scripts and data, and a strict content policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from scenarios.report.comparison_page import comparison_body, comparison_data, comparison_links
from scenarios.report.data.node_data import dropout_data, load_by_round, traffic_by_node
from scenarios.report.data.privacy_data import privacy_data
from scenarios.report.data.round_series import round_series
from scenarios.report.data.run_data import RunData
from scenarios.report.data.timeline_data import picture_data
from scenarios.report.embed import csp_hash, script_json, script_source
from scenarios.report.html import text
from scenarios.report.sections.attack_section import attack_curves, read_attacks
from scenarios.report.sections.audit_part import sandwich_rows
from scenarios.report.sections.picture_sections import timeline, topology
from scenarios.report.sections.run_sections import header, run_body
from scenarios.report.sweep_page import SWEEP_LINKS, sweep_body, sweep_data
from scenarios.sweeps.read_sweep import SweepTable

SCRIPTS = ("base.js", "charts.js", "timeline.js", "topology.js", "attacks.js", "audit.js", "sweep.js", "compare.js")


def report_page(run_data: RunData) -> str:
    """Returns the page of one run; equal runs give equal bytes."""
    data = page_data(run_data)
    body, links = run_body(run_data, data)
    return assemble(f"{run_data.name}, seed {run_data.summary.get('seed', '?')}", body, data, links)


def comparison_page(accounts: list[RunData]) -> str:
    """Returns the page that compares several runs."""
    data = comparison_data(accounts)
    return assemble("Runs compared", comparison_body(accounts, data), data, comparison_links(accounts))


def sweep_page(sweep: SweepTable, page_folder: Path) -> str:
    """Returns the page of a sweep, to be written into `page_folder`: links to runs are relative to it."""
    data = sweep_data(sweep, page_folder)
    return assemble(f"Sweep {sweep.name}", sweep_body(sweep, data, page_folder), data, SWEEP_LINKS)


def picture_page(run_data: RunData, what: str, round_number: int | None) -> str:
    """Returns a page with only the timeline or the topology, opened at a round."""
    data = page_data(run_data) | {"open_round": round_number}
    section = timeline(data) if what == "timeline" else topology(data)
    return assemble(f"{run_data.name}: {what}", f"{header(run_data)}{section}", data)


def page_data(run_data: RunData) -> dict[str, Any]:
    """Returns the data of all charts of the page."""
    return {
        "page": "run",
        "name": run_data.name,
        "target": run_data.target_accuracy,
        "rounds": round_series(run_data.log, run_data.protocol),
        "traffic": traffic_by_node(run_data),
        "load": load_by_round(run_data.log, run_data.roles.clients),
        "dropouts": dropout_data(run_data),
        "privacy": privacy_data(run_data),
        "attacks": attack_curves(read_attacks(run_data)),
        "sandwich": sandwich_rows(run_data.summary),
        "pictures": picture_data(run_data),
    }


def assemble(title: str, body: str, data: Mapping[str, Any], links: Sequence[tuple[str, str]] = ()) -> str:
    """Returns the page; equal input gives equal bytes. `links` are the (anchor, text) pairs of its navigation."""
    library = script_source(_plotly())
    own = script_source("\n".join(_resource(name) for name in SCRIPTS))
    policy = _policy(library, own)
    navigation = "".join(f'<a href="#{anchor}">{text(words)}</a>' for anchor, words in links)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{_resource('page.css')}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#content">Skip to the content</a>\n<nav aria-label="Sections">{navigation}'
        '<button type="button" id="theme" aria-pressed="false">Dark</button></nav>\n'
        f'<main id="content">\n{body}\n</main>\n'
        '<noscript><p class="notes">Charts need JavaScript; the tables on this page do not.</p></noscript>\n'
        f'<script type="application/json" id="data">{script_json(data)}</script>\n'
        f"<script>{library}</script>\n<script>{own}</script>\n</body>\n</html>\n"
    )


def _policy(*scripts: str) -> str:
    # Scripts are allowed by hash only: text from a scenario that slipped through escaping could not run.
    allowed = " ".join(csp_hash(source) for source in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _resource(name: str) -> str:
    return (files("scenarios.report") / "assets" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    return (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
