"""Runs one scenario into one run folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from p2p.gc_pause import gc_paused
from scenarios.attacking.attack_run import attack_run
from scenarios.auditing.audit_files import add_audit
from scenarios.auditing.audit_scenario import audit_scenario
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import dump_scenario
from scenarios.observing.observer import RoundListener
from scenarios.run_folder.environment import describe_environment
from scenarios.run_folder.sample_sheet import write_sheet
from scenarios.run_folder.writer import RunFolder
from scenarios.running.find_checkpoint import PreviousRun, check_resumable, find_previous_run, fresh_run
from scenarios.running.interrupts import stopping_between_events
from scenarios.running.journal import Journal
from scenarios.running.live_page import LivePage, NoPage
from scenarios.running.progress import progress
from scenarios.running.resume import only_writer
from scenarios.running.round_reporter import RoundReporter
from scenarios.running.run_summary import summarise_run
from scenarios.schema import Scenario


@gc_paused()
def run_scenario(
    scenario: Scenario,
    out: Path | None = None,
    *,
    data_dir: Path | None = None,
    threads: int | None = None,
    at_once: int | None = None,
    quiet: bool = True,
    page: LivePage | NoPage | None = None,
    resume: bool = False,
    listeners: Sequence[RoundListener] = (),
) -> tuple[dict[str, Any], RunFolder]:
    """Runs one scenario and writes its folder; returns the summary and the folder.

    An interrupt (Ctrl-C) ends the run early: the completed rounds are still written, and the summary records the
    interruption.

    Args:
        resume: continue the run in `out`, or the newest unfinished one; a finished run is left unchanged.
        listeners: called after every round.
    """
    started_s, live = time.perf_counter(), page or NoPage()
    live.begin(scenario.name, scenario.question, scenario.rounds)
    previous = _resumed(scenario, out, quiet) if resume else fresh_run(scenario)
    if previous.path is not None and previous.summary is not None:
        return previous.summary, RunFolder(previous.path)
    # The reporter needs the simulation, which needs its listeners: a list filled later breaks the cycle.
    reporter: list[RoundListener] = []
    simulation = build(
        scenario,
        data_dir=data_dir,
        threads=threads,
        at_once=at_once,
        listeners=[lambda row: reporter[0](row), *listeners],
        first_incarnation=previous.first_incarnation,
    )
    folder = RunFolder.create(out, scenario.name, scenario.seed) if previous.path is None else RunFolder(previous.path)
    with only_writer(folder.path):
        folder.begin(dump_scenario(scenario), describe_environment(threads, scenario.plugins))
        _draw_generated(simulation, folder)
        live.write_to(folder.path)
        journal = Journal(simulation, folder, previous.checkpoint)
        with progress(scenario.rounds, quiet, scenario.name) as bar:
            reporter.append(RoundReporter(simulation, journal, (bar, live)))
            interrupted = _simulate(simulation)
        summary = _finish(simulation, journal, folder, interrupted, started_s, previous.checkpoint.resumes)
    if scenario.audit is not None and not interrupted:
        summary = add_audit(folder.path, audit_scenario(scenario, scenario.audit, data_dir, threads))
    if scenario.attacks and not interrupted:
        summary = attack_run(folder.path, scenario.attacks, data_dir, scenario)
    return summary, folder


def _draw_generated(simulation: Simulation, folder: RunFolder) -> None:
    """Writes a picture of the records that generators made, if there are any."""
    if simulation.learner is not None and (made := simulation.learner.generated) is not None:
        write_sheet(folder.path, made.records, made.labels, made.shards)


def _finish(
    simulation: Simulation, journal: Journal, folder: RunFolder, interrupted: bool, started_s: float, resumes: int
) -> dict[str, Any]:
    """Writes the tables and the summary of a run that has ended or was interrupted; returns the summary."""
    # Interrupted during the replay: nothing is new, and the folder holds more rounds than were replayed.
    if interrupted and journal.replay.under_way:
        raise KeyboardInterrupt
    journal.replay.check_over()
    with _tolerating_partial_rows(interrupted):
        simulation.supervisor.log_open_spans()  # an interrupt leaves the nodes that are down without their span
        # Before the results are made: they take as much memory as messages in flight did.
        simulation.world.network.close()
        summary = summarise_run(simulation, interrupted, time.perf_counter() - started_s, resumes)
        # An interrupted run has collected no final model.
        tensors = None if interrupted else simulation.final_tensors()
        observed = journal.end_observations()
        folder.finish(simulation.log, summary, tensors, partial=interrupted, observed=observed)
    return summary


@contextmanager
def _tolerating_partial_rows(interrupted: bool) -> Iterator[None]:
    """Turns errors in summarising an interrupted run into KeyboardInterrupt.

    The interrupt may have left a table row half written; the parts of the completed rounds remain on disk then.
    """
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError):
        if not interrupted:
            raise
        raise KeyboardInterrupt from None


def _resumed(scenario: Scenario, out: Path | None, quiet: bool) -> PreviousRun:
    check_resumable(scenario)
    previous = find_previous_run(scenario, out)
    _report_resume(previous, quiet)
    return previous


def _report_resume(previous: PreviousRun, quiet: bool) -> None:
    """Prints what `--resume` found; if that is nothing, even when quiet: a mistyped folder looks the same."""
    if previous.path is None:
        print("nothing to resume; the run begins", file=sys.stderr)
    elif quiet:
        return
    elif previous.summary is not None:
        print(f"the run in {previous.path} has finished; nothing is left to do", file=sys.stderr)
    else:
        print(f"resuming {previous.path} after round {previous.checkpoint.round_number}", file=sys.stderr)


def _simulate(simulation: Simulation) -> bool:
    """Runs the simulation; returns True if it was interrupted."""
    try:
        with stopping_between_events(simulation.clock):
            simulation.run()
    except KeyboardInterrupt:
        simulation.proxy.outcome.stopped_because = "interrupted"
        return True
    return False
