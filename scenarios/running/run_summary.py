"""The summary of a run that has ended, or was interrupted."""

from __future__ import annotations

from typing import Any

from nodes.protocols import PROTOCOLS
from p2p.config.choices import Choice
from p2p.transport.sharing import Fair
from scenarios.accounting.unaccounted import events_depend_on_learning
from scenarios.composition.simulation import Simulation
from scenarios.loading.checks.implausible import implausible_settings
from scenarios.loading.writing.dump import kind_of
from scenarios.metrics.communication.energy import energy_j
from scenarios.metrics.headline.generated_report import generated_report
from scenarios.metrics.headline.objective_report import objective_report
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.metrics.implausible_results import implausible_results
from scenarios.metrics.limits import limits_of
from scenarios.metrics.privacy.noise_share_report import add_share_views, share_summary
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.node_numbers import relay_nodes
from scenarios.run_folder.summary import summarise


def summarise_run(simulation: Simulation, interrupted: bool, wall_s: float, resumes: int) -> dict[str, Any]:
    """Returns the summary; an interrupted run has no final scores."""
    scenario, outcome = simulation.scenario, simulation.proxy.outcome
    accuracy, collected = (None, None) if interrupted else simulation.final_scores()
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
