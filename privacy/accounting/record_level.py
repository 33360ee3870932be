"""Record-level accounting of DP-SGD within clients: what all that leaves a client tells about one of its records.

The unit is one record, added or removed: its place is filled or left empty, so that the number of a client's records
stays, and with it the sampling rate, the steps, the training time and the weight of its update, which are public.
Each step is a Poisson-sampled Gaussian mechanism on the sum of clipped gradients. Steps, trainings and what was done
before them (a generator trained on the same records) are composed adaptively by Renyi divergences. Whatever the
client sends is a function of the noisy sums, of public numbers and of what others sent, so it costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.curves.poisson_sampling import poisson_rdp
from privacy.accounting.curves.rdp import best_epsilon
from privacy.accounting.figures import EpsilonFigure, infinite

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# All orders up to 64, beyond which epsilon changes little from one to the next and each takes longer to compute.
ORDERS: tuple[int, ...] = (*range(2, 65), 72, 80, 96, 112, 128, 160, 192, 224, 256)
WHOLE_TRAJECTORY = "every step within a client counts as seen, though only their outcome leaves it"
PRESET = "all trainings that a client may have count: how many it has depends on earlier outputs"
NO_NOISE = "no noise is added to the gradients of records"


class SampledGaussian(NamedTuple):
    """Sums of clipped gradients, each over records taken with chance `rate`, with noise of `multiplier` times clip."""

    rate: float
    multiplier: float
    steps: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RecordAccount:
    """What one record of each client loses by its client's trainings.

    Attributes:
        rates: chance of a record to enter a step, of each client.
        steps: steps of one training in which a record may be, of each client.
        multiplier: deviation of the noise in a step's sum, as a multiple of the clipping norm.
        delta: failure probability of the figures.
        before: what was computed from each client's records before its first training, all of it charged with that.
        most_trainings: trainings after which a client takes part no longer; None without limit.
        preset: whether the number of trainings depends on earlier outputs, so that the limit counts in its place: what
            was realised is an output itself, and no bound.
        why_not: why nothing is proved; empty if the figures hold.
    """

    rates: Floats
    steps: Ints
    multiplier: float
    delta: float
    before: Sequence[tuple[SampledGaussian, ...]] = ()
    most_trainings: int | None = None
    preset: bool = False
    why_not: str = ""

    def __post_init__(self) -> None:
        if self.preset and self.most_trainings is None:
            raise ValueError("most_trainings = None: is what counts where `preset` is set; give a number")

    def charges(self, client: int, trainings: int) -> tuple[SampledGaussian, ...]:
        """Returns all mechanisms that a record of a client went through after this many trainings."""
        if not trainings:
            return ()
        steps = SampledGaussian(float(self.rates[client]), self.multiplier, int(self.steps[client]) * trainings)
        return (*(self.before[client] if self.before else ()), steps)

    def epsilons(self, trainings: Sequence[int] | Ints, clients: Sequence[int] | Ints | None = None) -> Floats:
        """Returns epsilon after each number of trainings, of all clients or of the given ones."""
        who = range(len(self.rates)) if clients is None else clients
        pairs = zip(who, self._counted(trainings), strict=True)
        if self.why_not:
            return np.array([math.inf if count else 0.0 for _, count in pairs])
        return np.array([record_epsilon(self.charges(int(one), int(count)), self.delta) for one, count in pairs])

    def worst(self, trainings: Sequence[int] | Ints) -> EpsilonFigure:
        """Returns the figure about the worst-off record of all clients after these numbers of trainings."""
        if self.why_not:
            return infinite(self.why_not)
        distinct = {self.charges(one, int(count)) for one, count in enumerate(self._counted(trainings))}
        epsilon = max((record_epsilon(charges, self.delta) for charges in _undominated(distinct)), default=0.0)
        because = PRESET if self.preset else WHOLE_TRAJECTORY
        return infinite(NO_NOISE) if math.isinf(epsilon) else EpsilonFigure(epsilon, "bound", because)

    def _counted(self, trainings: Sequence[int] | Ints) -> Sequence[int] | Ints:
        """Returns the trainings that count; before the first one nothing has been released."""
        if not self.preset or not any(trainings):
            return trainings
        return [self.most_trainings or 0] * len(trainings)


@lru_cache(maxsize=4096)
def record_epsilon(charges: tuple[SampledGaussian, ...], delta: float) -> float:
    """Returns epsilon of the composition of these mechanisms on one record, by Renyi divergences."""
    used = [charge for charge in charges if charge.rate > 0.0 and charge.steps]
    if not used:
        return 0.0
    if any(charge.multiplier <= 0.0 for charge in used):
        return math.inf
    rdp = sum((charge.steps * _rdp(charge.rate, charge.multiplier) for charge in used), np.zeros(len(ORDERS)))
    return best_epsilon(rdp, delta, ORDERS)[0]


def calibrated_record_noise(
    planned: Collection[tuple[SampledGaussian, ...]], epsilon: float, delta: float
) -> float | None:
    """Returns the least multiplier, to a relative 1e-4, with which these compositions stay within epsilon.

    The multiplier is that of the last mechanism of each. None if those before it leave nothing of epsilon.
    """
    kept = _undominated(set(planned))

    def spent(multiplier: float) -> float:
        charges = ((*before, last._replace(multiplier=multiplier)) for *before, last in kept)
        return max((record_epsilon(found, delta) for found in charges), default=0.0)

    # Records that are never used need no noise.
    if all(last.rate == 0.0 for *_, last in kept):
        return 0.0 if spent(1.0) <= epsilon else None
    low, high = 0.0, 1.0
    while spent(high) > epsilon:
        low, high = high, 2.0 * high
        if high > 1e6:
            return None
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if spent(middle) > epsilon else (low, middle)
    return high


@lru_cache(maxsize=4096)
def _rdp(rate: float, multiplier: float) -> Floats:
    return poisson_rdp(rate, multiplier, ORDERS)


def _undominated(found: set[tuple[SampledGaussian, ...]]) -> list[tuple[SampledGaussian, ...]]:
    """Returns the compositions that may have the largest epsilon: it grows with every rate and number of steps."""
    listed = sorted(found, key=lambda charges: [(-one.steps, -one.rate) for one in charges])
    kept: list[tuple[SampledGaussian, ...]] = []
    for charges in listed:
        if not any(_dominates(other, charges) for other in kept):
            kept.append(charges)
    return kept


def _dominates(one: tuple[SampledGaussian, ...], other: tuple[SampledGaussian, ...]) -> bool:
    if len(one) != len(other):
        return not other
    return all(
        left.rate >= right.rate and left.steps >= right.steps and left.multiplier <= right.multiplier
        for left, right in zip(one, other, strict=True)
    )
