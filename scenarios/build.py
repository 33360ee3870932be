"""The composition root: builds the processes of one run from a scenario, and is the only module to know all parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nodes.adversaries.recorder import Recorder
from nodes.adversaries.traffic import TrafficReader
from nodes.aggregation.aggregator import Aggregator
from nodes.datasets.dataset import Dataset
from nodes.datasets.preparation import client_records, generator_of, record_counts
from nodes.faults.availability import Always
from nodes.faults.fault_kinds import Intrude
from nodes.faults.injector import FaultInjector, install_availability
from nodes.learning.byte_counts_only import NoLearning
from nodes.learning.deferred_learning import DeferredLearning, Vector, mean_vector
from nodes.learning.models import ByteCount
from nodes.learning.release_stages import ReleaseStages, make_stages
from nodes.messaging.control_messages import Answer
from nodes.messaging.sent_payloads import SentPayloads
from nodes.messaging.tampering import alter_content
from nodes.phase_hooks import PhaseHooks
from nodes.protocols import roles_of
from nodes.protocols.central import Central
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from nodes.proxy.proxy import Proxy
from nodes.proxy.round_state import ProxyConfig
from nodes.roles.client import Client, ClientProfile
from nodes.roles.lifecycle import ProcessSupervisor
from nodes.roles.server import Server
from nodes.round_record import RoundRecord
from nodes.schedules.budgets import BudgetedRounds, local_multiplier, server_multiplier
from nodes.schedules.discounting import loss_bound, public_share, report_mu2
from nodes.schedules.fixed import RunSchedule, ScheduleTerms
from nodes.world import World
from p2p.clock import Clock
from p2p.config.distributions import rounded
from p2p.config.errors import UserError
from p2p.gc_pause import gc_paused
from p2p.links.device_classes import per_client
from p2p.links.link_table import Links
from p2p.log.log import Log
from p2p.transport.messages import CallAnswer
from p2p.transport.network import Network
from p2p.transport.relays import Relays
from privacy.accounting.ledger import Ledger, LedgerRule, ledger_rule
from privacy.accounting.record_level import RecordAccount
from privacy.anonymity.pseudonyms import Pseudonyms
from privacy.calibration.noise_plan import NoisePlan, PlanContext
from privacy.calibration.published_rules import SampledRule
from privacy.papers.lcdp_accounting import MomentsRule
from privacy.sealing.message_sizes import message_size
from privacy.sealing.sealers import make_sealer
from privacy.stages.api import Shape
from privacy.stages.release_plan import NO_NOISE, plan_noise
from privacy.stages.wire import DENSE
from scenarios.loading.privacy_classes import budget_epsilons
from scenarios.running.noise_share_setup import NoiseSharing, share_noise
from scenarios.running.observer import Observer, RoundListener
from scenarios.running.privacy_per_round import RoundPrivacy
from scenarios.running.record_setup import record_account
from scenarios.running.schedule_losses import RoundLosses
from scenarios.schema import Scenario

if TYPE_CHECKING:
    from nodes.learning.generators.cgan import GeneratedRecords
    from nodes.learning.trainer import Learner

Topology = Literal["gossip", "pseudo_central", "central"]
Learning = DeferredLearning | NoLearning

PROXY, STANDBY, TRACKER, SERVER = range(4)
"""Offsets of the service nodes, which are numbered after the clients."""
OTHER_NODES = 4


@dataclass(slots=True)
class Simulation:
    """One run, ready to start: call `run`, then read the log, the outcome and the models."""

    scenario: Scenario
    clock: Clock
    log: Log
    world: World
    learning: Learning
    learner: Learner | None
    proxy: Proxy
    server: Server
    clients: list[Client]
    noise: NoisePlan | None
    topology: Topology
    observer: Observer
    supervisor: ProcessSupervisor
    samples_per_training: NDArray[np.int64]
    schedule: RunSchedule
    losses: RoundLosses
    records: dict[int, RoundRecord] = field(default_factory=dict)
    sharing: NoiseSharing | None = None
    record_account: RecordAccount | None = None

    def run(self) -> None:
        """Runs the processes until the proxy has finished."""
        with gc_paused():
            for _ in self.rounds():
                pass

    def rounds(self) -> Iterator[Mapping[str, Any]]:
        """Runs the processes, and yields the row of each round after the event that has closed it.

        An iteration that is given up leaves the run where it is: no later event happens.
        """
        clock, ended, rows = self.clock, self.supervisor.ended, self.log.rounds
        self.supervisor.start_all()
        told = len(rows)
        # Not `clock.run(until=...)`: it can be left in the middle only through an event of its own.
        while not ended.processed:
            clock.step()
            if len(rows) > told:
                told = len(rows)
                yield rows[-1]
        self.supervisor.close_books()

    @property
    def deferred_learning(self) -> DeferredLearning | None:
        """The models; None without learning."""
        return self.learning if isinstance(self.learning, DeferredLearning) else None

    def collected_model(self) -> Vector | None:
        """Returns the final model: the server's own, the one it collected, or the mean of several."""
        if self.deferred_learning is None:
            return None
        if self.topology == "central":
            return self.deferred_learning.model(self.world.server)
        vectors = [item.value for item in self.server.collected]
        return mean_vector(vectors) if vectors else None


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
    with gc_paused():
        return _build(scenario, data_dir, threads, at_once, listeners, first_incarnation)


