"""Reads the contents of a round out of a run's log and the log of its noise-share exchange."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nodes.aggregation.aggregator import Aggregator, weigh
from p2p.log.log import Log
from p2p.log.records import KIND
from privacy.accounting.content_log import Floats, Ids, RoundContents
from privacy.accounting.curves.loss_events import LossEvent
from privacy.accounting.receipts import received_pairs, rows_by_round
from privacy.accounting.spread import Spread
from scenarios.accounting.share_contents import share_noise

if TYPE_CHECKING:
    from nodes.noise_shares.run_exchange import NoiseSharing
    from privacy.calibration.noise_plan import NoisePlan
    from privacy.noise_shares.uploads import Upload
    from scenarios.schema import Scenario

_SERVICES = 4  # proxy, standby, tracker and server, numbered after the clients


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The weights and the noise of a run's aggregates, with each client's share of all records.

    Attributes:
        most: updates in an aggregate, at most.
    """

    aggregator: Aggregator
    record_shares: Floats
    most: int

    def mean_stds(self, counts: Floats) -> Floats:
        """Returns the noise to count for means of so many updates, against those who see aggregates only.

        After momentum, a mean is released again with every later one. Momentum is a lower triangular matrix B with
        |B| <= 1 (its rows and columns sum to at most 1), so for noise of at least s in every round the released
        sequence tells no more than the means with noise s each (docs/privacy.md). A larger mean may still come, and
        noise on its sum is less on the mean: s is that of the largest.
        """
        noise = self.aggregator.settings.noise
        if noise is None or noise.by_median:
            return np.zeros(len(counts))
        if self.aggregator.settings.noise_after_momentum:
            counts = np.full(len(counts), max(self.most, *counts.tolist()) if len(counts) else self.most)
        return np.array([self.aggregator.mean_std(int(count)) for count in counts])


def aggregation_of(scenario: Scenario, noise: NoisePlan, record_shares: Floats) -> Aggregation | None:
    """Returns how updates are aggregated; none if it is their mean."""
    settings = scenario.aggregate
    if settings.weights == "uniform" and settings.noise is None:
        return None
    aggregator = Aggregator(settings=settings, clip_norm=noise.clip_norm)
    return Aggregation(aggregator, record_shares, scenario.protocol.cohort_size)


