"""What watches a run: the accountant, the adversaries' recorder, and the observer that writes each round's row."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.adversaries.recorder import Recorder
from nodes.adversaries.traffic import TrafficReader
from nodes.learning.byte_counts_only import NoLearning
from nodes.learning.deferred_learning import DeferredLearning
from nodes.noise_shares.run_exchange import NoiseSharing
from nodes.protocols.central import Central
from nodes.world import World
from scenarios.composition.participant_setup import Participants
from scenarios.composition.run_terms import RunTerms
from scenarios.observing.observer import RoundListener, RunObserver
from scenarios.observing.privacy_per_round import RoundPrivacy
from scenarios.observing.schedule_losses import RoundLosses
from scenarios.schema import Scenario


def make_observer(
    scenario: Scenario,
    world: World,
    learning: DeferredLearning | NoLearning,
    participants: Participants,
    terms: RunTerms,
    losses: RoundLosses,
    sharing: NoiseSharing | None,
    listeners: Sequence[RoundListener],
) -> RunObserver:
    """Returns the observer, with the account of each round and the adversaries' observations."""
    return RunObserver(
        scenario,
        world,
        learning,
        participants.by_node,
        terms.noise,
        listeners,
        RoundPrivacy(
            scenario,
            world.log,
            terms.noise,
            participants.clients,
            sharing,
            terms.record_account,
            central=isinstance(scenario.protocol, Central),
            record_shares=terms.record_shares,
        ),
        sharing,
        terms.schedule,
        losses,
        _make_recorder(scenario, world, learning),
    )


def _make_recorder(scenario: Scenario, world: World, learning: DeferredLearning | NoLearning) -> Recorder | None:
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
