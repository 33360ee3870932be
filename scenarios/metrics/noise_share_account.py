"""Adds up what observers of an exchange learn about clients, from the books of the whole run."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.log import Log
from p2p.log.records import KIND, OUTCOME
from p2p.random_streams import stream
from privacy.noise_shares.uploads import Share, Upload
from privacy.noise_shares.views import Seen, epsilon_over_draws, joint_mu2, peers_mu2, sum_mu2

if TYPE_CHECKING:
    from scenarios.build import Simulation
    from scenarios.running.noise_share_setup import NoiseSharing

Totals = dict[int, float]
_DRAWS = 64
_REDRAW_WORK = 2e9
"""Multiplications that drawing multipliers anew may take; larger runs do without."""


@dataclass(slots=True)
class NoiseShareAccount:
    """Adds up, round by round, what each observer learns about each client; everything is known by now."""

    simulation: Simulation
    sharing: NoiseSharing

    def views(self, colluders: Collection[int]) -> dict[str, Any]:
        """Epsilons of the worst-off client per view, and the joint view in detail."""
        rounds = sorted(self.sharing.book.uploads)
        gossip = self.simulation.topology == "gossip"
        per_round = [self.gossip_round(number, ()) if gossip else self.round(number, ()) for number in rounds]
        together: list[Totals] = []
        if colluders:
            together = [self.round(number, colluders) for number in rounds]
        peers = self.peers(rounds)
        worst_round = max((value for one in per_round for value in one.values()), default=0.0)
        local = self.epsilon(_worst(per_round))
        model = local if gossip else self.epsilon(_worst([self.model(number) for number in rounds]))
        joint: dict[str, Any] = {
            "per_round": self.epsilon(worst_round),
            "composed": local,
            "over_draws": None if gossip else self._over_draws(rounds),
            "given": "the multipliers drawn in this run; over_draws estimates the mean over them",
        }
        shown = {"joint": joint, "exposed_releases": self.exposed()}
        told: dict[str, Any] = {"local": local, "peer": peers, "model": model, "joint": shown}
        told["receiver"] = local if self.simulation.topology == "central" else peers["worst"]
        if colluders:
            told["coalition"] = self.epsilon(_worst(together))
            joint["with_colluders"] = told["coalition"]
        return told

    def round(self, number: int, colluders: Collection[int], rng: np.random.Generator | None = None) -> Totals:
        """mu^2 about each client in a round, for the aggregators of it with their colluders, all uploads together.

        An aggregator that was a share partner before it was elected knows its own shares.
        """
        uploads, origins, receivers = self._arrived(number)
        known = set(colluders) | (set(receivers) & uploads.keys())
        seen = [uploads[node] for node in origins if node in uploads]
        return joint_mu2(self._seen(number, seen, known), self.sharing.book.maker, rng)

    def gossip_round(self, number: int, colluders: Collection[int]) -> Totals:
        """The same for the worst single receiver about each client."""
        worst: Totals = {}
        for observer, totals in self._by_receiver(number, colluders).items():
            worst |= {node: max(value, worst.get(node, 0.0)) for node, value in totals.items() if node != observer}
        return worst

    def model(self, number: int) -> Totals:
        """mu^2 about each contributor for one who sees only the round's sum."""
        table, book = self.simulation.log.aggregations, self.sharing.book
        rows = (table["round"] == number) & ~table["void"]
        found: Totals = {}
        for aggregator in np.unique(table["aggregator"][rows]).tolist():
            nodes = table["contributor"][rows & (table["aggregator"] == aggregator)].tolist()
            off = {
                (node, share)
                for node in book.repairs.get((number, aggregator), ())
                for share in _all_shares(*book.answers[number, aggregator, node])
            }
            seen = self._seen(number, [book.uploads[number][node] for node in nodes], ())
            found |= sum_mu2(seen, off, book.maker)
        return found

    def peers(self, rounds: Sequence[int]) -> dict[str, float]:
        """Each participant on its own, its own shares known: what it received, or all uploads as a bound."""
        totals: dict[int, Totals] = {}
        for number in rounds:
            for observer, about in self._observers(number).items():
                mine = totals.setdefault(observer, {})
                for node, value in about.items():
                    mine[node] = mine.get(node, 0.0) + value
        clients = range(self.simulation.scenario.clients)
        epsilons = [self.epsilon(max(totals.get(node, {}).values(), default=0.0)) for node in clients]
        return {"worst": max(epsilons, default=0.0), "median": float(np.median(epsilons)) if epsilons else 0.0}

    def exposed(self) -> list[list[int]]:
        """(round, client) whose upload came after its noise had been opened: a curious aggregator keeps it."""
        found = []
        for number, by_node in self.sharing.book.opened.items():
            lost = {share.receiver for sent, _ in by_node.values() for share in sent}
            lost |= {one.share.sender for _, taken in by_node.values() for one in taken}
            _, origins, _ = self._arrived(number)
            found += [[number, node] for node in sorted(lost & set(origins))]
        return found

    def _observers(self, number: int) -> dict[int, Totals]:
        if self.simulation.topology == "gossip":
            return self._by_receiver(number, ())
        cohort = self.sharing.book.uploads[number]
        if self.sharing.book.maker.tau_mode == "vector" or len(cohort) > 200:
            return {node: dict.fromkeys(cohort, math.inf) for node in cohort}  # too much to follow each
        uploads, origins, receivers = self._arrived(number)
        seen = [uploads[node] for node in origins if node in uploads]
        return peers_mu2(self._seen(number, seen, set(receivers) & uploads.keys()), self.sharing.book.maker)

    def _by_receiver(self, number: int, colluders: Collection[int]) -> dict[int, Totals]:
        uploads, _, _ = self._arrived(number)
        rows = _delivered(self.simulation.log, number)
        columns = self.simulation.log.messages
        heard: dict[int, set[int]] = {}
        for origin, receiver in zip(columns["origin"][rows].tolist(), columns["receiver"][rows].tolist(), strict=True):
            heard.setdefault(receiver, set()).add(origin)
        maker = self.sharing.book.maker
        return {
            observer: joint_mu2(
                self._seen(
                    number, [uploads[node] for node in sorted(origins) if node in uploads], {observer, *colluders}
                ),
                maker,
            )
            for observer, origins in heard.items()
        }

    def _arrived(self, number: int) -> tuple[dict[int, Upload], list[int], list[int]]:
        rows, columns = _delivered(self.simulation.log, number), self.simulation.log.messages
        origins = np.unique(columns["origin"][rows]).tolist()
        return self.sharing.book.uploads.get(number, {}), origins, np.unique(columns["receiver"][rows]).tolist()

    def _seen(self, number: int, uploads: Sequence[Upload], known: Collection[int]) -> Seen:
        plan, told = self.sharing.plan, self.sharing.book.opened.get(number, {})
        return Seen(
            uploads=uploads,
            known=known,
            opened={share for sent, taken in told.values() for share in _all_shares(sent, taken)},
            sensitivity={upload.node: 2.0 * plan.clip_norm * upload.weight for upload in uploads},
            independent={upload.node: (float(plan.noise_std[upload.node]) * upload.weight) ** 2 for upload in uploads},
        )

    def _over_draws(self, rounds: Sequence[int]) -> float | None:
        maker = self.sharing.book.maker
        if not any(
            one.tau
            for number in rounds
            for upload in self.sharing.book.uploads[number].values()
            for one in upload.taken
        ):
            return None
        work = sum(len(self.sharing.book.uploads[number]) ** 3 for number in rounds) * _DRAWS
        if maker.tau_mode == "vector" or work > _REDRAW_WORK:
            return None
        rng = stream(self.simulation.scenario.seed, "share-report")
        draws = [_totals([self.round(number, (), rng) for number in rounds]) for _ in range(_DRAWS)]
        clients = {node for draw in draws for node in draw}
        totals = {node: np.array([draw.get(node, 0.0) for draw in draws]) for node in clients}
        worst = max(totals.values(), key=lambda values: float(values.mean()), default=np.zeros(1))
        return epsilon_over_draws(worst, self.sharing.plan.delta)

    def epsilon(self, mu2: float) -> float:
        """The epsilon that a total mu^2 stands for."""
        from privacy.accounting.gaussian import epsilon_of

        return epsilon_of(math.sqrt(mu2), self.sharing.plan.delta)


def _delivered(log: Log, number: int) -> NDArray[np.intp]:
    """Updates of a round that arrived, in time or not."""
    columns = log.messages
    rows = (columns["round"] == number) & (columns["kind"] == KIND["update"])
    rows &= (columns["outcome"] == OUTCOME["delivered"]) & (columns["receiver"] == columns["destination"])
    return np.flatnonzero(rows)


def _all_shares(sent: Collection[Share], taken: Collection[Any]) -> list[Share]:
    return [*sent, *(one.share for one in taken)]


def _totals(rounds: Sequence[Totals]) -> Totals:
    found: Totals = {}
    for one in rounds:
        for node, value in one.items():
            found[node] = found.get(node, 0.0) + value
    return found


def _worst(rounds: Sequence[Totals]) -> float:
    return max(_totals(rounds).values(), default=0.0)