def _build(
    scenario: Scenario,
    data_dir: Path | None,
    threads: int | None,
    at_once: int | None,
    listeners: Sequence[RoundListener],
    first_incarnation: int,
) -> Simulation:
    world = _make_world(scenario, first_incarnation)
    records_per_client, learner = _make_learner(scenario, data_dir, threads, at_once)
    # Noise depends on record counts, and learning on the noise; participants come before what observes them.
    schedule = run_schedule(scenario)
    shape = _shape_of(scenario, learner)
    context = plan_context(scenario, records_per_client, shape, schedule)
    noise = plan_run_noise(scenario, context, schedule)
    account_of_records = record_account(scenario, records_per_client, noise)
    learning = _make_learning(scenario, learner, noise, context)
    losses = RoundLosses(scenario, learning, schedule)
    records: dict[int, RoundRecord] = {}
    clients = _make_clients(scenario, world, learning, records, records_per_client, noise, schedule, account_of_records)
    server = Server(world.server, world, learning, records, scenario.protocol)
    participants: dict[int, Client | Server] = {client.node: client for client in clients} | {server.node: server}
    # Before the accountant, the observer and the proxy: they read the exchange's log and tracker.
    sharing = share_noise(scenario, world, participants, noise, records_per_client)
    central = isinstance(scenario.protocol, Central)
    shares = records_per_client / max(int(records_per_client.sum()), 1)
    account = RoundPrivacy(
        scenario, world.log, noise, clients, sharing, account_of_records, central=central, record_shares=shares
    )
    recorder = _make_recorder(scenario, world, learning)
    observer = Observer(
        scenario, world, learning, participants, noise, listeners, account, sharing, schedule, losses, recorder
    )
    config = _make_plan(
        scenario, observer, sharing, lambda call: participants[call.node].answer(call), schedule, losses
    )
    if scenario.aggregate.weights != "uniform":
        config.record_shares = shares
    proxy = Proxy(world, config, records)
    takeover_s = scenario.proxy.takeover if scenario.proxy.standby else None
    supervisor = ProcessSupervisor(world, participants, proxy, takeover_s)
    _install_faults(
        scenario,
        FaultInjector(
            world=world,
            supervisor=supervisor,
            clients={client.node: client for client in clients},
            records=records,
            roles=roles_of(scenario.protocol),
            total_nodes=_count_nodes(scenario),
            first_intruder=_count_nodes(scenario) - _count_intruders(scenario),
        ),
    )
    return Simulation(
        scenario=scenario,
        clock=world.clock,
        log=world.log,
        world=world,
        learning=learning,
        learner=learner,
        proxy=proxy,
        server=server,
        clients=clients,
        noise=noise,
        topology=topology_of(scenario),
        observer=observer,
        supervisor=supervisor,
        samples_per_training=scenario.training.epochs * records_per_client,
        records=records,
        sharing=sharing,
        schedule=schedule,
        losses=losses,
        record_account=account_of_records,
    )


def run_schedule(scenario: Scenario) -> RunSchedule:
    """Returns the rounds of a run, before its first."""
    terms = ScheduleTerms(
        rounds=scenario.rounds,
        clients=scenario.clients,
        cohort=scenario.protocol.cohort_size,
        local_multiplier=local_multiplier(scenario.privacy),
        server_multiplier=server_multiplier(scenario.aggregate),
    )
    return scenario.schedule.begin(terms)


