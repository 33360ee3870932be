"""Epsilon so far, after every round: what the paper would print, and what each view can really have learnt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.roles.client import Client
from nodes.round_record import RoundRecord
from p2p.log.log import Log
from p2p.log.records import KIND, OUTCOME, WHAT
from privacy.calibration.noise_plan import NoisePlan
from privacy.views.rigorous import Topology
from privacy.views.running import RoundFacts, RunningViews
from scenarios.metrics.unaccounted import unaccounted_releases
from scenarios.schema import Scenario

FIGURES = ("epsilon_published", "epsilon_local", "epsilon_peer_worst", "epsilon_model")
"""Columns of the rounds' table."""


class RoundPrivacy:
    """Keeps the account of a run while it goes. An update still under way when a round closes counts as received."""

    def __init__(
        self, scenario: Scenario, topology: Topology, log: Log, noise: NoisePlan | None, clients: Sequence[Client]
    ) -> None:
        self._scenario, self._log, self._clients = scenario, log, clients
        self._published: float | None = None
        self._rates: list[float | None] = []
        self._seen = 0
        self._exhausted_from = min(
            (client.ledger.exhausted_from for client in clients if client.ledger is not None), default=math.inf
        )
        self._views: RunningViews | None = None
        if scenario.privacy is not None and noise is not None and not unaccounted_releases(scenario):
            self._views = RunningViews(
                clients=scenario.clients,
                topology=topology,
                sensitivity=noise.sensitivity,
                delta=scenario.privacy.resolved_budget().delta,
                most_releases=scenario.rounds * scenario.protocol.cohort_size,
            )

    def figures(self, record: RoundRecord) -> Mapping[str, float | None]:
        """The round's epsilons; `published` is None where no formula applies."""
        table = self._log.privacy
        rows = self._seen + np.flatnonzero(table["round"][self._seen :] == record.round_number)
        self._seen = int(rows[0]) if len(rows) else self._seen
        known = table["published"][rows][~np.isnan(table["published"][rows])]
        if len(known):
            self._published = float(known.max())
        if self._views is None:
            return dict(zip(FIGURES, (self._published, math.inf, math.inf, math.inf), strict=True))
        self._views.add(self._facts(record, rows))
        return dict(zip(FIGURES, (self._published, *self._views.now()), strict=True))

    @property
    def sampling_rate(self) -> float | None:
        """The largest share that a cohort was of the clients it was drawn from; None if one was no uniform sample.

        Who is left when others have spent their budget depends on who took part before, so the rounds are not
        independent samples any more: no amplification is claimed then.
        """
        known = [rate for rate in self._rates if rate is not None]
        return max(known) if known and len(known) == len(self._rates) else None

    def _facts(self, record: RoundRecord, rows: NDArray[np.intp]) -> RoundFacts:
        table, log = self._log.privacy, self._log
        self._rates.append(self._rate(record))
        return RoundFacts(
            clients=table["node"][rows].astype(np.int64),
            stds=table["noise_std"][rows].copy(),
            used=record.averaged(log),
            unused=_unused(log, record),
            rate=self._rates[-1],
        )

    def _rate(self, record: RoundRecord) -> float | None:
        """The cohort's share of those it was drawn from; None if it was no uniform sample of all clients."""
        spent = (self._clients[node].ledger for node in record.cohort.tolist())
        before = self._exhausted_from
        after = min((ledger.exhausted_from for ledger in spent if ledger is not None), default=math.inf)
        self._exhausted_from = min(before, after)
        if self._scenario.protocol.selection != "uniform" or before <= record.round_number:
            return None
        joined = joined_in_round(self._log, self._scenario.clients, record.round_number, record.first_row)
        return min(1.0, len(record.cohort) / max(joined, 1))


def joined_in_round(log: Log, clients: int, round_number: int, first_row: int = 0) -> int:
    """How many clients a cohort was drawn from: they answered the invitation and were not absent."""
    columns, here, absent = log.messages, slice(first_row, None), log.dropouts
    said = (columns["round"][here] == round_number) & (columns["kind"][here] == KIND["control"])
    said &= (columns["outcome"][here] == OUTCOME["delivered"]) & (columns["sender"][here] < clients)
    away = (absent["round"] == round_number) & (absent["what"] == WHAT["absence"])
    return len(np.setdiff1d(columns["sender"][here][said], absent["node"][away]))


def _unused(log: Log, record: RoundRecord) -> NDArray[np.int64]:
    """Updates that came to somebody, or may still come, and were not averaged."""
    columns, here = log.messages, slice(record.first_row, None)
    of_round = (columns["round"][here] == record.round_number) & (columns["kind"][here] == KIND["update"])
    last_hop = columns["receiver"][here] == columns["destination"][here]
    outcome = columns["outcome"][here]
    came = (outcome == OUTCOME["delivered"]) & last_hop & ~columns["used"][here]
    rows = of_round & (came | (outcome == OUTCOME["in_flight"])) & (columns["destination"][here] >= 0)
    rows &= np.isin(columns["origin"][here], record.cohort)  # an intruder's forgeries tell nothing about a client
    ends: list[NDArray[Any]] = [columns[end][here][rows] for end in ("origin", "destination")]
    return np.column_stack(ends).astype(np.int64)
