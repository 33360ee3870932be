"""`peerveil report RUN...`: writes the page of one run, or a page comparing several."""

from __future__ import annotations

import argparse
from pathlib import Path

from scenarios.report.page import comparison_page, report_page
from scenarios.report.run_data import RunData, read_run_data
from scenarios.run_folder import atomic_write
from scenarios.run_folder.reader import explaining_damage


def run(args: argparse.Namespace) -> int:
    """Writes the page and prints its path."""
    accounts = [_read(path) for path in args.runs]
    one = len(accounts) == 1
    with explaining_damage(args.runs[0] if one else Path("one of them")):
        page = report_page(accounts[0]) if one else comparison_page(accounts)
    # A single report belongs to its run; a comparison belongs to no folder.
    out = args.out or (args.runs[0] / "report.html" if one else Path("comparison.html"))
    atomic_write.write_text(out, page)
    print(f"report in {out}")
    return 0


def _read(path: Path) -> RunData:
    with explaining_damage(path):
        return read_run_data(path)
