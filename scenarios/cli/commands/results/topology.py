"""`peerveil topology RUN-or-SCENARIO`: draws the graph of a round as svg, png, pdf or html."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from p2p.config.errors import UserError
from scenarios.cli.console import print_notes
from scenarios.loading.problems import printable
from scenarios.metrics.communication.round_graphs import figure_rows, figures_of_round, graph_words
from scenarios.plots.figure import COLUMN_WIDTHS_IN, PICTURES, check_ending, save
from scenarios.report.data.run_data import RunData, read_run_data
from scenarios.report.page import picture_page
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import explaining_damage
from topologies.figures import GraphFigures


def run(args: argparse.Namespace) -> int:
    """Draws the round, and prints its figures and the path of the picture, or the figures as JSON."""
    ending = check_ending(args.out, (*PICTURES, ".html"))
    source = Path(args.source)
    # A folder is a run; anything else is a scenario, which has to be run first.
    if source.is_dir():
        if args.overrides:
            raise UserError(f"--set = {args.overrides[0]}: a run is done and cannot change; give its scenario instead")
        with explaining_damage(source):
            run_data = read_run_data(source)
            print_notes(source, run_data.notes)
            _draw(run_data, args, ending)
    else:
        with tempfile.TemporaryDirectory() as folder:
            _draw(_dry_run(args, Path(folder) / "run"), args, ending)
    if not args.json:
        print(f"topology in {args.out}")
    return 0


def _draw(run_data: RunData, args: argparse.Namespace, ending: str) -> None:
    number = _round(run_data, args.round)
    figures = figures_of_round(run_data.log, number, run_data.protocol)
    if args.json:
        print(to_json({"round": number, **asdict(figures)}), end="")
    else:
        _print_figures(run_data, number, figures)
    if ending == ".html":
        atomic_write.write_text(args.out, picture_page(run_data, "topology", number))
    else:
        from scenarios.plots.topology import draw_topology

        save(draw_topology(run_data, number, figures, COLUMN_WIDTHS_IN.get(args.columns, 7.0)), args.out)


def _print_figures(run_data: RunData, number: int, figures: GraphFigures) -> None:
    # A folder from elsewhere may name anything.
    print(printable(f"{run_data.name}, round {number}: {graph_words(run_data.protocol)}"))
    for name, value in figure_rows(figures):
        print(f"  {name:<16}  {value}")


def _round(run_data: RunData, wanted: int | None) -> int:
    numbers = [int(record["round"]) for record in run_data.log.rounds]
    if not numbers:
        raise UserError(f"RUN = {run_data.run.path}: has no whole round to draw; run the scenario again")
    if wanted is not None and wanted not in numbers:
        raise UserError(f"--round = {wanted}: the run has rounds {numbers[0]} to {numbers[-1]}; choose one of them")
    return numbers[0] if wanted is None else wanted


def _dry_run(args: argparse.Namespace, folder: Path) -> RunData:
    """Runs the scenario without learning; graphs, messages and times equal those of the real run."""
    from scenarios.loading.load import load_scenario
    from scenarios.loading.plugins import blaming_plugins
    from scenarios.running.run import run_scenario

    scenario = load_scenario(args.source, [*args.overrides, "learning=none"], None, args.allow_plugins)
    # Rounds after the drawn one are not needed.
    if args.round is not None and 1 <= args.round <= scenario.rounds:
        scenario = replace(scenario, rounds=args.round)
    with blaming_plugins(scenario.plugins):
        run_scenario(scenario, folder)
    return read_run_data(folder)
