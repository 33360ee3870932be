"""The processes of a run: clients, the server, and the proxy's configuration; faults that befall them."""

from __future__ import annotations

from dataclasses import dataclass

from nodes.faults.availability import Always
from nodes.faults.injector import FaultInjector, install_availability
from nodes.learning.byte_counts_only import NoLearning
from nodes.learning.deferred_learning import DeferredLearning
from nodes.messaging.control_messages import Answer
from nodes.noise_shares.run_exchange import NoiseSharing
from nodes.protocols import roles_of
from nodes.protocols.central import Central
from nodes.proxy.round_state import ProxyConfig
from nodes.roles.client import Client, ClientProfile
from nodes.roles.first_model import take_first_models
from nodes.roles.lifecycle import ProcessSupervisor
from nodes.roles.server import Server
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.config.distributions import rounded
from p2p.links.device_classes import per_client
from p2p.transport.messages import CallAnswer
from privacy.accounting.ledger import Ledger
from scenarios.composition.run_terms import RunTerms, ledger_rules
from scenarios.node_numbers import count_intruders, count_nodes
from scenarios.observing.observer import RunObserver
from scenarios.observing.schedule_losses import RoundLosses
from scenarios.schema import Scenario


@dataclass(frozen=True, slots=True)
class Participants:
    """The clients and the server, and the records of rounds that they and the proxy write together."""

    clients: list[Client]
    server: Server
    by_node: dict[int, Client | Server]
    records: dict[int, RoundRecord]


def make_participants(
    scenario: Scenario, world: World, learning: DeferredLearning | NoLearning, terms: RunTerms
) -> Participants:
    """Returns the clients, each with its speed, noise and ledger, and the server."""
    speeds = per_client(scenario.network.devices, "compute", scenario.compute, scenario.seed, scenario.clients)
    # Rounded like all durations, so that equal inputs give equal instants on every platform.
    train_s = rounded(scenario.training.epochs * terms.records_per_client / speeds, "s")
    noise, rules = terms.noise, ledger_rules(scenario, terms)
    protects_records = terms.record_account is not None
    sensitivities = [] if noise is None else noise.sensitivities.tolist()
    records: dict[int, RoundRecord] = {}
    clients = []
    for node in range(scenario.clients):
        std, sensitivity = (0.0, 0.0) if noise is None else (float(noise.noise_std[node]), sensitivities[node])
        profile = ClientProfile(float(train_s[node]), std, sensitivity, protects_records, terms.most_trainings)
        ledger = Ledger(rules[node], std, sensitivity) if rules else None
        clients.append(Client(node, world, learning, records, scenario.protocol, profile, ledger))
        if isinstance(scenario.protocol, Central):
            clients[-1].model_round = 0  # the server sends its model in every round, so there is no set-up
    server = Server(world.server, world, learning, records, scenario.protocol)
    by_node: dict[int, Client | Server] = {client.node: client for client in clients}
    return Participants(clients, server, by_node | {server.node: server}, records)


def make_proxy_config(
    scenario: Scenario,
    participants: Participants,
    terms: RunTerms,
    observer: RunObserver,
    losses: RoundLosses,
    sharing: NoiseSharing | None,
) -> ProxyConfig:
    """Returns what the proxy knows of the run, and whom it asks and tells."""
    protocol, by_node = scenario.protocol, participants.by_node

    def answer(call: CallAnswer) -> Answer:
        return by_node[call.node].answer(call)

    def public_key(answer: Answer) -> bytes:
        return by_node[answer.node].endpoint.joining_key(answer.round_number, answer.life)

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
        public_key=public_key,
        end_late_fetch=lambda node: participants.clients[node].end_late_fetch(),
        take_first_models=lambda models: take_first_models(models, participants.clients),
        on_forming=observer.on_forming,
        on_closed=observer.on_closed,
        on_quiet=observer.on_quiet,
        schedule=terms.schedule,
        loss_of=losses.of,
        record_shares=None if scenario.aggregate.weights == "uniform" else terms.record_shares,
        tracker=None if sharing is None else sharing.tracker,
        extra_s=0.0 if sharing is None else sharing.extra_s,
    )


def install_faults(scenario: Scenario, world: World, supervisor: ProcessSupervisor, participants: Participants) -> None:
    """Schedules availability changes and faults."""
    injector = FaultInjector(
        world=world,
        supervisor=supervisor,
        clients={client.node: client for client in participants.clients},
        records=participants.records,
        roles=roles_of(scenario.protocol),
        total_nodes=count_nodes(scenario),
        first_intruder=count_nodes(scenario) - count_intruders(scenario),
    )
    # A fixed order: simultaneous events of one rank and node happen in the order of scheduling.
    for client in injector.clients if type(scenario.availability) is not Always else ():
        install_availability(scenario.availability, client, injector)
    for index, fault in enumerate(scenario.faults):
        fault.install(injector, f"fault-{index}")
