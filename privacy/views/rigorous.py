"""Rigorous epsilon per view, from what really happened in a run: who released, and whose update entered which mean.

Neighbouring runs differ in one client's data (or in one record of it): `sensitivity` is how far one update can
then move, 2C after flat clipping for either unit. Wherever no proof applies the answer is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.fixed_size_sampling import model_epsilon
from privacy.accounting.gaussian import epsilons_of
from privacy.views.gossip import no_taint, spread
from privacy.views.shared_mean import MeanRound, mean_mu2, pair_mu2

Ids = NDArray[np.int64]
Topology = Literal["gossip", "pseudo_central", "central"]
# Bytes that taint sets may touch: a few seconds. Larger runs get the local view as an upper bound instead.
_TAINT_WORK = 2e10


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """Every noisy vector that left a client: round, true client id and the standard deviation per coordinate."""

    round: Ids
    client: Ids
    noise_std: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregations:
    """Updates by receiver: in `round`, the release of `contributor` reached `aggregator` (true ids).

    `used` says whether it entered the mean; what came too late was seen all the same. An aggregator's own noisy
    vector, if it is part of its mean, has a row too.
    """

    round: Ids
    aggregator: Ids
    contributor: Ids
    used: NDArray[np.bool_] | None = None

    def edges(self, round_number: int) -> tuple[Ids, Ids]:
        """That round's messages as rows (contributor, aggregator): used ones, and the others."""
        here = self.round == round_number
        rows = np.stack([self.contributor[here], self.aggregator[here]], axis=1)
        used = np.ones(len(rows), dtype=np.bool_) if self.used is None else self.used[here]
        return rows[used], rows[~used]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What the accountant is told about a run.

    Attributes:
        clients: number of clients; true ids 0..clients-1.
        topology: `gossip`, or means that everyone learns (`pseudo_central`, `central`).
        releases: what left the clients.
        aggregations: what arrived where.
        sampling_rate: cohort / eligible clients if the cohort was drawn uniformly and in secret, else None.
        collected: in gossip, the client whose model an outsider follows; None for the mean of all.
        accounted: False if something else left a client, or a part cannot say what it releases.
    """

    clients: int
    topology: Topology
    releases: Releases
    aggregations: Aggregations
    sampling_rate: float | None = None
    collected: int | None = None
    accounted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Rigorous epsilons of the worst-off client, at one delta.

    Attributes:
        local: against whoever receives a client's own messages.
        peer_worst: against the best informed single participant.
        peer_median: against the median participant.
        coalition: against the colluders together; None if none were named.
        model: against an outsider who sees only models.
        peer_is_bound: the run was too large to follow each message; `peer` is then the local view.
    """

    local: float
    peer_worst: float
    peer_median: float
    coalition: float | None
    model: float
    peer_is_bound: bool = False


def rigorous_views(trace: Trace, sensitivity: float, delta: float, colluders: Sequence[int] | None = None) -> Views:
    """The rigorous epsilon of every view over the whole run.

    `model` in a run with means is one who sees every mean (and no message); in gossip, one who sees the trajectory of
    the collected client's model, charged with every release in its taint. `coalition` adds up what its members
    received and takes their own noise out of every mean; a colluding server is named by its node id.

    Guarantees:
        exact Gaussian composition of realised releases; sampling is used for `model` only, and only if it helps.
        `peer` and `coalition` concern clients other than the observers.
    """
    charges = _charges(trace, sensitivity)
    if not trace.accounted or charges is None:
        coalition = math.inf if colluders else None
        return Views(local=math.inf, peer_worst=math.inf, peer_median=math.inf, coalition=coalition, model=math.inf)
    if trace.topology == "gossip":
        peers, together, outside, is_bound = _gossip(trace, charges, colluders)
    else:
        rounds = [_mean_round(trace, charges, number) for number in np.unique(trace.aggregations.round).tolist()]
        peers, together, outside, is_bound = _means(rounds, trace.clients, sensitivity, colluders)
    local = np.bincount(charges.client, weights=charges.mu2, minlength=trace.clients)
    numbers = [local.max(initial=0.0), outside, 0.0 if together is None else together, *peers]
    epsilons = epsilons_of(np.sqrt(numbers), delta)
    model = float(epsilons[1])
    if trace.topology != "gossip" and trace.sampling_rate is not None and math.isfinite(model):
        model = min(model, _sampled(rounds, sensitivity, trace.sampling_rate, delta))
    return Views(
        local=float(epsilons[0]),
        peer_worst=float(epsilons[3:].max(initial=0.0)),
        peer_median=float(np.median(epsilons[3:])) if len(peers) else 0.0,
        coalition=None if together is None else float(epsilons[2]),
        model=model,
        peer_is_bound=is_bound,
    )


