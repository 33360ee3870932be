"""Runs whose releases are a list of stages."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.build import Simulation, build
from scenarios.loading.load import load_scenario
from scenarios.run_folder.digest import events_digest

NOISE = "calibrate: {kind: rigorous, epsilon: 4, view: local}"


def run(*overrides: str) -> Simulation:
    """A run of the tiny scenario with learning."""
    simulation = build(load_scenario("tiny", ["learning=torch", "rounds=2", *overrides]))
    simulation.run()
    return simulation


def models(simulation: Simulation) -> bytes:
    """All models at the end, bit for bit."""
    learning = simulation.deferred_learning
    assert learning is not None
    return learning.state().models.tobytes()


@pytest.mark.slow
def test_the_long_form_is_the_short_form_to_the_bit() -> None:
    """The same events, models, ledgers and figures."""
    short = run(f"privacy={{clip: {{kind: flat, norm: 0.5}}, noise: {{kind: gaussian, {NOISE}}}}}")
    long = run("privacy=none", f"update=[{{kind: clip, norm: 0.5}}, {{kind: gaussian, {NOISE}}}]")
    assert events_digest(short.log) == events_digest(long.log)
    assert models(short) == models(long)
    for name in short.log.privacy.names:
        np.testing.assert_array_equal(short.log.privacy[name], long.log.privacy[name])


@pytest.mark.slow
def test_clipped_weights_are_averaged_as_models() -> None:
    """With a bound above all weights, clipping weights changes nothing but rounding; a small one holds the models."""
    plain = run("privacy=none", "update=[{kind: clip, norm: 1.0e6}]")
    weights = run("privacy=none", "update=[{kind: clip, norm: 1.0e6, clip_object: weights}]")
    np.testing.assert_allclose(_models(plain), _models(weights), atol=1e-5)
    held = run("privacy=none", "update=[{kind: clip, norm: 0.01, clip_object: weights}]")
    trained = _models(held)[:-1]
    # Whoever averaged has a mean of clipped models; the others have their first model still.
    assert np.linalg.norm(trained, axis=1).min() <= 0.01 + 1e-6


@pytest.mark.slow
def test_a_gradient_is_the_update_without_the_learning_rate() -> None:
    """Released as such, the step is one over the rate times as long."""
    one = run("privacy=none", "rounds=1", "update=[{kind: clip, norm: 1.0e6}]")
    gradient = run("privacy=none", "rounds=1", "update=[{kind: clip, norm: 1.0e6, clip_object: gradient}]")
    first = _models(one)[-1]
    rate = one.scenario.training.rate(1)
    np.testing.assert_allclose((_models(gradient) - first) * rate, _models(one) - first, atol=1e-6)


def _models(simulation: Simulation) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    learning = simulation.deferred_learning
    assert learning is not None
    return learning.state().models
