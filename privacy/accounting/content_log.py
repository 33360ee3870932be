"""What a round released and who received it: the accountant's only input.

A content is a linear form over releases (one noisy update of one client) and over independent noises: a release is
`x + own noise + shares sent - shares taken`, an aggregate is a sum of releases with its corrections. A share and an
opening are noises that their receiver knows. Scaling a content (a mean instead of a sum) tells an observer nothing
more, so sums stand for means, with the weights that the releases carry.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.curves.loss_events import LossEvent

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


def no_pairs() -> Ids:
    """Returns an empty array of pairs."""
    return np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareNoise:
    """The noise shares of a round, one column each.

    Attributes:
        variance: of each share, per coordinate.
        factor: sparse matrix [releases, shares]: 1 where a release adds the share, -1 where it takes it off.
        repairs: [aggregates, shares]: what corrections take off each aggregate, in the same factors.
        spread: tau of the factor on each share as taken; 0 where the factor is exactly 1.
        known: pairs (observer, share): an end of the share, or one it was opened to.
        coordinates: how many factors each share has: 1, or one per coordinate of the update.
    """

    variance: Floats
    factor: Any
    repairs: Floats
    spread: Floats
    known: Ids
    coordinates: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundContents:
    """The contents of one round.

    A release belongs to the round in which its noise was drawn, whenever it arrives.

    Attributes:
        clients: the client of each release; twice if it released twice.
        sensitivity: how far each release can move when its client is replaced, weight included.
        variance: each release's own independent noise, weight included, per coordinate.
        inside: releases that left their client only inside an aggregate, with noise that others' releases share.
        sums: [aggregates, releases], 1 where a release is in an aggregate that became some node's model; with weights,
            its weight times the number of releases in it.
        sum_variance: noise that each aggregator added to its aggregate, in the scale of `sums`; none adds nothing.
        aggregators: the node that made each aggregate and knows that noise.
        receipts: pairs (observer, release): what reached a node, in whole or in part, in time or not, used or not.
        used: pairs (release, node): releases that entered a node's own model.
        sends_first: whether every node had sent its releases before it used any that it received in the round.
        passed_on: pairs (sender, receiver) of models; a model carries all that its sender has.
        opened: releases that every observer of the aggregates sees: inputs of an aggregate that is no known sum.
        shares: noise shares; None without an exchange.
        uncharged: whether something arrived that no ledger was charged for.
        losses: the privacy loss of each release whose noise is not Gaussian; empty if all are Gaussian.
    """

    round_number: int
    clients: Ids
    sensitivity: Floats
    variance: Floats
    sums: Floats
    receipts: Ids = field(default_factory=no_pairs)
    used: Ids = field(default_factory=no_pairs)
    passed_on: Ids = field(default_factory=no_pairs)
    sends_first: bool = True
    opened: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    inside: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sum_variance: Floats | None = None
    aggregators: Ids | None = None
    shares: ShareNoise | None = None
    uncharged: bool = False
    losses: tuple[LossEvent, ...] = ()

    @property
    def share_noise(self) -> ShareNoise:
        """The noise shares, for code that is reached only if there are any."""
        if self.shares is None:
            raise ValueError(f"round {self.round_number} has no noise shares")
        return self.shares

    def hidden_sum_variance(self, team: Collection[int]) -> Floats:
        """Returns the noise on each aggregate that a team does not know: that of other aggregators."""
        if self.sum_variance is None or self.aggregators is None:
            return np.zeros(len(self.sums))
        return np.where(np.isin(self.aggregators, list(team)), 0.0, self.sum_variance)

    def counting(self, event: LossEvent) -> RoundContents:
        """Returns contents in which mu^2 of a release is 1 if it has this loss and 0 otherwise.

        An aggregate hides no such noise: all that is in one counts as seen by every observer of the aggregate.
        """
        mine = np.array([loss == event for loss in self.losses], dtype=np.float64)
        inside = np.flatnonzero(self.sums.any(axis=0))
        return replace(
            self,
            sensitivity=mine,
            variance=np.ones(len(mine)),
            sums=self.sums[:0],
            sum_variance=None,
            aggregators=None,
            opened=np.union1d(self.opened, inside),
            losses=(),
        )

    def mu2(self) -> Floats:
        """Returns mu^2 of each release against one who sees it behind its own independent noise."""
        found: Floats = np.full(len(self.clients), np.inf)
        np.divide(np.square(self.sensitivity), self.variance, out=found, where=self.variance > 0.0)
        return found
