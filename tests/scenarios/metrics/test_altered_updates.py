"""Updates that are altered on their way and averaged nevertheless: a mean does not hide them in the noise of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nodes.learning.deferred_vectors import Vector
from privacy.accounting.curves.gaussian import epsilon_of
from scenarios.build import build
from scenarios.loading.load import parse_scenario
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.planning.plan import make_plan

pytestmark = pytest.mark.slow
WORLD = """
name: altered
seed: 36
rounds: 1
clients: 6
data: {name: synthetic, samples: 130, test_samples: 60, features: 5, classes: 3}
model: {kind: linear}
training: {epochs: 1, batch_size: 10, learning_rate: 0.5}
protocol: {kind: central, train_per_round: 5, deadline: 60 s}
anonymity: {sealed: false}
faults: [{kind: corrupt, probability: 0.1, start: 0 s, end: 10000 s}]
privacy: {clip: flat, noise: {kind: gaussian, sigma: 2}}
"""
NOISE, MOVE, DELTA = 2.0, 2.0, 1e-5


def averaged(*overrides: str) -> tuple[dict[str, Any], list[tuple[float, int]]]:
    """The privacy of a run; of each update that a mean holds altered, a coordinate's factor and the mean's updates."""
    simulation = build(parse_scenario(WORLD, overrides=overrides), threads=1)
    learning = simulation.deferred_learning
    assert learning is not None
    means: list[tuple[list[Vector], int]] = []
    sent: dict[tuple[int, int], Vector] = {}
    step, release = learning.step, learning.release

    def watched_step(node: int, updates: Sequence[Vector], weight: Any = None, *, round_number: int) -> None:
        means.append((list(updates), round_number))
        step(node, updates, weight, round_number=round_number)

    def watched_release(node: int, round_number: int) -> Vector:
        sent[node, round_number] = release(node, round_number)
        return sent[node, round_number]

    learning.step, learning.release = watched_step, watched_release  # type: ignore[method-assign,assignment]
    simulation.run()
    found = []
    for updates, number in means:
        originals = [vector.array() for (_, when), vector in sent.items() if when == number]
        for update in updates:
            changed = [original for original in originals if np.count_nonzero(original != update.array()) == 1]
            if not any(np.array_equal(original, update.array()) for original in originals) and changed:
                place = np.flatnonzero(changed[0] != update.array())[0]
                found.append((float(update.array()[place]) / float(changed[0][place]), len(updates)))
    return report_privacy(simulation), found


def test_an_altered_update_is_seen_through_the_mean() -> None:
    """A flipped bit multiplies content and noise of a coordinate; what the mean then shows of it is written out."""
    privacy, altered = averaged()
    factor, updates = max(altered, key=lambda one: abs(one[0]))
    assert abs(factor) > 100.0
    mu2 = (factor * MOVE) ** 2 / ((factor * NOISE) ** 2 + (updates - 1) * NOISE**2)
    # More than a mean of so many untouched updates shows.
    assert mu2 > 2.0 * MOVE**2 / (updates * NOISE**2)
    rigorous = privacy["rigorous"]
    assert rigorous["model"] >= epsilon_of(math.sqrt(mu2), DELTA)
    assert rigorous["how"]["model"] == "bound"
    assert "altered" in rigorous["because"]["model"]
    assert rigorous["model"] <= rigorous["local"]


def test_noise_of_the_aggregate_proves_nothing_about_altered_updates() -> None:
    """The clipping bound does not hold for what arrives."""
    rigorous = averaged("privacy={clip: flat}", "aggregate={noise: {sigma: 4}}")[0]["rigorous"]
    assert rigorous["model"] == math.inf
    assert "altered" in rigorous["because"]["model"]


@pytest.mark.parametrize("sealed", ["true", "sizes"])
def test_seals_keep_altered_updates_out(sealed: str) -> None:
    """With seals an altered update is rejected, and a mean hides what is in it."""
    privacy, altered = averaged(f"anonymity.sealed={sealed}")
    assert not altered
    assert privacy["rigorous"]["model"] < privacy["rigorous"]["local"]


def test_a_plan_says_the_same() -> None:
    """A plan does not count on means either."""
    rigorous = make_plan(parse_scenario(WORLD))["privacy"]["rigorous"]
    assert rigorous["model"] == rigorous["local"]


def test_altered_noise_shares_prove_nothing() -> None:
    """What two ends of a share hold may differ."""
    rigorous = averaged("noise_shares={sigma_k: 0.5, tau: 0, tau_ind: 0.5, share_as: vector}")[0]["rigorous"]
    assert rigorous["local"] == math.inf
    assert "altered" in rigorous["because"]["local"]
