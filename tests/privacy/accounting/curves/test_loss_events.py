"""Privacy losses that are not Gaussian: against dp-accounting, against enumeration, and against audits."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import binom

from nodes.learning.release_stages import make_stages
from p2p.random_streams import stream
from privacy.accounting.curves.binomial_loss import BinomialLoss
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.curves.loss_events import LaplaceLoss, LossEvent, PureLoss, composed_epsilon, most_releases
from privacy.calibration.noise_plan import NoisePlan, PlanContext
from privacy.settings import Privacy
from privacy.stages.api import Stage, UpdateShape
from privacy.stages.binomial import Binomial
from privacy.stages.clipping import Clip, ClipCoordinates
from privacy.stages.gaussian import Gaussian
from privacy.stages.laplace import Laplace
from privacy.stages.release_plan import plan_noise
from privacy.stages.sparse import Mask, TopK
from privacy.stages.sparse_vector import AsgpSound
from tests.privacy.accounting.audit import lower_epsilon

DELTA = 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("count", [1, 20, 200])
def test_laplace_releases_compose_as_dp_accounting_says(ratio: float, count: int) -> None:
    """Never below its privacy loss distribution, and at most 15% above it or above adding up."""
    exact = pld.from_laplace_mechanism(1.0 / ratio, value_discretization_interval=1e-3).self_compose(count)
    ours = composed_epsilon(0.0, [(LaplaceLoss(ratio), count)], DELTA)
    theirs = exact.get_epsilon_for_delta(DELTA)
    assert theirs * (1 - 1e-3) <= ours <= min(theirs * 1.15 + 0.01, count * ratio * (1 + 1e-12))


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 50), (1.0, 10), (2.0, 1)])
def test_pure_releases_compose_as_dp_accounting_says(epsilon: float, count: int) -> None:
    """Never below the dominating pair of pure differential privacy."""
    parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
    exact = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-3).self_compose(count)
    ours = composed_epsilon(0.0, [(PureLoss(epsilon), count)], DELTA)
    assert (
        exact.get_epsilon_for_delta(DELTA) * (1 - 2e-3)
        <= ours
        <= min(exact.get_epsilon_for_delta(DELTA) * 1.15 + 0.01, count * epsilon * (1 + 1e-12))
    )


def test_gaussian_parts_join_the_curve() -> None:
    """Beside no other loss the curve is a bound on the exact formula; with one, both count."""
    alone = composed_epsilon(1.0, [], DELTA)
    assert epsilon_of(1.0, DELTA) <= alone <= epsilon_of(1.0, DELTA) * 1.1
    both = composed_epsilon(1.0, [(PureLoss(1.0), 1)], DELTA)
    assert alone < both <= alone + 1.0 + 1e-9


def test_an_outcome_beyond_the_curve_takes_its_part_of_delta() -> None:
    """Where the tails use up delta, nothing is proved."""
    assert composed_epsilon(0.0, [(PureLoss(1.0, tail=1e-5), 1)], DELTA) == math.inf
    assert composed_epsilon(0.0, [(PureLoss(1.0), 0)], DELTA) == 0.0


@pytest.mark.parametrize("event", [LaplaceLoss(0.3), PureLoss(0.2), BinomialLoss(4000, 10, 3.0, 2.0, 2.0)])
def test_a_ledger_allows_as_many_releases_as_fit(event: LossEvent) -> None:
    """One more would exceed the budget."""
    most = most_releases(event, 4.0, DELTA)
    assert most > 0
    assert composed_epsilon(0.0, [(event, most)], DELTA) <= 4.0 * (1 + 1e-8)
    assert composed_epsilon(0.0, [(event, most + 1)], DELTA) > 4.0


def rounded(x: np.ndarray[Any, Any]) -> dict[tuple[int, ...], float]:
    """The distribution of stochastic rounding of a vector."""
    found: dict[tuple[int, ...], float] = {}
    for ups in product((0, 1), repeat=len(x)):
        parts = x - np.floor(x)
        mass = float(np.prod(np.where(np.array(ups) == 1, parts, 1.0 - parts)))
        if mass:
            key = tuple((np.floor(x).astype(int) + ups).tolist())
            found[key] = found.get(key, 0.0) + mass
    return found


def output(x: np.ndarray[Any, Any], trials: int, reach: int) -> np.ndarray[Any, Any]:
    """The distribution of the rounded vector plus binomial noise, on a grid."""
    pmf = binom.pmf(np.arange(trials + 1), trials, 0.5)
    total = np.zeros((trials + 1 + reach,) * len(x))
    for levels, mass in rounded(x).items():
        axes = [np.concatenate([np.zeros(level), pmf, np.zeros(reach - level)]) for level in levels]
        total += mass * (axes[0] if len(axes) == 1 else np.multiply.outer(axes[0], axes[1]))
    return total


@pytest.mark.parametrize(
    ("x", "y"),
    [((0.0,), (3.0,)), ((0.4,), (2.7,)), ((0.2, 0.9), (1.1, 2.3)), ((0.5, 0.5), (0.5, 1.4)), ((0.1, 0.0), (0.9, 0.8))],
)
def test_the_binomial_curve_covers_every_pair(x: tuple[float, ...], y: tuple[float, ...]) -> None:
    """The exact hockey-stick divergence of the whole mechanism, by enumeration, stays below delta at our epsilon."""
    trials, one, other = 400, np.array(x), np.array(y)
    move = np.abs(one - other)
    loss = BinomialLoss(trials, len(x), float(move.sum()), float(np.sqrt((move**2).sum())), float(move.max()))
    epsilon = composed_epsilon(0.0, [(loss, 1)], DELTA)
    p, q = (output(point, trials, 4) for point in (one, other))
    for first, second in ((p, q), (q, p)):
        assert np.maximum(first - math.exp(epsilon) * second, 0.0).sum() <= DELTA
    # And it is no empty promise: a third of it would be refuted.
    assert np.maximum(p - math.exp(epsilon / 3.0) * q, 0.0).sum() > DELTA


@pytest.mark.parametrize(("x", "y"), [((0.45,), (0.55,)), ((0.4, 0.4), (0.6, 0.6)), ((0.0, 0.0), (0.1, 0.1))])
def test_the_binomial_curve_counts_rounding(x: tuple[float, ...], y: tuple[float, ...]) -> None:
    """A move far below a step is a whole step now and then: its square alone would promise too much."""
    trials, one, other = 400, np.array(x), np.array(y)
    move = np.abs(one - other)
    l1, l2, linf = float(move.sum()), float(np.sqrt((move**2).sum())), float(move.max())
    p, q = (output(point, trials, 4) for point in (one, other))
    for rounding, covered in ((l1, True), (0.0, False)):
        epsilon = composed_epsilon(0.0, [(BinomialLoss(trials, len(x), rounding, l2, linf), 1)], DELTA)
        assert (np.maximum(q - math.exp(epsilon) * p, 0.0).sum() <= DELTA) == covered


def test_noise_that_does_not_reach_proves_nothing() -> None:
    """Ten coins cannot hide a move of eight."""
    assert composed_epsilon(0.0, [(BinomialLoss(10, 1, 8.0, 8.0, 8.0), 1)], DELTA) == math.inf


PROVED: list[tuple[Stage, ...]] = [
    (Clip(norm=1.0), Gaussian(sigma=1.0)),
    (Clip(norm=1.0), Gaussian(sigma=1.0), TopK(rate=0.5)),
    (Mask(rate=0.5), Clip(norm=1.0), Gaussian(sigma=1.0)),
    (ClipCoordinates(bound=0.5), Laplace(epsilon=2.0)),
    (Clip(norm=1.0), Binomial(levels=9, trials=64, limit=1.0)),
    (Clip(norm=1.0), Binomial(levels=9, trials=64, limit=1.0, rotate=True)),
    (ClipCoordinates(bound=0.5), AsgpSound(epsilon=2.0, positives=2, value_fraction=0.5)),
]
DIMENSION, TRIALS = 4, 20_000


def plan_of(stages: tuple[Stage, ...], clients: int) -> tuple[NoisePlan, PlanContext]:
    """The declarations of a run of one round."""
    context = PlanContext(
        clients=clients,
        train_per_round=1,
        exchange_with=None,
        rounds=1,
        records=np.ones(clients, dtype=np.int64),
        topology="central",
        shape=UpdateShape(DIMENSION),
    )
    return plan_noise(Privacy(stages=stages), context), context


@pytest.mark.slow
@pytest.mark.parametrize("stages", PROVED, ids=lambda stages: type(stages[-1]).__name__)
def test_no_audit_refutes_a_proved_stage(stages: tuple[Stage, ...]) -> None:
    """Canaries at opposite ends are released thousands of times; their scores refute less than the figure."""
    plan, context = plan_of(stages, TRIALS)
    made = make_stages(stages, context, 1, lambda _: 1.0, plan.wire)
    claimed = epsilon_of(plan.sensitivity / plan.noise_std[0], DELTA) if not plan.losses else 0.0
    if plan.losses:
        claimed = composed_epsilon(0.0, [(plan.losses[0], 1)], DELTA)
    models = np.zeros((TRIALS, DIMENSION), dtype=np.float32)
    scores = []
    for sign in (-10.0, 10.0):
        rows = np.zeros((TRIALS, DIMENSION), dtype=np.float32)
        rows[:, :] = sign
        # One stream for all: rows are released one after the other.
        noises = [stream(int(sign) + 20, "audit")] * TRIALS
        found = made.apply(rows, range(TRIALS), noises, models, 1, 1)
        # Cut off at the ends: the likelihood ratio of Laplace noise, and nearly as good for the others.
        reach = plan.sensitivity if isinstance(stages[-1], Gaussian | Binomial | TopK) else 0.5
        scores.append(np.clip(found.astype(np.float64), -reach, reach).sum(axis=1))
    refuted = lower_epsilon(scores[0], scores[1], DELTA)
    assert refuted <= claimed
    # The audit sees something, or it could not fail.
    assert refuted > 0.2
