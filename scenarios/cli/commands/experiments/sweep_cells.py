"""What `peerveil sweep` does once workers are starting: runs the cells, tells their cost, state and results."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.cli.console import make_console, print_rows
from scenarios.loading.problems import printable, shorten
from scenarios.metrics.headline.number_format import bytes_text, count_text, seconds_text
from scenarios.run_folder.json_text import to_json
from scenarios.sweeps.grid import Grid, expand
from scenarios.sweeps.read_sweep import RUNS
from scenarios.sweeps.results import Row
from scenarios.sweeps.run_sweep import (
    DEFAULT_STORE,
    SweepOptions,
    SweepResult,
    choose,
    default_folder,
    run_sweep,
    status,
)
from scenarios.sweeps.store import Store
from scenarios.sweeps.sweep_file import load_sweep

_MOST_LINES = 60
_LONGEST_LABEL = 200
"""A label ends in the seed: cut earlier, cells could not be told apart."""


def run(args: argparse.Namespace) -> int:
    """Runs the sweep, or tells its cost (`--dry-run`) or its state (`--status`)."""
    shard = _shard(args.shard)
    sweep = load_sweep(args.sweep)
    runs_now = not args.dry_run and not args.status
    grid = expand(sweep, data_dir=args.data_dir, allow_plugins=args.allow_plugins, confirmed=args.yes)
    chosen = choose(grid.cells, args.only)
    store = Store(args.store or DEFAULT_STORE)
    if not runs_now:
        return _tell(args, Grid(chosen, grid.remarks), store)
    folder = args.out or default_folder(sweep.name)
    options = SweepOptions(
        on=args.on,
        workers=args.workers,
        shard=shard,
        retry=args.retry == "failed",
        data_dir=args.data_dir,
        allow_plugins=args.allow_plugins,
        quiet=args.quiet or args.json,
    )
    _say_remarks(grid.remarks)
    result = run_sweep(sweep, grid, folder, store, options, only={cell.key for cell in chosen})
    _print_result(args, result, folder)
    return 1 if result.count("failed") else 0


def _tell(args: argparse.Namespace, grid: Grid, store: Store) -> int:
    if args.dry_run:
        # Imported here: it builds scenarios, which running from the store does not need.
        from scenarios.sweeps.forecast import forecast

        rows = forecast(grid.cells, store, args.data_dir)
        head, lines = _forecast_lines(rows)
    else:
        rows = status(grid, store)
        head, lines = _status_lines(rows)
    if args.json:
        print(to_json({"remarks": grid.remarks, "cells": rows}))
        return 0
    _say_remarks(grid.remarks)
    console = make_console(None)
    console.print(head)
    print_rows(console, [tuple(printable(cell) for cell in line) for line in lines])
    return 0


def _forecast_lines(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[tuple[str, ...]]]:
    waiting = [row for row in rows if row["state"] != "done"]
    cpu_s = sum(row["cpu_s"] for row in waiting)
    sent = [row["bytes"] for row in waiting if row["bytes"] is not None]
    largest = max((row["memory_bytes"] for row in rows), default=0)
    head = (
        f"{count_text(len(rows))} cells, {count_text(len(rows) - len(waiting))} of them finished; the rest takes about "
        f"{seconds_text(cpu_s)} of CPU time, {bytes_text(sum(sent))} of simulated traffic, {bytes_text(largest)} of "
        "memory for the largest"
    )
    lines = [("cell", "CPU time", "bytes sent", "memory")]
    for row in rows[:_MOST_LINES]:
        cpu = "finished" if row["state"] == "done" else seconds_text(row["cpu_s"])
        lines.append(
            (shorten(row["cell"], _LONGEST_LABEL), cpu, bytes_text(row["bytes"]), bytes_text(row["memory_bytes"]))
        )
    return head, [*lines, *_rest(rows)]


def _status_lines(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[tuple[str, ...]]]:
    counts = Counter(row["state"] for row in rows)
    head = ", ".join(f"{count_text(number)} {state}" for state, number in counts.items())
    lines: list[tuple[str, ...]] = []
    for row in rows[:_MOST_LINES]:
        about = row.get("message") or (seconds_text(row["seconds"]) if row.get("seconds") is not None else "")
        if row.get("round") is not None:
            about = f"round {row['round']}"
        lines.append((shorten(row["cell"], _LONGEST_LABEL), row["state"], shorten(about, 200)))
    return head, [*lines, *_rest(rows)]


def _rest(rows: Sequence[Any]) -> list[tuple[str, ...]]:
    return [(f"and {len(rows) - _MOST_LINES} more; --json has all",)] if len(rows) > _MOST_LINES else []


def _print_result(args: argparse.Namespace, result: SweepResult, folder: Path) -> None:
    if args.json:
        counts = {state: result.count(state) for state in ("done", "failed", "open")}
        print(
            to_json(
                {
                    "folder": str(folder),
                    "found": result.found,
                    "elsewhere": result.elsewhere,
                    **counts,
                    "cells": result.rows,
                }
            )
        )
        return
    if not args.quiet:
        _print_answer(result.rows)
    failed = [row for row in result.rows if row["state"] == "failed"]
    for row in failed[:_MOST_LINES]:
        print(printable(f"failed: {_label(row)}: {row['message']}"), file=sys.stderr)
    parts = [f"{count_text(result.count('done'))} of {count_text(len(result.rows))} cells done"]
    if result.found:
        parts.append(f"{count_text(result.found)} of them found in the store")
    if failed:
        parts.append(f"{count_text(len(failed))} failed (`--retry failed` tries them again)")
    if result.elsewhere:
        parts.append(f"{count_text(result.elsewhere)} still running in other processes")
    print(printable(f"{', '.join(parts)}; results in {folder / RUNS}"))


def _print_answer(rows: Sequence[Row]) -> None:
    """Prints the headline figures of every combination, over its seeds."""
    # Imported here: pivoting needs numpy, and a sweep that fails does not pivot.
    from scenarios.sweeps.pivot import answer_tables

    console = make_console(None)
    # Three intervals beside the settings fill 80 columns; each further one takes about 18.
    at_once = max(3, (console.width - 26) // 18)
    for lines in answer_tables(rows, at_once, _MOST_LINES):
        print_rows(console, [tuple(printable(cell) for cell in line) for line in lines])
        console.print()


def _label(row: Row) -> str:
    skip = ("cell", "state")
    settings = [f"{name}={value}" for name, value in row.items() if name not in skip and value is not None]
    return shorten(", ".join(settings[: settings.index(f"seed={row['seed']}") + 1]), 120)


def _say_remarks(remarks: Sequence[str]) -> None:
    for remark in remarks:
        print(printable(remark), file=sys.stderr)


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"--shard = {text}: must be I/N with 1 <= I <= N, such as 3/8")
    return int(found[1]), int(found[2])
