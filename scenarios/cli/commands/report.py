"""`peerveil report RUN...`: writes the page of one run, or a page comparing several."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scenarios.report.comparison_page import COMPARISON_LINKS, comparison_body, comparison_data
from scenarios.report.node_data import dropout_data, traffic_by_node
from scenarios.report.page import assemble
from scenarios.report.picture_sections import timeline, topology
from scenarios.report.privacy_data import privacy_data
from scenarios.report.round_series import round_series
from scenarios.report.run_data import RunData, read_run_data
from scenarios.report.sections import LINKS, header, run_body
from scenarios.report.timeline_data import picture_data
from scenarios.run_folder import atomic_write


def run(args: argparse.Namespace) -> int:
    """Writes the page and prints its path."""
    accounts = [read_run_data(path) for path in args.runs]
    one = len(accounts) == 1
    page = report_page(accounts[0]) if one else comparison_page(accounts)
    # A single report belongs to its run; a comparison belongs to no folder.
    out = args.out or (args.runs[0] / "report.html" if one else Path("comparison.html"))
    atomic_write.write_text(out, page)
    print(f"report in {out}")
    return 0


def report_page(account: RunData) -> str:
    """Returns the page of one run; equal runs give equal bytes."""
    data = run_data(account)
    return assemble(f"{account.name}, seed {account.summary.get('seed', '?')}", run_body(account, data), data, LINKS)


def comparison_page(accounts: list[RunData]) -> str:
    """Returns the page that compares several runs."""
    data = comparison_data(accounts)
    return assemble("Runs compared", comparison_body(accounts, data), data, COMPARISON_LINKS)


def picture_page(account: RunData, what: str, round_number: int | None) -> str:
    """Returns a page with only the timeline or the topology, opened at a round."""
    data = run_data(account) | {"open_round": round_number}
    section = timeline(data) if what == "timeline" else topology(data)
    return assemble(f"{account.name}: {what}", f"{header(account)}{section}", data)


def run_data(account: RunData) -> dict[str, Any]:
    """Returns the data of all charts of the page."""
    return {
        "page": "run",
        "name": account.name,
        "target": account.target_accuracy,
        "rounds": round_series(account.log),
        "traffic": traffic_by_node(account),
        "dropouts": dropout_data(account.log),
        "privacy": privacy_data(account),
        "pictures": picture_data(account),
    }
