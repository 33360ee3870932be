"""The composition root: connects the parts of one run, and is the only module to know them all.

Each part is made in `scenarios.composition` from its own sections of the scenario.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nodes.proxy.proxy import Proxy
from nodes.roles.lifecycle import ProcessSupervisor
from p2p.gc_pause import gc_paused
from scenarios.composition.learning_setup import make_learner, make_learning, shape_of
from scenarios.composition.network_setup import make_world
from scenarios.composition.noise_share_setup import share_noise
from scenarios.composition.observer_setup import make_observer
from scenarios.composition.participant_setup import install_faults, make_participants, make_proxy_config
from scenarios.composition.run_terms import run_terms, topology_of
from scenarios.composition.simulation import Simulation
from scenarios.observing.observer import RoundListener
from scenarios.observing.schedule_losses import RoundLosses
from scenarios.schema import Scenario


@gc_paused()
def build(
    scenario: Scenario,
    *,
    data_dir: Path | None = None,
    threads: int | None = None,
    at_once: int | None = None,
    listeners: Sequence[RoundListener] = (),
    first_incarnation: int = 0,
) -> Simulation:
    """Connects the parts of a scenario.

    Args:
        at_once: how many clients are trained in one stack; results agree to float tolerance.
        listeners: called after every round; they observe and change nothing.
        first_incarnation: beyond all incarnations of the run that is resumed, so that no key is drawn twice.
    """
    world = make_world(scenario, first_incarnation)
    records_per_client, learner = make_learner(scenario, data_dir, threads, at_once)
    # Noise depends on record counts, and learning on the noise; participants come before what observes them.
    terms = run_terms(scenario, records_per_client, shape_of(scenario, learner))
    learning = make_learning(scenario, learner, terms)
    participants = make_participants(scenario, world, learning, terms)
    # Before the accountant, the observer and the proxy: they read the exchange's log and tracker.
    sharing = share_noise(scenario, world, participants.by_node, terms.noise, records_per_client)
    losses = RoundLosses(scenario, learning, terms.schedule)
    observer = make_observer(scenario, world, learning, participants, terms, losses, sharing, listeners)
    config = make_proxy_config(scenario, participants, terms, observer, losses, sharing)
    proxy = Proxy(world, config, participants.records)
    takeover_s = scenario.proxy.takeover if scenario.proxy.standby else None
    supervisor = ProcessSupervisor(world, participants.by_node, proxy, takeover_s)
    install_faults(scenario, world, supervisor, participants)
    return Simulation(
        scenario=scenario,
        clock=world.clock,
        log=world.log,
        world=world,
        learning=learning,
        learner=learner,
        proxy=proxy,
        server=participants.server,
        clients=participants.clients,
        noise=terms.noise,
        topology=topology_of(scenario),
        observer=observer,
        supervisor=supervisor,
        samples_per_training=scenario.training.epochs * records_per_client,
        records=participants.records,
        sharing=sharing,
        schedule=terms.schedule,
        losses=losses,
        record_account=terms.record_account,
    )
