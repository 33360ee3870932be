"""The ensemble recognises digits, judges reconstructions, and prints P(pl) as Weng (2025) defines it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nodes.adversaries.reconstruction.label_recovery import recover_labels
from nodes.adversaries.reconstruction.recognition import Ensemble
from nodes.datasets.dataset import Dataset
from nodes.learning.model_kinds.models import Mlp
from privacy.calc.vector_kinds import privacy_leakage_probability
from tests.nodes.adversaries.victims import Victim, make_victim


@pytest.fixture(scope="module")
def ensemble(digits: Dataset) -> Ensemble:
    """Trained on the test set, which no client has."""
    return Ensemble(torch.from_numpy(digits.test_x), torch.from_numpy(digits.test_y), 10, 0)


@pytest.mark.slow
def test_the_ensemble_is_good_enough_to_judge(ensemble: Ensemble, digits: Dataset) -> None:
    """Nine of ten digits it has never seen."""
    found = ensemble.probabilities(torch.from_numpy(digits.train_x)).argmax(1).numpy()
    assert np.mean(found == digits.train_y) > 0.9


@pytest.mark.slow
def test_perfect_reconstructions_are_recognised_and_score_zero_as_printed(
    ensemble: Ensemble, ten_digits: Victim
) -> None:
    """E-T15: P(pl) is centred on the mean, so it is 0 where everything leaks; the absolute share is 1."""
    judged = ensemble.judge(ten_digits.images, ten_digits.images, 0.01)
    assert judged.printed == 0.0
    assert judged.recognised.all()


@pytest.mark.slow
def test_noise_is_hardly_recognised(ensemble: Ensemble, ten_digits: Victim) -> None:
    """About one of ten by chance."""
    noise = torch.rand(100, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    judged = ensemble.judge(noise, ten_digits.images.repeat(10, 1, 1, 1), 0.01)
    assert judged.recognised.mean() < 0.25


@pytest.mark.slow
def test_p_of_pl_is_the_calculators(ensemble: Ensemble, ten_digits: Victim) -> None:
    """From the ensemble's outputs, recomputed here."""
    found = ten_digits.images.flip(0)
    seen, truth = (ensemble.probabilities(x).numpy() for x in (found, ten_digits.images))
    cosines = [float(a @ b / np.sqrt((a @ a) * (b @ b))) for a, b in zip(seen, truth, strict=True)]
    distances = [float(np.sqrt(((a - b) ** 2).sum() / 2)) for a, b in zip(seen, truth, strict=True)]
    expected = privacy_leakage_probability(CS=cosines, ED=distances, alpha2=0.5, sigma=0.02, C=1.0)
    assert ensemble.judge(found, ten_digits.images, 0.02).printed == pytest.approx(expected["P_pl"])


@pytest.mark.parametrize("count", [1, 3, 10])
def test_labels_are_read_off_the_last_biases(digits: Dataset, count: int) -> None:
    """One image of each of the first classes."""
    victim = make_victim(digits, Mlp(hidden=(64,)), count)
    assert recover_labels(victim.target, 10, 0, "labels").tolist() == list(range(count))


def test_repeated_labels_are_counted(digits: Dataset) -> None:
    """Seven zeros and three ones."""
    from dataclasses import replace

    victim = make_victim(digits, Mlp(hidden=(64,)), 10)
    rows = np.concatenate([np.flatnonzero(digits.train_y == 0)[:7], np.flatnonzero(digits.train_y == 1)[:3]])
    images, labels = torch.from_numpy(digits.train_x[rows]), torch.from_numpy(digits.train_y[rows])
    target = replace(victim.target, gradient=victim.target.of(images, labels).detach())
    assert recover_labels(target, 10, 0, "labels").tolist() == [0] * 7 + [1] * 3
