"""Bounds that stages declare hold for what they release, and what is not accounted for is named."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodes.learning.release_stages import make_stages
from p2p.random_streams import stream, streams
from privacy.stages.api import Bounds, Stage, UpdateShape
from privacy.stages.binomial import Binomial
from privacy.stages.clipping import Clip, ClipCohortMedian, ClipCoordinates, ClipLayers, ClipOwnMedian
from privacy.stages.gaussian import Gaussian
from privacy.stages.laplace import Laplace
from privacy.stages.release_plan import plan_stages
from privacy.stages.selective import Asgp, Snlc
from privacy.stages.sparse import Mask, TopK
from privacy.stages.sparse_vector import AsgpSound
from privacy.stages.wire import DENSE
from tests.conformance.plain_stages import OWN_NORMS, RATE, SEED, D, context, pipeline

OBJECTS: tuple[Any, ...] = ("update", "gradient", "weights")
CLIPS = [
    *(Clip(norm=norm, clip_object=what) for norm in (0.3, 4.0) for what in OBJECTS),
    *(ClipLayers(norm=1.0, of="layer", clip_object=what) for what in OBJECTS),
    *(ClipCoordinates(bound=bound, clip_object=what) for bound in (0.1, 1.5) for what in OBJECTS),
    Mask(rate=0.3),
]


@pytest.mark.parametrize("first", CLIPS, ids=repr)
@pytest.mark.parametrize("second", CLIPS, ids=repr)
def test_two_contents_are_never_further_apart_than_twice_the_bounds(first: Stage, second: Stage) -> None:
    """By all three norms, in any order of stages and for whatever is clipped; where bounds are centred, so is it."""
    planned = plan_stages([first, second], context())
    made, bounds = pipeline(first, second)[0], planned[-1].declared.bounds
    drawn, nodes = np.random.default_rng(3), [0] * 100
    rows = drawn.standard_normal((100, D)) * 10.0 ** drawn.uniform(-2, 2, (100, 1)) * (drawn.random((100, D)) < 0.5)
    model = np.where(np.arange(D) == 4, 3.0, 0.1).astype(np.float32)
    models, generators = np.tile(model, (5, 1)), [drawn] * 100
    # Some around the model itself, where scaled weights differ most by single coordinates.
    rows[::2] += model
    found = made.apply(rows.astype(np.float32), nodes, generators, models, 2, 1).astype(np.float64)
    for order, bound in ((1, bounds.l1), (2, bounds.l2), (np.inf, bounds.linf)):
        apart = max(np.linalg.norm(found - one, ord=order, axis=1).max() for one in found)
        assert apart <= 2.0 * bound * (1.0 + 1e-5) + 1e-5
        if bounds.centred:
            assert np.linalg.norm(found, ord=order, axis=1).max() <= bound * (1.0 + 1e-5) + 1e-5


def test_scaling_around_a_model_may_move_one_coordinate_far() -> None:
    """Weights within 0.15 of zero, a model with one large coordinate: scaled to 1, that one moves by more than 0.3."""
    stages, wide = (
        (ClipCoordinates(bound=0.15, clip_object="weights"), Clip(norm=1.0)),
        replace(context(), shape=UpdateShape(100)),
    )
    bounds = plan_stages(stages, wide)[-1].declared.bounds
    models = np.zeros((5, 100), np.float32)
    models[:, 0] = 1.0
    trained = np.full((2, 100), -0.15, np.float32) * [[0.0], [1.0]]
    trained[:, 0] = -0.15, 0.15
    rows = (models[:2] - trained).astype(np.float32)
    made = make_stages(stages, wide, SEED, lambda _: RATE, DENSE)
    found = made.apply(rows, [0, 1], streams(SEED, [("noise", node, 2) for node in (0, 1)]), models, 2, 1)
    apart = float(np.abs(found[0] - found[1]).max())
    assert 0.3 < apart <= 2.0 * bounds.linf


def test_the_largest_coordinates_of_a_noisy_release_cost_what_the_release_costs() -> None:
    """Which ones are left is found from all of them, so their number does not bound how far the release can move."""
    before = ClipCoordinates(bound=0.3), Gaussian(sigma=1.0)
    whole, chosen, masked = (pipeline(*before, *after)[1] for after in ((), (TopK(rate=0.2),), (Mask(rate=0.2),)))
    assert chosen.sensitivity == whole.sensitivity == pytest.approx(2 * 0.3 * math.sqrt(D))
    assert masked.sensitivity == pytest.approx(2 * 0.3 * math.sqrt(math.ceil(0.2 * D)))


@pytest.mark.parametrize(
    "between", [(TopK(rate=0.3),), (TopK(rate=0.5),), (Clip(norm=0.1, clip_object="weights"),)], ids=repr
)
def test_noise_covers_exactly_what_a_mask_sends(between: tuple[Stage, ...]) -> None:
    """Also where an update is zero inside the mask, and where a stage after the mask moves what is outside."""
    made, plan = pipeline(Mask(rate=0.3), *between, Clip(norm=0.5), Gaussian(sigma=1.0))
    assert not plan.unaccounted
    rows = np.zeros((1, D), np.float32)
    models = np.ones((5, D), np.float32)
    found = made.apply(rows, [0], streams(SEED, [("noise", 0, 2)]), models, 2, 1)[0]
    inside = stream(SEED, "mask", 2).choice(D, math.ceil(0.3 * D), replace=False, shuffle=False)
    assert set(np.flatnonzero(found).tolist()) == set(inside.tolist())


def test_sizes_around_a_model_have_twice_the_sensitivity() -> None:
    """Weights within linf of zero are updates within linf of the model: a size may move by 2 linf."""
    sound = AsgpSound(epsilon=1.0, positives=4)
    update, weights = (
        sound.laplace_scales(ClipCoordinates(bound=0.3, clip_object=what).bounds(Bounds(), UpdateShape(D)))
        for what in ("update", "weights")
    )
    assert (weights.query, weights.threshold) == (2.0 * update.query, 2.0 * update.threshold)
    assert weights.value == update.value


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        ((TopK(), Clip(), Gaussian(sigma=1.0)), "positions of a client's largest coordinates"),
        ((Gaussian(multiplier=1.0, scale="own_norm"),), "norm of the client's own update"),
        ((ClipOwnMedian(), Gaussian(multiplier=1.0)), "median of the client's own norms"),
        ((ClipCohortMedian(), Clip(), Gaussian(sigma=1.0)), "other clients' records"),
        ((Clip(), Asgp()), "leave without noise"),
        ((Clip(), Snlc()), "leave without noise"),
    ],
)
def test_what_is_not_accounted_for_is_named(stages: tuple[Stage, ...], reason: str) -> None:
    """Such a list makes every rigorous figure infinite."""
    assert any(reason in item for item in pipeline(*stages)[1].unaccounted)


@pytest.mark.parametrize(
    "stages",
    [
        (Clip(), Gaussian(sigma=1.0), TopK()),
        (Mask(), Clip(), Gaussian(sigma=1.0)),
        (Clip(), Laplace(epsilon=1.0)),
        (Clip(), Binomial()),
        (Clip(), AsgpSound()),
        (Clip(), Gaussian(sigma=1.0), ClipCohortMedian()),
    ],
)
def test_what_is_proved_releases_nothing_else(stages: tuple[Stage, ...]) -> None:
    """And what follows noise without being linear is hidden in no sum."""
    plan = pipeline(*stages)[1]
    assert plan.unaccounted == ()
    assert plan.noised
    assert plan.linear == (not isinstance(stages[-1], TopK | ClipCohortMedian))


def test_bounds_are_those_of_each_client() -> None:
    """From a list of public norms: bounds by all three norms, noise, sensitivity and loss of each client."""
    norms = np.array(OWN_NORMS)
    bounds = plan_stages([Clip(norm=OWN_NORMS), ClipCoordinates(bound=0.2)], context())[-1].declared.bounds
    np.testing.assert_allclose(bounds.l2, np.minimum(norms, 0.2 * math.sqrt(D)))
    np.testing.assert_allclose(bounds.linf, np.minimum(norms, 0.2))
    np.testing.assert_allclose(bounds.l1, math.sqrt(D) * bounds.l2)
    assert bounds.of(1).linf == 0.1
    noises = (Gaussian(sigma=3.0), Gaussian(multiplier=3.0))
    given, relative = (pipeline(Clip(norm=OWN_NORMS), noise)[1] for noise in noises)
    np.testing.assert_allclose(given.sensitivities, 2 * norms)
    assert set(given.noise_std) == {3.0}
    np.testing.assert_allclose(relative.noise_std, 3 * norms)
    assert (given.clip_norm, given.sensitivity) == (2.0, 4.0)
    losses = pipeline(Clip(norm=OWN_NORMS), Laplace(scale=5.0))[1].losses
    np.testing.assert_allclose([getattr(loss, "ratio", 0.0) for loss in losses], 2 * math.sqrt(D) * norms / 5.0)