@dataclass(frozen=True, slots=True)
class _Charges:
    """One row per client and round with a release: its mu^2 in that round, and its least noise; sorted by client."""

    client: Ids
    round: Ids
    mu2: NDArray[np.float64]
    std: NDArray[np.float64]

    def find(self, round_number: int, clients: Ids) -> Ids:
        """Row of each client in that round; every one must be there."""
        here = np.flatnonzero(self.round == round_number)
        return here[np.searchsorted(self.client[here], clients)]


def _charges(trace: Trace, sensitivity: float) -> _Charges | None:
    """The releases by client and round; None if an update arrived that nobody charged."""
    releases, arrived = trace.releases, trace.aggregations
    span = int(max(releases.round.max(initial=0), arrived.round.max(initial=0))) + 1
    keys, index = np.unique(releases.client * span + releases.round, return_inverse=True)
    if not np.isin(arrived.contributor * span + arrived.round, keys).all():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        mu = np.where(releases.noise_std > 0.0, sensitivity / releases.noise_std, np.inf)
    std = np.full(len(keys), np.inf)
    np.minimum.at(std, index, releases.noise_std)
    mu2 = np.zeros(len(keys))
    np.add.at(mu2, index, np.square(mu))
    return _Charges(keys // span, keys % span, mu2, std)


def _mean_round(trace: Trace, charges: _Charges, number: int) -> MeanRound:
    used, unused = trace.aggregations.edges(number)
    members = np.unique(used[:, 0])
    rows = charges.find(number, members)
    sent = np.concatenate([used, unused])
    sent = sent[sent[:, 0] != sent[:, 1]]
    return MeanRound(
        members=members,
        stds=charges.std[rows],
        mu2=charges.mu2[rows],
        receivers=sent[:, 1],
        received=sent[:, 0],
        received_mu2=charges.mu2[charges.find(number, sent[:, 0])],
        opened=len(np.unique(used[:, 1])) > 1,
    )


_Found = tuple[NDArray[np.float64], float | None, float, bool]
"""mu^2: of each peer about its worst-off target, of the coalition, of the outsider; and whether peers are a bound."""


def _means(rounds: Sequence[MeanRound], clients: int, sensitivity: float, colluders: Sequence[int] | None) -> _Found:
    outside = mean_mu2(rounds, clients, sensitivity, frozenset()).max(initial=0.0)
    together = None
    if colluders:
        together = float(mean_mu2(rounds, clients, sensitivity, frozenset(colluders)).max(initial=0.0))
    return pair_mu2(rounds, clients, sensitivity), together, float(outside), False


def _sampled(rounds: Sequence[MeanRound], sensitivity: float, rate: float, delta: float) -> float:
    """Model view with amplification; a round with several means has none to offer."""
    if any(one.opened for one in rounds):
        return math.inf
    return model_epsilon(rate, [math.sqrt(one.noise_variance()) / sensitivity for one in rounds], delta)


def _gossip(trace: Trace, charges: _Charges, colluders: Sequence[int] | None) -> _Found:
    """Taint sets, or the local view for everybody where the run is too large to follow each message."""
    releases, messages = len(charges.client), len(trace.aggregations.round)
    if messages * releases / 8 > _TAINT_WORK:
        bound = float(np.bincount(charges.client, weights=charges.mu2).max(initial=0.0))
        return np.full(trace.clients, bound), bound if colluders else None, bound, True
    taint = no_taint(trace.clients, releases)
    for number in np.union1d(charges.round, trace.aggregations.round).tolist():
        fresh = np.full(trace.clients, -1)
        here = np.flatnonzero(charges.round == number)
        fresh[charges.client[here]] = here
        taint = spread(taint, fresh, *trace.aggregations.edges(number))
    peers = np.array([_worst(taint.seen[[v]], charges, [v]) for v in range(trace.clients)])
    followed = taint.model if trace.collected is None else taint.model[[trace.collected]]
    team = list(colluders or ())
    together = _worst(taint.seen[team], charges, team) if team else None
    return peers, together, _worst(followed, charges, []), False


def _worst(rows: NDArray[np.uint8], charges: _Charges, spared: list[int]) -> float:
    """Largest mu^2 about one client in the union of these taints, the observers themselves left out."""
    bits = np.unpackbits(np.bitwise_or.reduce(rows, axis=0), count=len(charges.client)).astype(np.bool_)
    totals = np.bincount(charges.client[bits], weights=charges.mu2[bits])
    totals[[client for client in spared if client < len(totals)]] = 0.0
    return float(totals.max(initial=0.0))