def aggregated(aggregation: Aggregation | None, sums: Floats, clients: Ids, aggregators: Ids) -> dict[str, Any]:
    """Returns weights and noise of aggregates, as entries of `RoundContents`; nothing where they are means."""
    if aggregation is None:
        return {}
    counts = sums.sum(axis=1)
    settings, weighed = aggregation.aggregator.settings, sums.copy()
    # Losses are not public: a run that weighs by them has no accountant.
    if settings.weights != "uniform":
        for row, count in enumerate(counts):
            inside = np.flatnonzero(sums[row])
            shares = aggregation.record_shares[clients[inside]].tolist()
            weighed[row, inside] = count * np.array(weigh(settings.weights, shares, [0.0] * len(inside)))
    found: dict[str, Any] = {"sums": weighed, "aggregators": aggregators}
    if settings.noise is not None:
        found["sum_variance"] = np.square(counts * aggregation.mean_stds(counts))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentReader:
    """Turns log rows into contents; a release belongs to the round in which its noise was drawn.

    Attributes:
        sensitivity: how far an unweighted update of each client can move.
        in_the_clear: whether payloads travel unsealed.
        sends_first: see `Disclosure`.
        aggregation: weights and noise of aggregates; none averages updates equally and adds nothing.
        losses: the privacy loss of one release of each client, where the noise is not Gaussian.
        linear: whether an aggregate is a sum that hides each release in the noise of the others.
    """

    log: Log
    clients: int
    spread: Spread
    sensitivity: Floats
    in_the_clear: bool
    sharing: NoiseSharing | None = None
    sends_first: bool = True
    aggregation: Aggregation | None = None
    losses: tuple[LossEvent, ...] = ()
    linear: bool = True

    def rounds(self) -> Iterator[RoundContents]:
        """Yields the contents of every round with a release, as the whole log tells them."""
        by_round = rows_by_round(self.log.messages)
        for number in np.unique(self.log.privacy["round"]).tolist():
            yield self.round(number, by_round.get(number, np.zeros(0, dtype=np.int64)))

    def round(self, number: int, messages: Ids, first_release: int = 0, first_aggregation: int = 0) -> RoundContents:
        """Returns the contents of one round.

        Args:
            messages: rows of the message log that hold the round's.
            first_release, first_aggregation: rows of those tables before which none is of this round.
        """
        clients, weight, variance, uploads = self._releases(number, first_release)
        pairs = {kind: self._pairs(messages, kind) for kind in ("update", "share", "correction")}
        held = self._held(number, first_aggregation)
        # Node numbers: searches among floats take several times as long.
        averaged = held[:, :2].astype(np.int64)
        came = np.concatenate([pairs["update"][:, 0], averaged[:, 0]])
        known: dict[str, Any] = {"sums": np.zeros((0, len(clients)))}
        if self.spread == "to_all":
            sums, aggregators, opened = _aggregates(held, clients, self._repaired(number))
            known = {"sums": sums, "opened": opened}
            if not self.linear:
                opened, aggregators = np.union1d(opened, np.flatnonzero(sums.any(axis=0))), aggregators[:0]
                known = {"sums": sums[:0], "opened": opened}
            else:
                known |= aggregated(self.aggregation, sums, clients, aggregators)
        else:
            aggregators = np.zeros(0, dtype=np.int64)
            handed = np.concatenate([self._pairs(messages, kind) for kind in ("model", "handover")])
            # A protocol that may use updates in other ways than by averaging may use whatever reached a node.
            entered = averaged if self.sends_first else np.concatenate([averaged, pairs["update"]])
            known |= {"used": _to_releases(entered, clients), "passed_on": handed, "sends_first": self.sends_first}
        shares = None
        if self.sharing is not None:
            known["inside"] = self._inside(messages, clients)
            shares = share_noise(number, uploads, self.sharing, aggregators, pairs, in_the_clear=self.in_the_clear)
        return RoundContents(
            round_number=number,
            clients=clients,
            sensitivity=self.sensitivity[clients] * weight,
            variance=variance,
            receipts=_to_releases(pairs["update"], clients)[:, ::-1],
            shares=shares,
            uncharged=not np.isin(came, clients).all(),
            losses=tuple(self.losses[client] for client in clients.tolist()) if self.losses else (),
            **known,
        )

    def _releases(self, number: int, first: int) -> tuple[Ids, Floats, Floats, list[Upload]]:
        """Returns client, weight and own variance of each release, and the uploads where shares are exchanged."""
        table = self.log.privacy
        mine = first + np.flatnonzero(table["round"][first:] == number)
        clients = table["node"][mine].astype(np.int64)
        if self.sharing is None:
            return clients, np.ones(len(mine)), np.square(table["noise_std"][mine]), []
        uploads = self.sharing.share_log.released(number, clients.tolist())
        clients = np.array([upload.node for upload in uploads], dtype=np.int64)
        weight = np.array([upload.weight for upload in uploads], dtype=np.float64)
        own = np.square(self.sharing.plan.noise_std[clients] * weight)
        return clients, weight, own + np.square([upload.independent_std for upload in uploads]), uploads

    def _held(self, number: int, first: int) -> NDArray[np.float64]:
        """Returns rows (contributor, aggregator, instant) of all that became some node's model in the round."""
        table = self.log.aggregations
        # A void average was never committed: no node trains from it or hands it over. Its inputs count as received.
        rows = first + np.flatnonzero((table["round"][first:] == number) & ~table["void"][first:])
        return np.column_stack([table[name][rows] for name in ("contributor", "aggregator", "at_s")]).astype(np.float64)

    def _inside(self, messages: Ids, clients: Ids) -> Ids:
        """Returns the releases that left their client only inside an aggregate: a leader's own.

        A listener on unsealed links has all other updates and the aggregate, hence that one too; in gossip a release
        lives on in its client's model.
        """
        if self.in_the_clear or self.spread == "by_path":
            return np.zeros(0, dtype=np.int64)
        sent = messages[self.log.messages["kind"][messages] == KIND["update"]]
        return np.flatnonzero(~np.isin(clients, self.log.messages["origin"][sent]))

    def _repaired(self, number: int) -> list[int]:
        """Returns the aggregators of the round whose sums were corrected."""
        if self.sharing is None:
            return []
        return [node for when, node in self.sharing.share_log.repairs if when == number]

    def _pairs(self, messages: Ids, kind: str) -> Ids:
        services = np.arange(self.clients, self.clients + _SERVICES)
        return received_pairs(self.log.messages, messages, kind, self.clients, services)


def _aggregates(held: Floats, clients: Ids, repaired: list[int]) -> tuple[Floats, Ids, Ids]:
    """Returns the aggregates over releases, the node of each, and releases that count as seen by all.

    An aggregate is what one node averaged at one instant. If a contributor released twice in the round, or a node
    that corrected its sum averaged twice, it is not known what went in: the aggregate counts as all its inputs.
    """
    contributors = held[:, 0].astype(np.int64)
    every, group = np.unique(held[:, 1:], axis=0, return_inverse=True)
    group = group.ravel()
    often, times = np.unique(clients, return_counts=True)
    nodes, sums_of = np.unique(every[:, 0], return_counts=True)
    unclear = ~np.isin(contributors, often[times == 1])
    unclear |= np.isin(held[:, 1], np.intersect1d(nodes[sums_of > 1], repaired))
    vague = np.isin(group, group[unclear])
    opened = np.flatnonzero(np.isin(clients, contributors[vague]))
    known, place = np.unique(group[~vague], return_inverse=True)
    order = np.argsort(clients, kind="stable")
    sums = np.zeros((len(known), len(clients)))
    sums[place, order[np.searchsorted(clients, contributors[~vague], sorter=order)]] = 1.0
    aggregators = np.zeros(len(known), dtype=np.int64)
    aggregators[place] = held[~vague, 1]
    return sums, aggregators, opened


def _to_releases(pairs: Ids, clients: Ids) -> Ids:
    """Returns pairs (release, node) from pairs (client, node): every release that the client made in the round."""
    order = np.argsort(clients, kind="stable")
    # Tables by node number: there are many pairs of few clients.
    times = np.bincount(clients, minlength=pairs[:, 0].max(initial=0) + 1)
    first, count = np.cumsum(times) - times, times[pairs[:, 0]]
    which = np.repeat(np.arange(len(pairs)), count)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return np.column_stack([order[first[pairs[which, 0]] + offset], pairs[which, 1]])
