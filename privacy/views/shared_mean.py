"""What is learnt from means that everyone sees: by an outsider, by one peer, by colluding peers.

In one round a mean hides an update behind the noise of all its contributors that the observer does not know. One
who received the update itself (the leader of that round) sees it fully. Both add up over rounds as mu^2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
_HUGE = 1e300
# Observers times clients up to here get a row each; above, observers that received nothing share the worst row.
_EXACT_PAIRS = 10_000**2
_BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanRound:
    """One round of a run with means.

    Attributes:
        members: who is in the mean, each once.
        stds: the noise of each member's update.
        mu2: what each member's update gives away to one who receives it.
        receivers, received, received_mu2: who received whose update, and what that gives away.
        opened: several means were made in this round, so each update is charged as if it had been seen.
    """

    members: Ids
    stds: NDArray[np.float64]
    mu2: NDArray[np.float64]
    receivers: Ids
    received: Ids
    received_mu2: NDArray[np.float64]
    opened: bool = False

    def noise_variance(self) -> float:
        """Variance of the noise in the sum of the updates, per coordinate."""
        return float(np.square(self.stds).sum())


def mean_mu2(
    rounds: Sequence[MeanRound], clients: int, sensitivity: float, observers: frozenset[int]
) -> NDArray[np.float64]:
    """mu^2 about each client, over all rounds, of observers who see every mean and share what they received.

    Guarantees:
        exact when each round has one mean: noise of observers, and of updates they received, is subtracted from it.
        Zero for the observers themselves.
    """
    total = np.zeros(clients)
    team = np.array(sorted(observers), dtype=np.int64)
    for one in rounds:
        _add_round(total, one, sensitivity, team)
    total[team[team < clients]] = 0.0
    return total


def pair_mu2(rounds: Sequence[MeanRound], clients: int, sensitivity: float) -> NDArray[np.float64]:
    """For each client as a single observer: the largest mu^2 it has about any other client."""
    received: dict[int, list[int]] = {}
    for index, one in enumerate(rounds):
        for node in np.unique(one.receivers[one.receivers < clients]).tolist():
            received.setdefault(node, []).append(index)
    if clients**2 > _EXACT_PAIRS:
        worst = np.full(clients, _shared_bound(rounds, clients, sensitivity))
        for node in received:
            worst[node] = mean_mu2(rounds, clients, sensitivity, frozenset({node})).max(initial=0.0)
        return worst
    return _exact_pairs(rounds, clients, sensitivity, received)


def round_pairs(one: MeanRound, clients: int, sensitivity: float) -> NDArray[np.float64]:
    """One round for every client as a single observer: row v holds its mu^2 about each client, zero about itself."""
    share, present = _mean_parts([one], clients, sensitivity)
    about: NDArray[np.float64] = np.minimum(share.T, _HUGE) * present
    for node in np.unique(one.receivers[one.receivers < clients]).tolist():
        about[node] = 0.0
        _add_round(about[node], one, sensitivity, np.array([node]))
    np.fill_diagonal(about, 0.0)
    about[about >= _HUGE / 2] = np.inf
    return about


def _exact_pairs(
    rounds: Sequence[MeanRound], clients: int, sensitivity: float, received: Mapping[int, list[int]]
) -> NDArray[np.float64]:
    """All observers by matrix products; rounds in which an observer received updates itself are taken apart."""
    share, present = _mean_parts(rounds, clients, sensitivity)
    worst = np.zeros(clients)
    for start in range(0, clients, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, clients))
        about = _finite_product(share[:, block].T, present)
        for node in received.keys() & set(block.tolist()):
            rest = np.delete(np.arange(len(rounds)), received[node])
            about[node - start] = _finite_product(share[rest, node], present[rest])
            for index in received[node]:
                _add_round(about[node - start], rounds[index], sensitivity, np.array([node]))
        about[block - start, block] = 0.0
        worst[block] = about.max(axis=1, initial=0.0)
    return worst


def _add_round(total: NDArray[np.float64], one: MeanRound, sensitivity: float, team: Ids) -> None:
    """Adds what the team learns in one round: updates it received in full, the others behind what noise is left."""
    mine = np.isin(one.receivers, team)
    seen, first = np.unique(one.received[mine], return_index=True)
    total[seen] += one.received_mu2[mine][first]
    hidden = ~np.isin(one.members, np.union1d(team, seen))
    variance = float(np.square(one.stds[hidden]).sum())
    total[one.members[hidden]] += one.mu2[hidden] if one.opened else _ratio(sensitivity, variance)


def _shared_bound(rounds: Sequence[MeanRound], clients: int, sensitivity: float) -> float:
    """At least what any observer that received nothing has about anybody: its own noise was the largest."""
    total = np.zeros(clients)
    for one in rounds:
        rest = one.noise_variance() - np.square(one.stds).max(initial=0.0)
        total[one.members] += one.mu2 if one.opened else _ratio(sensitivity, rest)
    return float(total.max(initial=0.0))


def _mean_parts(
    rounds: Sequence[MeanRound], clients: int, sensitivity: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per round: what each observer's view of the mean gives away, and of whom; rounds times clients each."""
    share, present = np.zeros((len(rounds), clients)), np.zeros((len(rounds), clients))
    for index, one in enumerate(rounds):
        variance = one.noise_variance()
        share[index] = 1.0 if one.opened else _ratio(sensitivity, variance)
        present[index, one.members] = np.minimum(one.mu2, _HUGE) if one.opened else 1.0
        if not one.opened:
            without = variance - np.square(one.stds)
            share[index, one.members] = _ratios(sensitivity, np.where(without > 1e-12 * variance, without, 0.0))
    return share, present


def _ratio(sensitivity: float, variance: float) -> float:
    return float(_ratios(sensitivity, np.array([variance]))[0])


def _ratios(sensitivity: float, variances: NDArray[np.float64]) -> NDArray[np.float64]:
    ratios: NDArray[np.float64] = np.full(len(variances), np.inf)
    np.divide(sensitivity**2, variances, out=ratios, where=variances > 0.0)
    return ratios


def _finite_product(share: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matrix product in which infinity times zero is zero."""
    product: NDArray[np.float64] = np.minimum(share, _HUGE) @ present
    product[product >= _HUGE / 2] = np.inf
    return product
