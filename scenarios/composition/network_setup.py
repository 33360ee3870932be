"""The network of a run, and what all its processes share."""

from __future__ import annotations

from nodes.messaging.sent_payloads import SentPayloads
from nodes.messaging.tampering import alter_content
from nodes.phase_hooks import PhaseHooks
from nodes.world import World
from p2p.clock import Clock
from p2p.links.link_table import Links
from p2p.log.log import Log
from p2p.transport.network import Network
from p2p.transport.relays import Relays
from privacy.anonymity.pseudonyms import Pseudonyms
from privacy.sealing.message_sizes import message_size
from privacy.sealing.sealers import make_sealer
from scenarios.node_numbers import PROXY, SERVER, STANDBY, count_nodes, relay_nodes
from scenarios.schema import Scenario


def make_world(scenario: Scenario, first_incarnation: int) -> World:
    """Returns the clock, the log, the network with its links, the router and the sealer."""
    clock, log = Clock(), Log()
    count, anonymity = scenario.clients, scenario.anonymity
    return World(
        clock=clock,
        network=_make_network(scenario, clock, log),
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


def _make_network(scenario: Scenario, clock: Clock, log: Log) -> Network:
    settings = scenario.network
    return Network(
        clock,
        _make_links(scenario),
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


def _make_links(scenario: Scenario) -> Links:
    settings, count = scenario.network, scenario.clients
    links = Links(settings, scenario.seed, count, count_nodes(scenario))
    links.limit(count + PROXY, settings.proxy_uplink, settings.proxy_downlink)
    # The standby has the proxy's rates, since it may become the proxy.
    links.limit(count + STANDBY, settings.proxy_uplink, settings.proxy_downlink)
    links.limit(count + SERVER, settings.server_uplink, settings.server_downlink)
    for node in relay_nodes(scenario):
        links.limit(node, settings.relay_uplink, settings.relay_downlink)
    return links


def _make_relays(scenario: Scenario) -> Relays | None:
    nodes, anonymity = relay_nodes(scenario), scenario.anonymity
    # A layer is an empty sealed message around the next one.
    layer_bytes = message_size(0, many=False, sealed=anonymity.sealed)
    return Relays(scenario.seed, nodes, anonymity.hops, layer_bytes) if nodes else None