def topology_of(scenario: Scenario) -> Topology:
    """Returns where updates are aggregated, as the accountants name it."""
    if isinstance(scenario.protocol, RotatingLeader):
        return "pseudo_central"
    return "central" if isinstance(scenario.protocol, Central) else "gossip"


def _install_faults(scenario: Scenario, injector: FaultInjector) -> None:
    """Schedules availability changes and faults."""
    # A fixed order: simultaneous events of one rank and node happen in the order of scheduling.
    for client in injector.clients if type(scenario.availability) is not Always else ():
        install_availability(scenario.availability, client, injector)
    for index, fault in enumerate(scenario.faults):
        fault.install(injector, f"fault-{index}")


def _count_intruders(scenario: Scenario) -> int:
    return sum(isinstance(fault, Intrude) for fault in scenario.faults)


def _count_nodes(scenario: Scenario) -> int:
    """Returns the number of nodes: clients, service nodes, relays and intruders, numbered in this order."""
    return scenario.clients + OTHER_NODES + scenario.anonymity.relay_count + _count_intruders(scenario)


def relay_nodes(scenario: Scenario) -> tuple[int, ...]:
    """Returns the relays' node numbers, which follow the service nodes."""
    first = scenario.clients + OTHER_NODES
    return tuple(range(first, first + scenario.anonymity.relay_count))


def _make_relays(scenario: Scenario) -> Relays | None:
    nodes, anonymity = relay_nodes(scenario), scenario.anonymity
    # A layer is an empty sealed message around the next one.
    layer_bytes = message_size(0, many=False, sealed=anonymity.sealed)
    return Relays(scenario.seed, nodes, anonymity.hops, layer_bytes) if nodes else None


def _make_world(scenario: Scenario, first_incarnation: int) -> World:
    settings, count = scenario.network, scenario.clients
    clock, log = Clock(), Log()
    links = Links(settings, scenario.seed, count, _count_nodes(scenario))
    links.limit(count + PROXY, settings.proxy_uplink, settings.proxy_downlink)
    # The standby has the proxy's rates, since it may become the proxy.
    links.limit(count + STANDBY, settings.proxy_uplink, settings.proxy_downlink)
    links.limit(count + SERVER, settings.server_uplink, settings.server_downlink)
    for node in relay_nodes(scenario):
        links.limit(node, settings.relay_uplink, settings.relay_downlink)
    network = Network(
        clock,
        links,
        settings.sharing,
        log,
        scenario.seed,
        settings.retransmit,
        # Round 0 is the set-up, and the round after the last one collects the final model.
        rounds=scenario.rounds + 2,
        loss=settings.loss,
        jitter=settings.jitter,
        relays=_make_relays(scenario),
        alter=alter_content,
    )
    anonymity = scenario.anonymity
    return World(
        clock=clock,
        network=network,
        log=log,
        seed=scenario.seed,
        sealed=anonymity.sealed,
        sealer=make_sealer(anonymity.sealed),
        router=Pseudonyms(scenario.seed, anonymity.rehash),
        phase_hooks=PhaseHooks(),
        proxy=count + PROXY,
        standby=count + STANDBY,
        server=count + SERVER,
        reported_loss=scenario.schedule.reads,
        weights=scenario.aggregate.weights,
        first_incarnation=first_incarnation,
        sent_payloads=SentPayloads() if scenario.adversaries else None,
    )


def _make_learner(
    scenario: Scenario, data_dir: Path | None, threads: int | None, at_once: int | None
) -> tuple[NDArray[np.int64], Learner | None]:
    """Returns the number of records of each client, and the learner; None without learning."""
    if scenario.learning == "none":
        # The same counts as with learning: they set training times, hence events.
        return record_counts(scenario.data, scenario.clients, data_dir, scenario.seed, scenario.reserved), None
    # Imported here: torch takes seconds to load, and runs without learning do not need it.
    try:
        from nodes.learning.private_records.dp_sgd import RecordNoise
        from nodes.learning.trainer import Learner
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UserError(
            "learning = torch: torch is not installed; `pip install torch`, or simulate messages only: `learning: none`"
        ) from None

    dataset, shards = client_records(scenario.data, scenario.clients, data_dir, scenario.seed, scenario.reserved)
    counts = np.array([len(shard) for shard in shards], dtype=np.int64)
    # The noise of DP-SGD does not depend on what happens to updates afterwards.
    settings, account = scenario.training.per_sample, record_account(scenario, counts, None)
    learner = Learner(
        scenario.model,
        dataset,
        shards,
        scenario.training,
        scenario.seed,
        objective=scenario.objective,
        generated=_generate(scenario, dataset, shards, threads),
        record_noise=None if settings is None or account is None else RecordNoise(settings, account.multiplier),
        validation=public_share(scenario.schedule),
        at_once=at_once,
        threads=threads,
    )
    return counts, learner


