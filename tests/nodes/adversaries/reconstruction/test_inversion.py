"""Gradient inversion finds images where there is no noise, nothing where there is much, and what lies between."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from nodes.adversaries.reconstruction.gradient_target import GradientTarget, columns_of
from nodes.adversaries.reconstruction.inversion import Inversion, random_start
from nodes.adversaries.reconstruction.signed_descent import SignedAdam, SignOfMoment
from nodes.adversaries.reconstruction.similarity import pair_images, psnr_db
from tests.nodes.adversaries.victims import Victim


def mean_psnr(victim: Victim, target: GradientTarget, attack: Inversion | None = None, seed: int = 0) -> float:
    """The mean over images, each original with the reconstruction that stands for it."""
    images = (attack or Inversion()).reconstruct(target, victim.labels, seed, "test").images
    return float(psnr_db(images[pair_images(images, victim.images)[1]], victim.images).mean())


def guessing(victim: Victim) -> float:
    """What pure noise in place of a gradient gives."""
    return mean_psnr(victim, replace(victim.noisy(1.0), gradient=victim.noisy(1.0).gradient - victim.target.gradient))


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["cosine", "euclidean"])
def test_near_perfect_without_noise(ten_digits: Victim, objective: str) -> None:
    """Ten digits at once come out at 25 dB and more on average."""
    attack = Inversion(objective="cosine" if objective == "cosine" else "euclidean")
    assert mean_psnr(ten_digits, ten_digits.target, attack) > 25.0


@pytest.mark.slow
def test_near_chance_under_huge_noise(ten_digits: Victim) -> None:
    """Noise of a hundred times the gradient leaves what an attack on noise alone gives, to a decibel."""
    std = 100 * float(ten_digits.target.gradient.norm()) / len(ten_digits.target.gradient) ** 0.5
    assert mean_psnr(ten_digits, ten_digits.noisy(std)) == pytest.approx(guessing(ten_digits), abs=1.0)


@pytest.mark.slow
def test_psnr_falls_with_noise(ten_digits: Victim) -> None:
    """Weng's main finding (Table 4.1): sigma C / n of 0.001, 0.003, 0.01 and 0.03, mean of two seeds."""
    levels = [
        np.mean([mean_psnr(ten_digits, ten_digits.noisy(std, seed), seed=seed) for seed in (1, 2)])
        for std in (0.001, 0.003, 0.01, 0.03)
    ]
    assert all(before > after + 1.0 for before, after in pairwise(levels)), levels


@pytest.mark.slow
def test_flat_clipping_leaves_the_cosine_attack_unchanged(ten_digits: Victim) -> None:
    """Bit for bit for a factor that floats represent exactly, and to a decibel for any other."""
    attack = Inversion(steps=200)
    plain = attack.reconstruct(ten_digits.target, ten_digits.labels, 0, "clip").images
    clipped = attack.reconstruct(ten_digits.scaled(2.0**-7), ten_digits.labels, 0, "clip").images
    assert torch.equal(plain, clipped)
    assert mean_psnr(ten_digits, ten_digits.scaled(0.01)) == pytest.approx(
        mean_psnr(ten_digits, ten_digits.target), abs=1.0
    )


@pytest.mark.slow
def test_flat_clipping_misleads_the_euclidean_attack(ten_digits: Victim) -> None:
    """It does not know the factor."""
    attack = Inversion(objective="euclidean")
    assert mean_psnr(ten_digits, ten_digits.scaled(0.1), attack) < mean_psnr(ten_digits, ten_digits.target, attack) - 5


@pytest.mark.slow
def test_clipping_per_layer_misleads_only_who_compares_the_whole(ten_digits: Victim) -> None:
    """Coverage note 2: per-layer clipping costs the flat cosine attack decibels; comparing each layer costs none."""
    target, gradient = ten_digits.target, ten_digits.target.gradient.clone()
    for layer in columns_of(target.module, len(gradient), "each"):
        gradient[layer] *= min(1.0, 0.01 / float(gradient[layer].norm()))
    clipped = replace(target, gradient=gradient)
    each = Inversion(layers="each")
    assert mean_psnr(ten_digits, clipped) < mean_psnr(ten_digits, target) - 2.0
    assert mean_psnr(ten_digits, clipped, each) == pytest.approx(mean_psnr(ten_digits, target, each), abs=1.0)


def test_one_seed_gives_one_result_and_another_another(ten_digits: Victim) -> None:
    """Starts come from named streams; torch's global generator is neither used nor moved."""
    attack, before = Inversion(steps=3), torch.get_rng_state()
    one, same, other = (
        attack.reconstruct(ten_digits.target, ten_digits.labels, seed, "x").images for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.get_rng_state())
    assert float(one.min()) >= 0.0
    assert float(one.max()) <= 1.0


def test_restarts_keep_the_smallest_loss(ten_digits: Victim) -> None:
    """Three starts contain the first one."""
    one, best = (Inversion(steps=5, restarts=count) for count in (1, 3))
    found = [one_of.reconstruct(ten_digits.target, ten_digits.labels, 0, "r").losses[-1] for one_of in (one, best)]
    assert found[1] <= found[0]


def test_losses_are_before_each_step_and_after_the_last(ten_digits: Victim) -> None:
    """The first one is that of the random start."""
    found = Inversion(steps=4, total_variation=0.0).reconstruct(ten_digits.target, ten_digits.labels, 0, "loss")
    start = random_start(ten_digits.target, 0, "loss", 0)
    guess, wanted = ten_digits.target.of(start, ten_digits.labels).detach(), ten_digits.target.gradient
    assert len(found.losses) == 5
    assert found.losses[0] == pytest.approx(1 - float(torch.cosine_similarity(guess, wanted, dim=0)), abs=1e-6)


def test_signed_adam_is_torchs_adam_on_signs() -> None:
    """An oracle that shares no code."""
    rng = np.random.default_rng(3)
    own = torch.zeros(6)
    theirs = torch.zeros(6, requires_grad=True)
    descent, optimiser = SignedAdam(), torch.optim.Adam([theirs], lr=0.01)
    for _ in range(20):
        gradient = torch.from_numpy(rng.standard_normal(6).astype(np.float32))
        descent.step(own, gradient, 0.01)
        theirs.grad = gradient.sign()
        optimiser.step()
    torch.testing.assert_close(own, theirs.detach())


def test_sign_of_moment_moves_every_pixel_by_the_step() -> None:
    """Weng's wording."""
    images, descent = torch.zeros(3), SignOfMoment()
    descent.step(images, torch.tensor([5.0, -0.1, 0.0]), 0.5)
    assert images.tolist() == [-0.5, 0.5, 0.0]
    # The moment remembers: a small gradient the other way does not turn the step.
    descent.step(images, torch.tensor([-0.1, 0.0, 0.0]), 0.5)
    assert images.tolist() == [-1.0, 1.0, 0.0]
