"""Runs one scenario into one run folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.protocols import PROTOCOLS
from p2p.config.choices import Choice
from p2p.gc_pause import gc_paused
from p2p.transport.sharing import Fair
from scenarios.attacking.attack_run import attack_run
from scenarios.auditing.audit_files import add_audit
from scenarios.build import Simulation, build, relay_nodes
from scenarios.loading.checks.implausible import implausible_settings
from scenarios.loading.load import dump_scenario
from scenarios.loading.writing.dump import kind_of
from scenarios.metrics.communication.energy import energy_j
from scenarios.metrics.headline.generated_report import generated_report
from scenarios.metrics.headline.objective_report import objective_report
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.metrics.implausible_results import implausible_results
from scenarios.metrics.privacy.noise_share_report import add_share_views, share_summary
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.metrics.privacy.unaccounted import events_depend_on_learning
from scenarios.run_folder.environment import describe_environment
from scenarios.run_folder.sample_sheet import write_sheet
from scenarios.run_folder.summary import summarise
from scenarios.run_folder.writer import RunFolder
from scenarios.running.find_checkpoint import PreviousRun, find_previous_run, fresh_run
from scenarios.running.interrupts import stopping_between_events
from scenarios.running.journal import Journal
from scenarios.running.limits import limits_of
from scenarios.running.live_page import LivePage, NoPage
from scenarios.running.noise_share_setup import check_resumable
from scenarios.running.observer import RoundListener
from scenarios.running.progress import RoundProgress, progress
from scenarios.running.resume import only_writer
from scenarios.schema import Scenario


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
        watchers: called after every round.
    """
    with gc_paused():
        return _run_scenario(scenario, out, data_dir, threads, at_once, quiet, page or NoPage(), resume, listeners)


def _run_scenario(
    scenario: Scenario,
    out: Path | None,
    data_dir: Path | None,
    threads: int | None,
    at_once: int | None,
    quiet: bool,
    live: LivePage | NoPage,
    resume: bool,
    listeners: Sequence[RoundListener],
) -> tuple[dict[str, Any], RunFolder]:
    started_s = time.perf_counter()
    live.begin(scenario.name, scenario.question, scenario.rounds)
    if resume:
        check_resumable(scenario)
    previous = find_previous_run(scenario, out) if resume else fresh_run(scenario)
    if resume:
        _report_resume(previous, quiet)
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
        if simulation.learner is not None and (made := simulation.learner.generated) is not None:
            write_sheet(folder.path, made.records, made.labels, made.shards)
        live.write_to(folder.path)
        journal = Journal(simulation, folder, previous.checkpoint)
        with progress(scenario.rounds, quiet, scenario.name) as bar:
            reporter.append(_RoundListener(simulation, journal, (bar, live)))
            interrupted = _simulate(simulation)
        # Interrupted during the replay: nothing is new, and the folder holds more rounds than were replayed.
        if interrupted and journal.replay.under_way:
            raise KeyboardInterrupt
        journal.replay.check_over()
        with _tolerating_partial_rows(interrupted):
            simulation.supervisor.close_books()  # an interrupt leaves the nodes that are down without their span
            # Before the results are made: they take as much memory as messages in flight did.
            simulation.world.network.close()
            summary = _summarise(simulation, interrupted, time.perf_counter() - started_s, previous.checkpoint.resumes)
            # An interrupted run has collected no final model.
            tensors = None if interrupted else _final_tensors(simulation)
            observed = journal.end_observations()
            folder.finish(simulation.log, summary, tensors, partial=interrupted, observed=observed)
    if scenario.audit is not None and not interrupted:
        # Imported here: it imports this module.
        from scenarios.auditing.audit_scenario import audit_scenario

        summary = add_audit(folder.path, audit_scenario(scenario, scenario.audit, data_dir, threads))
    if scenario.attacks and not interrupted:
        summary = attack_run(folder.path, scenario.attacks, data_dir, scenario)
    return summary, folder


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