def _generate(
    scenario: Scenario, dataset: Dataset, shards: list[NDArray[np.int64]], threads: int | None
) -> tuple[GeneratedRecords, float] | None:
    """Returns the records that clients' generators make, and their share in training; None if there are none."""
    settings = generator_of(scenario.data)
    if settings is None:
        return None
    import torch

    from nodes.learning.generators.cgan import generate_records

    bounds = scenario.data.value_range() if hasattr(scenario.data, "value_range") else None
    cores = threads or torch.get_num_threads()
    return generate_records(settings, dataset, shards, bounds, scenario.seed, cores), settings.share


def plan_run_noise(scenario: Scenario, context: PlanContext, schedule: RunSchedule) -> NoisePlan | None:
    """Returns what the stages declare about the run's releases; None without a privacy section."""
    if scenario.privacy is None:
        return None
    noise = plan_noise(scenario.privacy, context)
    if scenario.aggregate.noise is not None:
        # Noise of the aggregate is accounted for with the aggregates, not with the releases.
        noise = replace(noise, notes=tuple(note for note in noise.notes if note != NO_NOISE))
    if isinstance(schedule, BudgetedRounds):
        noise = replace(noise, published=MomentsRule(schedule.accountants))
    elif noise.published is None and (multiplier := server_multiplier(scenario.aggregate)) is not None:
        delta = scenario.privacy.resolved_budget().delta
        rule = SampledRule(rate=context.rate, noise_multiplier=multiplier, delta=delta)
        noise = replace(noise, published=rule, notes=(*noise.notes, *_aggregate_notes(scenario)))
    # A model, and an update with noise shares, has no zeros to leave out.
    return noise if not _sends_models(scenario) and scenario.noise_shares is None else replace(noise, wire=DENSE)


def _aggregate_notes(scenario: Scenario) -> list[str]:
    """Returns what the published figure of noise on the aggregate presumes."""
    notes = ["published epsilon is that of the aggregates, by the multiplier alone, with Poisson sampling assumed"]
    if scenario.aggregate.noise is not None and scenario.aggregate.noise.on == "mean":
        notes.append("a multiple of the clip norm on a mean is more noise than its sensitivity needs (E-T11)")
    return notes


def plan_context(
    scenario: Scenario, records_per_client: NDArray[np.int64], shape: Shape, schedule: RunSchedule
) -> PlanContext:
    """Returns what calibration and stages may know before the first round."""
    protocol = scenario.protocol
    return PlanContext(
        clients=scenario.clients,
        train_per_round=protocol.cohort_size,
        exchange_with=protocol.exchange_with if isinstance(protocol, Gossip) else None,
        rounds=scenario.rounds,
        records=records_per_client,
        topology=topology_of(scenario),
        rehash=scenario.anonymity.rehash != "never",
        selection=protocol.selection,
        noise_factor=schedule.noise_factor,
        shape=shape,
        budget=None if scenario.privacy is None else scenario.privacy.resolved_budget(),
    )


def _sends_models(scenario: Scenario) -> bool:
    return getattr(scenario.protocol, "exchange", "update") == "model"


def _shape_of(scenario: Scenario, learner: Learner | None) -> Shape:
    """Returns the form of an update."""
    if learner is not None:
        return Shape(learner.dimension, learner.layers)
    form = ((), 0) if isinstance(scenario.model, ByteCount) else scenario.data.form()
    if form is None:
        raise UserError("learning = none: the shape of a `file` data set is not known; use `torch` or another set")
    return update_shape(scenario, form, scenario.model.parameters(*form))


def update_shape(scenario: Scenario, form: tuple[tuple[int, ...], int], dimension: int) -> Shape:
    """Returns the form of an update without training; a module is built only if a stage works layer by layer."""
    stages = () if scenario.privacy is None else scenario.privacy.release_stages
    if not any(getattr(stage, "by_layer", False) for stage in stages):
        return Shape(dimension)
    from nodes.learning.module_contract import layer_sizes

    return Shape(dimension, layer_sizes(scenario.model.build(*form)))


