"""`peerveil report RUN...`: writes the page of one run, a page comparing several, or the pages of a sweep."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from p2p.config.errors import UserError
from scenarios.cli.page_counter import page_counter
from scenarios.loading.problems import printable
from scenarios.metrics.headline.number_format import count_text
from scenarios.plots.figure import check_ending
from scenarios.report.cell_pages import folders_without_page, make_cell_pages
from scenarios.report.data.run_data import RunData, read_run_data
from scenarios.report.page import comparison_page, report_page, sweep_page
from scenarios.report.pdf import write_pdf
from scenarios.run_folder import atomic_write
from scenarios.run_folder.reader import explaining_damage
from scenarios.sweeps.read_sweep import is_sweep, read_sweep


def run(args: argparse.Namespace) -> int:
    """Writes the page and prints its path."""
    if args.out is not None:
        check_ending(args.out, (".html", ".htm", ".pdf"))
    if any(is_sweep(path) for path in args.runs):
        return _sweep_report(args)
    accounts = [_read(path) for path in args.runs]
    one = len(accounts) == 1
    with explaining_damage(args.runs[0] if one else Path("one of them")):
        page = report_page(accounts[0]) if one else comparison_page(accounts)
    # A single report belongs to its run; a comparison belongs to no folder.
    out = args.out or (args.runs[0] / "report.html" if one else Path("comparison.html"))
    _write(out, page)
    print(f"report in {out}")
    return 0


def _write(out: Path, page: str) -> None:
    if out.suffix.lower() == ".pdf":
        write_pdf(page, out)
    else:
        atomic_write.write_text(out, page)


def _sweep_report(args: argparse.Namespace) -> int:
    if len(args.runs) > 1:
        raise UserError(f"{args.runs[0]}: the page of a sweep has that sweep alone; give one folder")
    sweep = read_sweep(args.runs[0])
    if not sweep.done:
        raise UserError(f"SWEEP = {sweep.path}: no cell has finished; `peerveil sweep --status` says where it stands")
    out = args.out or sweep.path / "report.html"
    # The pages of runs come first, so that the sweep's page knows them; a printed page has no use for links.
    wanted = not args.no_cell_pages and out.suffix.lower() != ".pdf"
    try:
        made = _make_cell_pages(folders_without_page(sweep)) if wanted else 0
    finally:
        # Also after Ctrl-C: the pages made so far can be opened.
        _write(out, sweep_page(sweep, out.parent))
    print(f"report in {out}" + (f", and pages of {count_text(made)} runs in their folders" if made else ""))
    return 0


def _make_cell_pages(folders: Sequence[Path]) -> int:
    with page_counter(len(folders)) as on_page:
        made, problems = make_cell_pages(folders, on_page)
    for line in problems:
        print(printable(f"no page: {line}"), file=sys.stderr)
    return made


def _read(path: Path) -> RunData:
    with explaining_damage(path):
        return read_run_data(path)
