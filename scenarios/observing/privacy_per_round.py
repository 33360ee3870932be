"""Epsilon so far, after every round: what the paper would print, and what each view can really have learnt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nodes.noise_shares.run_exchange import NoiseSharing
from nodes.roles.client import Client
from nodes.round_record import RoundRecord
from p2p.log.log import Log
from p2p.log.records import KIND, OUTCOME, WHAT
from privacy.accounting.accountant import Accountant, Views
from privacy.accounting.figures import EpsilonFigure
from privacy.accounting.record_level import RecordAccount
from privacy.accounting.sampling_premises import Amplification, Draw
from privacy.accounting.setting import Setting
from privacy.calibration.noise_plan import NoisePlan
from scenarios.accounting.round_contents import ContentReader, aggregation_of
from scenarios.accounting.run_accountant import setting_of
from scenarios.accounting.sampling import why_not_sampled
from scenarios.accounting.unaccounted import disclosed, sums_hide, unaccounted_releases
from scenarios.schema import Scenario

FIGURES = ("epsilon_published", "epsilon_local", "epsilon_peer_worst", "epsilon_model")
"""Columns of the rounds' table."""


class RoundPrivacy:
    """Keeps the account of a run while it goes; the final figures come from the same accountant (`account`)."""

    def __init__(
        self,
        scenario: Scenario,
        log: Log,
        noise: NoisePlan | None,
        clients: Sequence[Client],
        sharing: NoiseSharing | None,
        records: RecordAccount | None = None,
        *,
        central: bool,
        record_shares: NDArray[np.float64],
    ) -> None:
        self._aggregation = None if noise is None else aggregation_of(scenario, noise, record_shares)
        self._scenario, self._log, self._clients, self._central = scenario, log, clients, central
        self._noise, self._sharing, self._records = noise, sharing, records
        self._records_up_to = 0
        self._published: float | None = None
        self.draws: dict[int, Draw] = {}
        """How each round's cohort was drawn."""
        self._current: set[int] | None = None
        self._first_release = 0
        self._exhausted_from = min(
            (client.ledger.exhausted_from for client in clients if client.ledger is not None), default=math.inf
        )
        self._accountant = self._new_accountant()
        self.final: Accountant | None = None
        """The accountant of the whole run, once `account` was asked."""
        self._amplification = Amplification()

    @property
    def setting(self) -> Setting | None:
        """What the figures rest on; None if something leaves clients that is not accounted for."""
        return None if self._accountant is None else self._accountant.setting

    def figures(self, record: RoundRecord) -> Mapping[str, float | None]:
        """The round's epsilons; `published` is None where no formula applies, `epsilon_record` only with DP-SGD."""
        found = self._client_figures(record)
        worst = self.worst_record()
        return found if worst is None else {**found, "epsilon_record": worst.epsilon}

    def worst_record(self) -> EpsilonFigure | None:
        """Returns the figure about single records after all trainings so far; None if they are not protected."""
        if self._records is None:
            return None
        return self._records.worst([client.trainings for client in self._clients])

    def fill_records(self) -> None:
        """Fills in the record-level epsilon of the releases charged since the last round."""
        if self._records is None:
            return
        table = self._log.privacy
        new = np.arange(self._records_up_to, len(table))
        self._records_up_to = len(table)
        table["record"][new] = self._records.epsilons(table["trainings"][new], table["node"][new])

    def _client_figures(self, record: RoundRecord) -> dict[str, float | None]:
        table, number = self._log.privacy, record.round_number
        rows = self._first_release + np.flatnonzero(table["round"][self._first_release :] == number)
        first, self._first_release = self._first_release, int(rows[0]) if len(rows) else self._first_release
        known = table["published"][rows][~np.isnan(table["published"][rows])]
        if len(known):
            self._published = float(known.max())
        if self._accountant is None:
            return dict(zip(FIGURES, (self._published, math.inf, math.inf, math.inf), strict=True))
        messages = record.first_row + np.flatnonzero(self._log.messages["round"][record.first_row :] == number)
        self.draws[number] = self._draw(record, messages)
        contents = self._reader().round(number, messages, first, record.first_aggregation)
        self._accountant.add(contents)
        self._amplification.add(contents, self.draws[number])
        views = self._views(self._accountant, self._amplification)
        now = (views.local.epsilon, views.peer_worst.epsilon, views.model.epsilon)
        return dict(zip(FIGURES, (self._published, *now), strict=True))

    def account(self, collected: Sequence[int] | None) -> tuple[Views, Accountant, str] | None:
        """Returns the views of the whole log as it is now, their accountant, and why nothing is amplified.

        Args:
            collected: in gossip, the clients whose models leave the run.
        """
        accountant, amplification = self._new_accountant(), Amplification()
        if accountant is None:
            return None
        for contents in self._reader().rounds():
            accountant.add(contents)
            # A round that was cut short by the end of the run has no draw.
            amplification.add(contents, self.draws.get(contents.round_number, Draw(1.0, 0, "the round did not end")))
        self.final = accountant
        return self._views(accountant, amplification, collected), accountant, amplification.why_not

    def add_remove_views(self, collected: Sequence[int] | None) -> Views | None:
        """Returns what is proved if a client's updates are there or zero, noise added to either; None without proof.

        Zero lies halfway between two opposite updates, so releases move half as far as when a client is replaced. Who
        takes part is not hidden. Sampling is not counted: its proof for cohorts of fixed size exchanges members, which
        is replacing again.
        """
        accountant = self._new_accountant()
        if accountant is None or accountant.setting.losses:
            return None
        for contents in self._reader().rounds():
            accountant.add(replace(contents, sensitivity=contents.sensitivity / 2.0))
        return accountant.views(collected)

    def _views(
        self, accountant: Accountant, amplification: Amplification, collected: Sequence[int] | None = None
    ) -> Views:
        views = accountant.views(collected)
        if accountant.setting.spread == "by_path":
            return views
        return replace(views, model=amplification.amplified(views.model, accountant.setting.delta))

    def _new_accountant(self) -> Accountant | None:
        scenario = self._scenario
        if scenario.privacy is None or self._noise is None or unaccounted_releases(scenario, self._noise):
            return None
        return Accountant(setting_of(scenario, scenario.privacy, self._noise, central=self._central))

    def _reader(self) -> ContentReader:
        return ContentReader(
            log=self._log,
            clients=self._scenario.clients,
            spread=disclosed(self._scenario).spread,
            sends_first=disclosed(self._scenario).sends_first,
            sensitivity=np.zeros(0) if self._noise is None else self._noise.sensitivities,
            in_the_clear=self._scenario.anonymity.sealed is False,
            sharing=self._sharing,
            aggregation=self._aggregation,
            losses=() if self._noise is None else self._noise.losses,
            linear=self._noise is None or sums_hide(self._scenario, self._noise),
        )

    def _draw(self, record: RoundRecord, messages: NDArray[np.int64]) -> Draw:
        """Returns how the cohort was drawn, with the premise of sampling that failed, if one did."""
        spent = (self._clients[node].ledger for node in record.cohort.tolist())
        before = self._exhausted_from
        after = min((ledger.exhausted_from for ledger in spent if ledger is not None), default=math.inf)
        self._exhausted_from = min(before, after)
        joined = joined_in_round(self._log, self._scenario.clients, record.round_number, record.first_row)
        failed = why_not_sampled(self._scenario, self._noise)
        if not failed and before <= record.round_number:
            failed = "some clients have no budget left, so the cohort depends on who took part before"
        # Last, and only while nothing has failed: the first premise that fails ends all amplification.
        if not failed and self._has_stale_members(record, messages):
            failed = "a member trained from an older model, so its update tells when it took part before"
        return Draw(min(1.0, len(record.cohort) / max(joined, 1)), len(record.cohort), failed)

    def _has_stale_members(self, record: RoundRecord, messages: NDArray[np.int64]) -> bool:
        """Returns whether a member may have trained from another model than the newest aggregate.

        A server sends its model to every member before it trains. Elsewhere the newest aggregate is at its leader,
        at those who used the leader's model, and at those to whom it was handed over.
        """
        if self._central:
            return False
        current = self._current
        if record.aggregated_s:
            self._current = self._users(messages, "model") | set(record.aggregated_s)
        return current is not None and not set(record.cohort.tolist()) <= current | self._users(messages, "handover")

    def _users(self, messages: NDArray[np.int64], kind: str) -> set[int]:
        """Returns the nodes that used a message of this kind."""
        columns = self._log.messages
        rows = messages[(columns["kind"][messages] == KIND[kind]) & columns["used"][messages]]
        return set(columns["destination"][rows].tolist())


def joined_in_round(log: Log, clients: int, round_number: int, first_row: int = 0) -> int:
    """How many clients a cohort was drawn from: they answered the invitation and were not absent."""
    columns, here, absent = log.messages, slice(first_row, None), log.dropouts
    said = (columns["round"][here] == round_number) & (columns["kind"][here] == KIND["control"])
    said &= (columns["outcome"][here] == OUTCOME["delivered"]) & (columns["sender"][here] < clients)
    away = (absent["round"] == round_number) & (absent["what"] == WHAT["absence"])
    joined = np.zeros(clients, dtype=np.bool_)
    joined[columns["sender"][here][said]] = True
    joined[absent["node"][away]] = False
    return int(np.count_nonzero(joined))