class _RoundListener:
    """Writes every completed round to disk and reports it to progress bar and live page."""

    def __init__(self, simulation: Simulation, journal: Journal, progress: Sequence[RoundProgress]) -> None:
        self._simulation, self._journal, self._progress = simulation, journal, progress
        self._rows, self._bytes_sent = 0, 0

    def __call__(self, row: Mapping[str, Any]) -> None:
        # Written first, so that a round shown as done is on disk.
        self._journal.close_round(int(row["round"]))
        log = self._simulation.log
        dropouts = int(np.count_nonzero(log.dropouts["what"] == 2))
        published = log.privacy["published"]
        epsilon = float(published[-1]) if len(published) and np.isfinite(published[-1]) else None
        local = log.privacy["rigorous"]
        proven = float(np.nanmax(local)) if len(local) and not np.isnan(local).all() else None
        # Only what is new: the log grows with every round, and sizes do not change.
        new = log.messages["size_bytes"][self._rows :]
        self._rows, self._bytes_sent = self._rows + len(new), self._bytes_sent + int(new.sum())
        for listener in self._progress:
            listener.round(row, self._bytes_sent, dropouts, epsilon, proven)


def _simulate(simulation: Simulation) -> bool:
    """Runs the simulation; returns True if it was interrupted."""
    try:
        with stopping_between_events(simulation.clock):
            simulation.run()
    except KeyboardInterrupt:
        simulation.proxy.outcome.stopped_because = "interrupted"
        return True
    return False


def _summarise(simulation: Simulation, interrupted: bool, wall_s: float, resumes: int) -> dict[str, Any]:
    scenario, outcome = simulation.scenario, simulation.proxy.outcome
    accuracy, collected = (None, None) if interrupted else final_scores(simulation)
    facts = RunFacts(
        scenario=scenario,
        log=simulation.log,
        # As many as the table has: an interrupt may come while a round is being closed.
        rounds_completed=len(simulation.log.rounds),
        stopped_because=outcome.stopped_because,
        simulated_s=float(simulation.clock.now),
        wall_s=wall_s,
        privacy=add_share_views(simulation, report_privacy(simulation)),
        linkability=simulation.observer.linkage.rates(),
        client_accuracy=accuracy,
        collected_accuracy=None if collected is None else collected[0],
        collected_loss=None if collected is None else collected[1],
        protocol=kind_of(Choice(PROTOCOLS), scenario.protocol),
        events_depend_on_learning=events_depend_on_learning(scenario),
        sealed=scenario.anonymity.sealed,
        routing=scenario.anonymity.routing,
        relays=relay_nodes(scenario),
        limits=limits_of(simulation),
        warnings=[*implausible_settings(scenario), *implausible_results(simulation, collected)],
        extra=_extra(simulation) | ({"resumed": resumes} if resumes else {}),
    )
    return summarise(facts)


def _extra(simulation: Simulation) -> dict[str, Any]:
    """Returns the figures that only some scenarios have: energy, a time grid's error, remarks, and noise shares."""
    network, log = simulation.scenario.network, simulation.log
    found: dict[str, Any] = {}
    if network.energy is not None:
        found["energy_j"] = energy_j(
            log, network.energy, simulation.samples_per_training, network.devices, simulation.scenario.seed
        )
    if isinstance(network.sharing, Fair) and network.sharing.grid is not None:
        # A start waits for the next point of the grid; links that an end frees lie idle until then.
        found["grid"] = {"step_s": network.sharing.grid, "latest_start_s": simulation.world.network.latest_start_s}
    records = simulation.samples_per_training // simulation.scenario.training.epochs
    remarks = objective_report(simulation.scenario, records)
    found |= generated_report(simulation)
    return found | ({} if remarks is None else {"objective": remarks}) | share_summary(simulation)


def final_scores(simulation: Simulation) -> tuple[NDArray[np.float64] | None, tuple[float, float] | None]:
    """Returns the final accuracy of every evaluated client's model, and accuracy and loss of the collected model."""
    learning = simulation.deferred_learning
    if learning is None:
        return None, None
    chosen = simulation.scenario.evaluation.chosen(simulation.scenario.clients, simulation.scenario.seed)
    vector = simulation.collected_model()
    return learning.scores(chosen.tolist())[0], None if vector is None else learning.scores_of(vector)


def _final_tensors(simulation: Simulation) -> dict[str, NDArray[Any]] | None:
    vector = simulation.collected_model()
    if vector is None or simulation.learner is None:
        return None
    return {name: tensor.numpy() for name, tensor in simulation.learner.state_dict(vector.array()).items()}
