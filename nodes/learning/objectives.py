"""Local objectives: what a client minimises when it trains.

An objective is a loss on scores, given by its gradient, and possibly a term that depends on how far each layer is from
the model that training began with. Training kernels know objectives only by these two functions. Torch is not imported:
scenarios are checked without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from annotated_types import Ge, Gt, Le, Lt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

Slope = Callable[["Tensor", "Tensor"], "Tensor"]
Pull = Callable[["Tensor"], "Tensor"]
Note = Callable[["Tensor", "Tensor", "Tensor | None"], None]
# Bounded, so that products of two strengths and a number of records stay float32.
Strength = Annotated[float, Ge(0), Le(1e6)]
Penalty = Literal["smoothed", "printed"]
Reading = Literal["keep_label", "temperature", "scaled", "printed"]
# Added to a squared norm whose root is differentiated: the norm has no gradient where training begins.
SMOOTHING = 1e-12
# Keeps a probability that underflows from giving 0 / 0.
SMALLEST = 1e-37


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The gradients of the objectives of k clients; with fewer rows, those of the first clients.

    Attributes:
        slope: from scores and one-hot labels [a, b, classes] to the gradient of each record's loss by its scores
        pull: from the squared distance of a layer from where training began [a] to the factor [a] of that distance in
            the gradient; none has no such term. A layer is the parameters of one torch module, weights with biases
        note: takes down the losses of a step from its scores, one-hot labels, and weights that are zero where a record
            is padding (none: no padding), before the slope is asked for; none where losses are not wanted
    """

    slope: Slope
    pull: Pull | None = None
    note: Note | None = None

    def noted_slope(self, scores: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Returns the slope of each record's loss, after the losses were taken down."""
        if self.note is not None:
            self.note(scores, targets, weights)
        return self.slope(scores, targets)


class Objective(Protocol):
    """What a client minimises."""

    def terms(self, records: Tensor) -> Terms:
        """Returns the gradients for clients with these numbers of training records, [k]."""


@dataclass(frozen=True, slots=True, eq=False)
class ClientObjectives:
    """The objective of the clients of a stack, and their numbers of training records [k].

    Attributes:
        losses: to which the cross-entropy of every record that a client trains on is added, by client [k]; none if
            losses are not wanted
    """

    objective: Objective
    records: Tensor
    losses: Tensor | None = None

    def terms(self, rows: slice = slice(None)) -> Terms:
        """Returns the gradients of some of the clients."""
        terms = self.objective.terms(self.records[rows])
        return terms if self.losses is None else replace(terms, note=partial(_take_down, self.losses[rows]))


def _take_down(losses: Tensor, scores: Tensor, targets: Tensor, weights: Tensor | None) -> None:
    found = scores.logsumexp(2) - (scores * targets).sum(2)
    if weights is not None:
        # Not a product: a padded record may have no finite loss.
        found.masked_fill_(weights == 0.0, 0.0)
    losses[: len(found)] += found.sum(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEntropy:
    """Cross-entropy of the softmax of the scores."""

    def terms(self, records: Tensor) -> Terms:
        """Returns cross-entropy alone."""
        return Terms(cross_entropy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinge:
    """Hinge loss of the margin between the true class and the best other one (Crammer and Singer 2001).

    With two classes it is `max(0, 1 - y w x)`, w being the difference of both classes' weights: with `model: linear`
    and `training.weight_decay` the linear support vector machine of Wei et al. 2020, whose (22) lacks the product of
    label and score.
    """

    def terms(self, records: Tensor) -> Terms:
        """Returns the hinge loss alone."""
        return Terms(_hinge)


@dataclass(frozen=True, slots=True, kw_only=True)
class FedProx:
    """Cross-entropy and a proximal term `mu/2 ||W - W_t||^2` (Li et al. 2020).

    Attributes:
        mu: strength of the proximal term
    """

    mu: Strength = 0.01

    def terms(self, records: Tensor) -> Terms:
        """Returns cross-entropy with a pull in proportion to the distance."""
        return Terms(cross_entropy, lambda squares: squares.new_full((), self.mu).expand_as(squares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fednore1:
    """Cross-entropy and the noise that the distance from the start will cost (Weng 2025, 3.3.1.3): Fed-nore-1.

    The term is `lam * sigma * sum over layers of ||W_l - W_t,l|| / n`, a pull of constant force per layer.

    Attributes:
        lam: strength of the term (lambda)
        sigma: noise scale that the client expects, as a multiple of the distance over n
        penalty: smoothed is the gradient of the term; printed is (A.22), which pushes away, n^2 times as strongly
    """

    lam: Strength = 1.0
    sigma: Strength = 8.0
    penalty: Penalty = "smoothed"

    def terms(self, records: Tensor) -> Terms:
        """Returns cross-entropy with a pull of constant force."""
        force = self.lam * self.sigma / records if self.penalty == "smoothed" else -self.lam * self.sigma * records
        return Terms(cross_entropy, lambda squares: force[: len(squares)] / (squares + SMOOTHING).sqrt())


@dataclass(frozen=True, slots=True, kw_only=True)
class Fednore2:
    """Cross-entropy of an output changed by the noise that is expected (Weng 2025, 3.3.1.3): Fed-nore-2.

    With `c = lam * sigma / sqrt(n)` and a the probability of the true class, the printed loss is `-ln(a (1 - c))`. It
    has the gradient of cross-entropy, and no value where c >= 1.

    Attributes:
        lam: strength of the change (lambda)
        sigma: noise scale that the client expects
        reading: keep_label is `-ln(a (1 - c) + c)`, temperature multiplies scores by 1 - c, scaled the loss by 1 + c;
            printed trains as cross-entropy does
        c_max: largest c that is used; printed uses none
    """

    lam: Strength = 0.1
    sigma: Strength = 8.0
    reading: Reading = "keep_label"
    c_max: Annotated[float, Gt(0), Lt(1)] = 0.9

    def terms(self, records: Tensor) -> Terms:
        """Returns the reading's loss alone."""
        if self.reading == "printed":
            return Terms(cross_entropy)
        c = (self.lam * self.sigma / records.sqrt()).clamp(max=self.c_max)[:, None, None]
        slope = {"keep_label": _keep_label, "temperature": _temperature, "scaled": _scaled}[self.reading]
        return Terms(lambda scores, targets: slope(scores, targets, c[: len(scores)]))

    def remarks(self, records: NDArray[np.int64]) -> dict[str, int]:
        """Returns for how many clients c is 1 or more, or was capped, by the words `undefined` and `capped`."""
        c = self.lam * self.sigma / records.clip(min=1) ** 0.5
        if self.reading == "printed":
            return {"undefined": int((c >= 1).sum())}
        return {"capped": int((c > self.c_max).sum())}


@dataclass(frozen=True, slots=True, kw_only=True)
class FednoreBoth:
    """Fed-nore-1 and Fed-nore-2 together, with one strength (Weng 2025, 3.3.3.2).

    Attributes:
        lam: strength of both terms (lambda)
        sigma: noise scale that the client expects
        penalty: reading of Fed-nore-1, smoothed or printed
        reading: reading of Fed-nore-2: keep_label, temperature, scaled or printed
        c_max: largest c that Fed-nore-2 uses
    """

    lam: Strength = 0.1
    sigma: Strength = 8.0
    penalty: Penalty = "smoothed"
    reading: Reading = "keep_label"
    c_max: Annotated[float, Gt(0), Lt(1)] = 0.9

    def terms(self, records: Tensor) -> Terms:
        """Returns the loss of Fed-nore-2 with the pull of Fed-nore-1."""
        first = Fednore1(lam=self.lam, sigma=self.sigma, penalty=self.penalty).terms(records)
        return Terms(self._second().terms(records).slope, first.pull)

    def remarks(self, records: NDArray[np.int64]) -> dict[str, int]:
        """Returns the remarks of Fed-nore-2."""
        return self._second().remarks(records)

    def _second(self) -> Fednore2:
        return Fednore2(lam=self.lam, sigma=self.sigma, reading=self.reading, c_max=self.c_max)


OBJECTIVES: dict[str, type] = {
    "cross_entropy": CrossEntropy,
    "hinge": Hinge,
    "fedprox": FedProx,
    "fednore1": Fednore1,
    "fednore2": Fednore2,
    "fednore_both": FednoreBoth,
}


def cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Returns the gradient of cross-entropy by the scores."""
    return scores.softmax(2).sub_(targets)


def _hinge(scores: Tensor, targets: Tensor) -> Tensor:
    true = (scores * targets).sum(2, keepdim=True)
    others = scores.masked_fill(targets > 0, float("-inf"))
    best = others.argmax(2, keepdim=True)
    # At a margin of exactly 1 any value between both sides is a subgradient; this takes 0.
    short = (others.gather(2, best) + 1 > true).to(scores.dtype)
    return (-targets).scatter(2, best, 1.0).mul_(short)


def _keep_label(scores: Tensor, targets: Tensor, c: Tensor) -> Tensor:
    chances = scores.softmax(2)
    kept = ((chances * targets).sum(2, keepdim=True) * (1 - c)).clamp_(min=SMALLEST)
    return chances.sub_(targets).mul_(kept / (kept + c))


def _temperature(scores: Tensor, targets: Tensor, c: Tensor) -> Tensor:
    return cross_entropy(scores * (1 - c), targets).mul_(1 - c)


def _scaled(scores: Tensor, targets: Tensor, c: Tensor) -> Tensor:
    return cross_entropy(scores, targets).mul_(1 + c)
