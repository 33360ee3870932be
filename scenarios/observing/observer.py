"""Observes a run: evaluates models after each round and writes the round's row.

Observation takes no simulated time and uses its own named random streams, so it does not influence the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nodes.adversaries.recorder import Recorder
from nodes.learning.byte_counts_only import NoLearning
from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.interface import Scores
from nodes.noise_shares.run_exchange import NoiseSharing
from nodes.roles.participant import Participant
from nodes.round_record import RoundRecord
from nodes.schedules.fixed import RunSchedule
from nodes.world import World
from p2p.log.records import KIND
from privacy.attacks.linkage import Linkage
from privacy.attacks.matching import Seen
from privacy.calibration.noise_plan import NoisePlan
from scenarios.observing.privacy_per_round import RoundPrivacy
from scenarios.observing.schedule_losses import RoundLosses
from scenarios.schema import Scenario

Figures = Mapping[str, Any]
FIGURES = (*(f"accuracy_{when}_{what}" for when in ("before", "after") for what in ("max", "mean", "min")), "loss")
"""Columns that learning adds to a round's row."""


class RoundListener(Protocol):
    """A callback for completed rounds."""

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Receives the round's row after it has entered the log."""


class RunObserver:
    """The experimenter's view: reads all state of a run and changes none of the simulated behaviour."""

    def __init__(
        self,
        scenario: Scenario,
        world: World,
        learning: DeferredLearning | NoLearning,
        participants: Mapping[int, Participant],
        noise: NoisePlan | None,
        listeners: Sequence[RoundListener],
        privacy: RoundPrivacy,
        sharing: NoiseSharing | None,
        schedule: RunSchedule,
        losses: RoundLosses,
        recorder: Recorder | None = None,
    ) -> None:
        self._schedule, self._losses = schedule, losses
        self._scenario, self._world, self._learning, self._noise = scenario, world, learning, noise
        self._participants, self._listeners = participants, listeners
        self._chosen = scenario.evaluation.chosen(scenario.clients, scenario.seed)
        self.privacy, self._sharing = privacy, sharing
        self.recorder = recorder
        """The adversaries' observations; None in a run without any."""
        self.linkage = Linkage(learning.threads)
        # First row of the privacy table whose rigorous epsilon has not been considered yet.
        self._rigorous_up_to = 0
        self.measured: Mapping[int, Figures] = {}
        """Figures by round from before an interruption; a replay does not evaluate models again."""

    def on_forming(self, round_number: int, members: NDArray[np.int64]) -> None:
        """Requests the accuracy of the cohort's local models before aggregation, if this round is evaluated."""
        if self._scenario.evaluation.due(round_number, self._scenario.rounds):
            self._learning.evaluate_before(round_number, np.intersect1d(members, self._chosen).tolist())

    def on_closed(self, record: RoundRecord) -> None:
        """Completes the round's row and notifies the watchers."""
        # During a replay models are not available, so the figures saved before the interruption are used.
        figures = self.measured.get(record.round_number) or self._accuracies(record)
        row = record.row() | {"noise_std": self._noise_std(record)} | dict(figures) | self._scheduled(record)
        row |= self.privacy.figures(record)
        if self._sharing is not None:
            row |= self._sharing.figures(record.round_number, self._world.log)
        self._fill_rigorous()
        self.privacy.fill_records()
        self._observe_linkage(record)
        # Flushed every round, checkpoint or not, so that saving a checkpoint changes no result.
        self._learning.flush()
        if self.recorder is not None:
            # After the flush: reading vectors then computes nothing.
            self.recorder.close_round(record, self._world.log)
        self._world.log.rounds.append(row)
        for watcher in self._listeners:
            watcher(row)

    def on_quiet(self, round_number: int, nodes: Sequence[int]) -> None:
        """Releases the round's addresses, keys and updates; called when its last message has ended."""
        for node in nodes:
            self._participants[node].endpoint.leave(round_number)
        self._world.sealer.close_round(round_number)
        self._learning.forget(round_number)
        if self.recorder is not None:
            self.recorder.end_round(round_number)
        if self._sharing is not None:
            self._sharing.share_log.forget(round_number)

    def _noise_std(self, record: RoundRecord) -> float | None:
        if self._noise is None:
            return None
        return float(np.mean(self._noise.stds[record.cohort]) * self._schedule.noise_factor(record.round_number))

    def _scheduled(self, record: RoundRecord) -> dict[str, Any]:
        """Returns the rounds planned after this one and the loss that decided, where a schedule reads losses."""
        if not self._schedule.reads:
            return {}
        loss = self._losses.measured.get(record.round_number)
        return {"planned_rounds": self._schedule.planned_rounds(), "schedule_loss": loss}

    def _accuracies(self, record: RoundRecord) -> dict[str, Any]:
        due = self._scenario.evaluation.due(record.round_number, self._scenario.rounds)
        if not due or isinstance(self._learning, NoLearning):
            # Every row has the same columns, evaluated or not.
            unevaluated = {"evaluated_nodes": None, "evaluated_accuracy": None}
            return _figures("before", None) | _figures("after", None) | {"loss": None} | unevaluated
        before = self._learning.scores_before(record.round_number)
        nodes = np.intersect1d(record.cohort, self._chosen).tolist()
        # With a server, its model is the only result of the round; clients hold the previous one.
        if record.leader == self._world.server:
            nodes = [self._world.server]
        after = self._learning.scores(nodes) if nodes else None
        loss = None if after is None else float(np.mean(after[1]))
        each = None if after is None else after[0].tolist()
        who = {"evaluated_nodes": nodes, "evaluated_accuracy": each}
        return _figures("before", before) | _figures("after", after) | {"loss": loss} | who

    def _fill_rigorous(self) -> None:
        """Fills in the `local` view's epsilon of the releases charged since the last round.

        Each distinct total is converted once, since clients with equal histories share it.
        """
        if self._noise is None:
            return
        from privacy.accounting.curves.gaussian import epsilons_of
        from privacy.accounting.curves.loss_events import composed_epsilon
        from privacy.accounting.curves.zcdp import zcdp_epsilon

        table = self._world.log.privacy
        new = self._rigorous_up_to + np.flatnonzero(np.isnan(table["rigorous"][self._rigorous_up_to :]))
        self._rigorous_up_to = len(table)
        # All ledgers share one delta; only their epsilons may differ.
        delta = next(client.ledger.rule.delta for client in self._clients() if client.ledger is not None)
        proved = self.privacy.setting
        if proved is None:
            table["rigorous"][new] = np.inf
        elif proved.preset_rho is not None:
            # The sum that was realised is no bound where noise and rounds depend on outputs.
            table["rigorous"][new] = zcdp_epsilon(proved.preset_rho, delta)
        elif self._noise.losses:
            releases = zip(table["node"][new].tolist(), table["release"][new].tolist(), strict=True)
            losses = [(self._noise.losses[node], count) for node, count in releases]
            epsilons = {each: composed_epsilon(0.0, [each], delta) for each in set(losses)}
            table["rigorous"][new] = [epsilons[each] for each in losses]
        else:
            values, where = np.unique(table["mu2"][new], return_inverse=True)
            table["rigorous"][new] = epsilons_of(np.sqrt(values), delta)[where]

    def _clients(self) -> list[Any]:
        return [self._participants[node] for node in range(self._scenario.clients)]

    def _observe_linkage(self, record: RoundRecord) -> None:
        """Feeds the linkage attack every release that reached a node other than its sender.

        The adversary is a coalition of all leaders (or receivers) that pool the releases they received.
        """
        if isinstance(self._learning, NoLearning) or self._learning.paused:
            return
        # Void aggregations count too: the leader saw the updates even if its result was discarded.
        contributors, aggregators = record.averaged(self._world.log, void=True).T
        senders = np.flatnonzero(np.bincount(contributors[contributors != aggregators])).tolist()
        matrix = self._learning.released(senders, record.round_number)
        times_s = self._first_arrivals(record, senders)
        self.linkage.observe(senders, Seen([record.addresses[node] for node in senders], matrix, times_s))

    def _first_arrivals(self, record: RoundRecord, senders: list[int]) -> NDArray[np.float64]:
        """Returns when each sender's update first arrived anywhere, since the round began."""
        columns, here = self._world.log.messages, slice(record.first_row, None)
        mine = (columns["round"][here] == record.round_number) & (columns["kind"][here] == KIND["update"])
        rows = record.first_row + np.flatnonzero(mine & np.isfinite(columns["arrived_s"][here]))
        first = np.full(self._scenario.clients, np.inf)
        sent_by_clients = rows[columns["origin"][rows] < len(first)]
        np.minimum.at(first, columns["origin"][sent_by_clients], columns["arrived_s"][sent_by_clients])
        return first[senders] - record.start_s


def _figures(when: str, scores: Scores | None) -> dict[str, float | None]:
    if scores is None or not len(scores[0]):
        return {f"accuracy_{when}_{what}": None for what in ("max", "mean", "min")}
    accuracy = scores[0]
    return {
        f"accuracy_{when}_max": float(np.max(accuracy)),
        f"accuracy_{when}_mean": float(np.mean(accuracy)),
        f"accuracy_{when}_min": float(np.min(accuracy)),
    }
