"""What is fixed before the first round: records, schedule, noise, and the rules of the ledgers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nodes.protocols.central import Central
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from nodes.schedules.budgets import BudgetedRounds, local_multiplier, server_multiplier
from nodes.schedules.discounting import report_mu2
from nodes.schedules.fixed import RunSchedule, ScheduleTerms
from privacy.accounting.ledger import LedgerRule, ledger_rule
from privacy.accounting.record_level import RecordAccount
from privacy.calibration.noise_plan import NoisePlan, PlanContext
from privacy.calibration.published_rules import SampledRule
from privacy.papers.lcdp_accounting import MomentsAccountants
from privacy.stages.api import UpdateShape
from privacy.stages.release_plan import NO_NOISE, plan_noise
from privacy.stages.wire import DENSE
from scenarios.composition.record_setup import record_account
from scenarios.loading.privacy_classes import budget_epsilons
from scenarios.schema import Scenario

Topology = Literal["gossip", "pseudo_central", "central"]


@dataclass(frozen=True, slots=True)
class RunTerms:
    """What is fixed before the first round.

    Attributes:
        context: what calibration and stages may know
        noise: what the stages declare about releases; None without a privacy section
        record_account: the account of single records; None unless training protects them
    """

    records_per_client: NDArray[np.int64]
    schedule: RunSchedule
    context: PlanContext
    noise: NoisePlan | None
    record_account: RecordAccount | None

    @property
    def record_shares(self) -> NDArray[np.float64]:
        """Each client's share of all records."""
        return self.records_per_client / max(int(self.records_per_client.sum()), 1)

    @property
    def most_trainings(self) -> int | None:
        """How often a client may train; None if records set no bound."""
        return None if self.record_account is None else self.record_account.most_trainings


def run_terms(scenario: Scenario, records_per_client: NDArray[np.int64], shape: UpdateShape) -> RunTerms:
    """Returns what is fixed before the first round, for updates of this shape."""
    schedule = run_schedule(scenario)
    # Noise depends on record counts, and the account of records on the noise.
    context = _plan_context(scenario, records_per_client, shape, schedule)
    noise = _plan_run_noise(scenario, context, schedule)
    account = record_account(scenario, records_per_client, noise)
    return RunTerms(records_per_client, schedule, context, noise, account)


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


def sends_models(scenario: Scenario) -> bool:
    """Returns whether nodes send their models instead of updates."""
    return getattr(scenario.protocol, "exchange", "update") == "model"


def ledger_rules(scenario: Scenario, terms: RunTerms) -> list[LedgerRule]:
    """Returns the rule of each client's ledger, shared by clients with equal epsilon; empty without privacy."""
    noise = terms.noise
    if scenario.privacy is None or noise is None:
        return []
    epsilons = budget_epsilons(scenario.privacy, scenario.clients, scenario.seed).tolist()
    # The limits of a rule are costly to compute, and thousands of clients share a few epsilons.
    losses = noise.losses or (None,) * scenario.clients
    kinds = list(zip(epsilons, losses, strict=True))
    common: dict[str, Any] = {
        "noise_factor": terms.schedule.noise_factor,
        "filtered": bool(terms.schedule.reads),
        "report_mu2": report_mu2(scenario.schedule),
    }
    rules = {kind: ledger_rule(scenario.privacy, noise, *kind, **common) for kind in set(kinds)}
    return [rules[kind] for kind in kinds]


def _plan_context(
    scenario: Scenario, records_per_client: NDArray[np.int64], shape: UpdateShape, schedule: RunSchedule
) -> PlanContext:
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
        in_mean=_waited_for(scenario),
    )


def _waited_for(scenario: Scenario) -> int | None:
    """Returns how many updates an aggregator averages at least if none is lost; None if there is no common mean."""
    protocol, topology = scenario.protocol, topology_of(scenario)
    if topology == "gossip":
        return None
    leads = topology == "pseudo_central"
    # As in `Participant.collect`; a leader's own update does not arrive.
    received = math.ceil(protocol.quorum * (protocol.cohort_size - leads) - 1e-9)
    return max(1, received + (leads and protocol.include_own))


def _plan_run_noise(scenario: Scenario, context: PlanContext, schedule: RunSchedule) -> NoisePlan | None:
    if scenario.privacy is None:
        return None
    noise = plan_noise(scenario.privacy, context)
    if scenario.aggregate.noise is not None:
        # Noise of the aggregate is accounted for with the aggregates, not with the releases.
        noise = replace(noise, notes=tuple(note for note in noise.notes if note != NO_NOISE))
    if isinstance(schedule, BudgetedRounds):
        noise = replace(noise, published=MomentsAccountants(schedule.accountants))
    elif noise.published is None and (multiplier := server_multiplier(scenario.aggregate)) is not None:
        delta = scenario.privacy.resolved_budget().delta
        rule = SampledRule(rate=context.rate, noise_multiplier=multiplier, delta=delta)
        noise = replace(noise, published=rule, notes=(*noise.notes, *_aggregate_notes(scenario)))
    # A model, and an update with noise shares, has no zeros to leave out.
    return noise if not sends_models(scenario) and scenario.noise_shares is None else replace(noise, wire=DENSE)


def _aggregate_notes(scenario: Scenario) -> list[str]:
    """Returns what the published figure of noise on the aggregate presumes."""
    notes = ["published epsilon is that of the aggregates, by the multiplier alone, with Poisson sampling assumed"]
    if scenario.aggregate.noise is not None and scenario.aggregate.noise.on == "mean":
        notes.append("a multiple of the clip norm on a mean is more noise than its sensitivity needs (E-T11)")
    return notes
