"""`peerveil run`: runs one scenario into one run folder, or several scenarios for comparison."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from p2p.config.errors import UserError
from scenarios.cli.console import print_comparison, print_headline
from scenarios.loading.checks.implausible import implausible_settings
from scenarios.loading.load import load_scenario
from scenarios.loading.plugins import blaming_plugins
from scenarios.loading.problems import printable
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.writer import check_out
from scenarios.running.live_page import LivePage, NoPage, serve_live_page
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario

INTERRUPTED = 130


def run_command(args: argparse.Namespace) -> int:
    """Runs every scenario on every seed; prints the headline table, or a comparison of several."""
    scenarios = _load_all(args)
    if not args.resume:
        check_out(args.out)
    with serve_live_page(args.watch) as page:
        return _run_all(args, scenarios, page)


def _run_all(args: argparse.Namespace, scenarios: Sequence[Scenario], page: LivePage | NoPage) -> int:
    summaries: list[Mapping[str, Any]] = []
    for scenario in scenarios:
        if summaries:
            # Collection is mostly off during a run; free the cycles of the previous one first.
            gc.collect()
        # Several runs need a folder each inside --out.
        out = args.out if args.out is None or len(scenarios) == 1 else args.out / f"{scenario.name}-{scenario.seed}"
        # Before the run, which may be long; the final table repeats them.
        for warning in () if args.quiet or args.json else implausible_settings(scenario):
            print(printable(f"warning: {warning}"), file=sys.stderr)
        with blaming_plugins(scenario.plugins):
            summary, folder = run_scenario(
                scenario,
                out,
                data_dir=args.data_dir,
                threads=args.threads,
                quiet=args.quiet or args.json,
                page=page,
                resume=args.resume,
            )
        summaries.append(summary)
        if not args.json and not args.quiet:
            print_headline(summary)
            print(f"results in {folder.path}")
        if summary["stopped_because"] == "interrupted":
            print(f"interrupted; what was done is in {folder.path}, `--resume` goes on", file=sys.stderr)
            return INTERRUPTED
    if args.json:
        print(to_json(summaries[0] if len(summaries) == 1 else {"runs": summaries}))
    elif len(summaries) > 1 and not args.quiet:
        print_comparison(summaries)
    return 0


def _load_all(args: argparse.Namespace) -> list[Scenario]:
    """Loads every scenario with every seed; raises the problems of all files as one error."""
    problems: list[str] = []
    loaded: list[Scenario] = []
    for ref in args.scenarios:
        try:
            loaded.append(load_scenario(ref, args.overrides, args.seed, args.allow_plugins))
        except UserError as error:
            # Problems of all files are reported together.
            problems.append(str(error))
    if problems:
        raise UserError(problems)
    return [seeded for scenario in loaded for seeded in _over_seeds(scenario, args.seeds)]


def _over_seeds(scenario: Scenario, count: int) -> Sequence[Scenario]:
    return [replace(scenario, seed=scenario.seed + step) for step in range(count)]