def _make_learning(
    scenario: Scenario,
    learner: Learner | None,
    noise: NoisePlan | None,
    context: PlanContext,
) -> Learning:
    wire = DENSE if noise is None else noise.wire
    if learner is None:
        return NoLearning(context.shape.dimension, wire, scenario.seed, sends_loss=scenario.aggregate.sends_loss)
    pipeline = ReleaseStages()
    if scenario.privacy is not None:
        pipeline = make_stages(scenario.privacy.release_stages, context, scenario.seed, scenario.training.rate, wire)
    models, bound = _sends_models(scenario), loss_bound(scenario.schedule)
    aggregator = Aggregator(settings=scenario.aggregate, clip_norm=1.0 if noise is None else noise.clip_norm)
    return DeferredLearning(
        learner, scenario.clients, pipeline, scenario.seed, models, loss_bound=bound, aggregator=aggregator
    )


def _make_recorder(scenario: Scenario, world: World, learning: Learning) -> Recorder | None:
    if world.sent_payloads is None:
        return None
    reader = TrafficReader(
        payloads=world.sent_payloads,
        proxy=world.proxy,
        standby=world.standby,
        server=world.server,
        in_the_clear=scenario.anonymity.sealed is False,
        relayed=scenario.anonymity.relay_count > 0,
    )
    return Recorder(scenario.adversaries, scenario.clients, scenario.seed, reader, learning)


def _make_clients(
    scenario: Scenario,
    world: World,
    learning: Learning,
    records: dict[int, RoundRecord],
    records_per_client: NDArray[np.int64],
    noise: NoisePlan | None,
    schedule: RunSchedule,
    account: RecordAccount | None,
) -> list[Client]:
    speeds = per_client(scenario.network.devices, "compute", scenario.compute, scenario.seed, scenario.clients)
    # Rounded like all durations, so that equal inputs give equal instants on every platform.
    train_s = rounded(scenario.training.epochs * records_per_client / speeds, "s")
    rules = ledger_rules(scenario, noise, schedule)
    most_trainings = None if account is None else account.most_trainings
    clients = []
    for node in range(scenario.clients):
        std, sensitivity = (0.0, 0.0) if noise is None else (float(noise.noise_std[node]), noise.sensitivity)
        profile = ClientProfile(float(train_s[node]), std, sensitivity, account is not None, most_trainings)
        ledger = Ledger(rules[node], std, sensitivity) if rules else None
        clients.append(Client(node, world, learning, records, scenario.protocol, profile, ledger))
        if isinstance(scenario.protocol, Central):
            clients[-1].model_round = 0  # the server sends its model in every round, so there is no set-up
    return clients


def ledger_rules(scenario: Scenario, noise: NoisePlan | None, schedule: RunSchedule) -> list[LedgerRule]:
    """Returns the rule of each client's ledger, shared by clients with equal epsilon; empty without privacy."""
    if scenario.privacy is None or noise is None:
        return []
    epsilons = budget_epsilons(scenario.privacy, scenario.clients, scenario.seed).tolist()
    # The limits of a rule are costly to compute, and thousands of clients share a few epsilons.
    losses = noise.losses or (None,) * scenario.clients
    kinds = list(zip(epsilons, losses, strict=True))
    terms: dict[str, Any] = {
        "noise_factor": schedule.noise_factor,
        "filtered": bool(schedule.reads),
        "report_mu2": report_mu2(scenario.schedule),
    }
    rules = {kind: ledger_rule(scenario.privacy, noise, *kind, **terms) for kind in set(kinds)}
    return [rules[kind] for kind in kinds]


def _make_plan(
    scenario: Scenario,
    observer: Observer,
    sharing: NoiseSharing | None,
    answer: Callable[[CallAnswer], Answer],
    schedule: RunSchedule,
    losses: RoundLosses,
) -> ProxyConfig:
    protocol = scenario.protocol
    return ProxyConfig(
        clients=scenario.clients,
        rounds=scenario.rounds,
        rules=protocol,
        protocol=protocol,
        hand_out=scenario.anonymity.hand_out,
        central=isinstance(protocol, Central),
        collect="" if isinstance(protocol, Central) else getattr(protocol, "collect", "random"),
        leader_timeout_s=getattr(protocol, "leader_timeout", 0.0),
        answer=answer,
        on_forming=observer.on_forming,
        on_closed=observer.on_closed,
        on_quiet=observer.on_quiet,
        schedule=schedule,
        loss_of=losses.of,
        tracker=None if sharing is None else sharing.tracker,
        extra_s=0.0 if sharing is None else sharing.extra_s,
    )
