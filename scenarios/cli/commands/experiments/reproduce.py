"""`peerveil reproduce`: the printed results of the papers, run again, with a verdict on each claim."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.cli.console import make_console, print_rows
from scenarios.loading.problems import printable, shorten
from scenarios.reproductions.book import (
    collected,
    picture_path,
    statement_text,
    verdict_text,
    write_book,
)
from scenarios.reproductions.formulas.table import FORMULAS
from scenarios.reproductions.pictures import draw
from scenarios.reproductions.published_results import find_result, published_results
from scenarios.reproductions.reproduce import is_stale, outcomes, record, reproduce_formula, reproduce_sweep
from scenarios.reproductions.value_table import value_table
from scenarios.reproductions.waiting import state_of
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.sweeps.executors import check_pool
from scenarios.sweeps.run_sweep import DEFAULT_STORE, SweepOptions
from scenarios.sweeps.store import Store


def run(args: argparse.Namespace) -> int:
    """Lists the results, writes the book, checks for stale verdicts, or runs results again."""
    if args.book is not None:
        return _write_book(args.book)
    if args.stale:
        return _mark_stale(args)
    if args.list or not args.results:
        return _list(args)
    check_pool(args.on)
    names = [find_result(name).id for name in args.results]
    found = [_one(name, args) for name in names]
    if args.json:
        print(to_json(found[0] if len(found) == 1 else {"results": found}))
    return 0


def _one(name: str, args: argparse.Namespace) -> dict[str, Any]:
    state = state_of(find_result(name))
    if state == "formula":
        outcome = reproduce_formula(name)
    elif state == "sweep":
        # A verdict needs every cell, so those that failed before are tried again.
        options = SweepOptions(
            on=args.on, workers=args.workers, retry=True, data_dir=args.data_dir, quiet=args.quiet or args.json
        )
        outcome = reproduce_sweep(name, args.size, args.seeds, options, Store(args.store or DEFAULT_STORE))
    else:
        raise UserError(f"{name}: cannot be run again: {state}")
    # Formulas take seconds and are computed for every page; only runs are recorded.
    if args.record and state == "sweep":
        record(outcome)
    if not args.json:
        _print(outcome)
    return outcome


def _print(outcome: Mapping[str, Any]) -> None:
    console = make_console(None)
    because = f": {outcome['because']}" if outcome["because"] else ""
    console.print(printable(f"{outcome['id']}: {outcome['verdict']}{because}"))
    console.print(printable(f"claim: {outcome['claim']}"))
    words = {True: "holds", False: "fails", None: "open"}
    rows = [("", words[part["holds"]], statement_text(part), _measured(part)) for part in outcome["parts"]]
    print_rows(console, [tuple(printable(cell) for cell in row) for row in rows])
    if outcome.get("values"):
        heads, values = value_table(outcome)
        console.print(printable(f"{outcome['figure']}, mean and 95% interval:"))
        lines = [["settings", "printed", *heads], *values]
        print_rows(console, [("", *(printable(cell) for cell in line)) for line in lines])
    for line in outcome["assumed"]:
        console.print(printable(f"assumed: {line}"))
    if outcome.get("unsaid"):
        console.print(printable(f"not said by these runs: {outcome['unsaid']}"))


def _measured(part: Mapping[str, Any]) -> str:
    needed = f"; about {part['seeds_needed']} seeds would decide" if part["seeds_needed"] else ""
    return f"{part['measured']}{needed}"


def _list(args: argparse.Namespace) -> int:
    found = outcomes() if not args.verdicts else collected()
    rows = []
    for name, result in published_results().items():
        state = "formula, seconds" if name in FORMULAS and name not in found else verdict_text(name, found)
        rows.append({"id": name, "title": result.title, "claim": result.claim, "state": state, "source": result.source})
    if args.json:
        print(to_json({"results": rows}))
        return 0
    table = [(row["id"], shorten(str(row["title"]), 60), shorten(str(row["state"]), 60)) for row in rows]
    print_rows(make_console(None), [tuple(printable(cell) for cell in row) for row in table])
    return 0


def _write_book(path: Path) -> int:
    for name, outcome in outcomes().items():
        picture = path.parent / picture_path(name)
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw(outcome, picture)
    atomic_write.write_text(path, write_book())
    print(f"book in {path}")
    return 0


def _mark_stale(args: argparse.Namespace) -> int:
    """Recomputes the probe of every recorded verdict and notes in its file whether it is stale."""
    changed = 0
    for name, outcome in outcomes().items():
        stale = is_stale(name, args.data_dir)
        print(f"{name}: {'stale' if stale else 'as recorded'}")
        if stale != bool(outcome.get("stale")):
            changed += 1
            record({**outcome, "stale": stale})
    return 1 if changed else 0
