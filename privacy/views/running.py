"""The rigorous views of a run so far, round by round: each round is added once, so a long run costs no more a round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.fixed_size_sampling import rounded_bound_rdp
from privacy.accounting.gaussian import epsilons_of
from privacy.accounting.rdp import ORDERS, best_epsilon
from privacy.views.gossip import Taint, no_taint, spread
from privacy.views.rigorous import Topology
from privacy.views.shared_mean import MeanRound, mean_mu2, round_pairs

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
# Pairs of clients that are followed one by one, and bytes of taint; larger runs get the local view for `peer`.
_MOST_PAIRS = 1000**2
_MOST_TAINT = 1e7


class SoFar(NamedTuple):
    """Epsilon of the worst-off client after the rounds added: for its receivers, the worst peer, the model."""

    local: float
    peer_worst: float
    model: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFacts:
    """What one round released and who got it.

    Attributes:
        clients: who released, each once.
        stds: the noise of each release.
        used: rows (contributor, aggregator) of what was averaged, an aggregator's own included.
        unused: rows of what came to somebody and was not averaged.
        rate: cohort / clients it was drawn from, if it was a secret uniform sample; None otherwise.
    """

    clients: Ids
    stds: Floats
    used: Ids
    unused: Ids
    rate: float | None = None


class RunningViews:
    """Adds up what each view has learnt.

    Guarantees:
        after the last round `now` says what `rigorous_views` says of the whole run, except that in gossip `model`
        is the worst client's model, whoever is asked for it in the end, and that an update under way counts as
        received when the round is added with it.
    """

    def __init__(self, *, clients: int, topology: Topology, sensitivity: float, delta: float, most_releases: int):
        self._clients, self._topology, self._delta = clients, topology, delta
        self._sensitivity = sensitivity
        self._local = np.zeros(clients)
        self._model = np.zeros(clients)
        self._rdp: Floats | None = np.zeros(len(ORDERS))
        taint_bytes = clients * most_releases / 8
        self._followed = clients**2 <= _MOST_PAIRS and (topology != "gossip" or taint_bytes <= _MOST_TAINT)
        self._pairs = np.zeros((clients, clients)) if self._followed else np.zeros((0, 0))
        self._taint = no_taint(clients, most_releases if self._followed and topology == "gossip" else 0)
        self._owner, self._mu2 = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._models = np.zeros((clients, clients)) if self._followed and topology == "gossip" else np.zeros((0, 0))

    def add(self, facts: RoundFacts) -> None:
        """Adds one round; a release that arrived without having been charged makes everything infinite."""
        if not np.isin(np.concatenate([facts.used[:, 0], facts.unused[:, 0]]), facts.clients).all():
            for known in (self._local, self._model, self._pairs, self._models):
                known[:] = np.inf
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            mu2 = np.square(np.where(facts.stds > 0.0, self._sensitivity / facts.stds, np.inf))
        self._local[facts.clients] += mu2
        if self._topology == "gossip":
            self._add_gossip(facts, mu2)
        else:
            self._add_mean(facts, mu2)

    def now(self) -> SoFar:
        """The epsilons after all rounds added so far."""
        local = self._local.max(initial=0.0)
        peer = self._pairs.max(initial=0.0) if self._followed else local
        model = self._model.max(initial=0.0)
        if self._topology == "gossip":
            model = self._models.max(initial=0.0) if self._followed else local
        epsilons = epsilons_of(np.sqrt([local, peer, model]), self._delta)
        sampled = math.inf
        if self._topology != "gossip" and self._rdp is not None and math.isfinite(epsilons[2]):
            sampled = best_epsilon(self._rdp, self._delta)[0] if self._rdp.any() else 0.0
        return SoFar(float(epsilons[0]), float(epsilons[1]), min(float(epsilons[2]), sampled))

    def _add_gossip(self, facts: RoundFacts, mu2: Floats) -> None:
        if not self._followed:
            return
        fresh = np.full(self._clients, -1)
        fresh[facts.clients] = len(self._owner) + np.arange(len(facts.clients))
        self._owner = np.concatenate([self._owner, facts.clients])
        self._mu2 = np.concatenate([self._mu2, mu2])
        after: Taint = spread(self._taint, fresh, facts.used, facts.unused)
        self._learn(self._pairs, after.seen & ~self._taint.seen)
        self._learn(self._models, after.model & ~self._taint.model)
        np.fill_diagonal(self._pairs, 0.0)
        self._taint = after

    def _learn(self, about: Floats, news: NDArray[np.uint8]) -> None:
        """Adds the releases that a row has not had before to what it knows of their owners."""
        nodes, bits = np.nonzero(np.unpackbits(news, axis=1, count=len(self._owner)))
        np.add.at(about, (nodes, self._owner[bits]), self._mu2[bits])

    def _add_mean(self, facts: RoundFacts, mu2: Floats) -> None:
        one = _mean_round(facts, mu2)
        if not len(one.members) and not len(one.receivers):
            return
        self._model += mean_mu2([one], self._clients, self._sensitivity, frozenset())
        if self._followed:
            self._pairs += round_pairs(one, self._clients, self._sensitivity)
        z = math.sqrt(one.noise_variance()) / self._sensitivity
        if self._rdp is None or facts.rate is None or one.opened or z <= 0.0:
            self._rdp = None
        elif len(one.members):
            self._rdp = self._rdp + rounded_bound_rdp(facts.rate, z)


def _mean_round(facts: RoundFacts, mu2: Floats) -> MeanRound:
    members = np.unique(facts.used[:, 0])
    order = np.argsort(facts.clients)
    place = order[np.searchsorted(facts.clients, members, sorter=order)]
    sent = np.concatenate([facts.used, facts.unused])
    sent = sent[sent[:, 0] != sent[:, 1]]
    return MeanRound(
        members=members,
        stds=facts.stds[place],
        mu2=mu2[place],
        receivers=sent[:, 1],
        received=sent[:, 0],
        received_mu2=mu2[order[np.searchsorted(facts.clients, sent[:, 0], sorter=order)]],
        opened=len(np.unique(facts.used[:, 1])) > 1,
    )
