"""Similarity of images against closed forms and slow, obvious versions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodes.adversaries.reconstruction.similarity import (
    cosine_similarity,
    euclidean_distance,
    lpips_sub,
    pair_images,
    psnr_db,
    structural_similarity,
)
from nodes.datasets.dataset import Dataset
from privacy.papers import reconstruction_metrics


def images(count: int, channels: int, side: int, seed: int = 0) -> Tensor:
    """Random images."""
    return torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(seed))


def test_pixel_measures_are_the_calculators() -> None:
    """Image by image, in float64."""
    found, originals = images(4, 3, 6, 1), images(4, 3, 6, 2)
    pairs = [(x.double().numpy(), y.double().numpy()) for x, y in zip(found, originals, strict=True)]
    assert psnr_db(found, originals).tolist() == pytest.approx([reconstruction_metrics.psnr_db(*p) for p in pairs])
    expected = [reconstruction_metrics.cosine_similarity(*p) for p in pairs]
    assert cosine_similarity(found, originals).tolist() == pytest.approx(expected)
    expected = [reconstruction_metrics.euclidean_distance(*p) for p in pairs]
    assert euclidean_distance(found, originals).tolist() == pytest.approx(expected, rel=1e-6)


def test_equal_images() -> None:
    """Infinite PSNR, SSIM and cosine one, distances zero."""
    one = images(2, 1, 8)
    assert psnr_db(one, one).tolist() == [float("inf")] * 2
    assert structural_similarity(one, one).tolist() == pytest.approx([1.0, 1.0])
    assert lpips_sub(one, one).tolist() == [0.0, 0.0]


def slow_ssim(x: NDArray[np.float64], y: NDArray[np.float64], side: int) -> float:
    """Window by window, with numpy's own covariance."""
    values = []
    for top in range(x.shape[0] - side + 1):
        for left in range(x.shape[1] - side + 1):
            a, b = (z[top : top + side, left : left + side].ravel() for z in (x, y))
            (va, cab), (_, vb) = np.cov(a, b)
            c1, c2 = 0.01**2, 0.03**2
            top_part = (2 * a.mean() * b.mean() + c1) * (2 * cab + c2)
            values.append(top_part / ((a.mean() ** 2 + b.mean() ** 2 + c1) * (va + vb + c2)))
    return float(np.mean(values))


def test_ssim_window_by_window() -> None:
    """The sliding means against explicit windows; constant images have a closed form."""
    found, originals = images(3, 1, 11, 3), images(3, 1, 11, 4)
    expected = [
        slow_ssim(x[0].double().numpy(), y[0].double().numpy(), 7) for x, y in zip(found, originals, strict=True)
    ]
    assert structural_similarity(found, originals).tolist() == pytest.approx(expected)
    dark, light = torch.full((1, 1, 8, 8), 0.25), torch.full((1, 1, 8, 8), 0.75)
    closed = (2 * 0.25 * 0.75 + 1e-4) / (0.25**2 + 0.75**2 + 1e-4)
    assert float(structural_similarity(dark, light)) == pytest.approx(closed)


def test_ssim_of_small_images_has_a_smaller_window() -> None:
    """4 x 4 images have one window."""
    found, originals = images(1, 1, 4, 3), images(1, 1, 4, 4)
    expected = slow_ssim(found[0, 0].double().numpy(), originals[0, 0].double().numpy(), 4)
    assert float(structural_similarity(found, originals)) == pytest.approx(expected)


def test_lpips_sub_orders_images_as_the_eye_does(digits: Dataset) -> None:
    """A slightly noisy digit is nearer than another one of its class, and that nearer than noise."""
    zeros = torch.from_numpy(digits.train_x[digits.train_y == 0][:21])
    originals, others = zeros[:20], zeros[1:]
    slightly = (originals + 0.05 * torch.randn(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))).clamp(0, 1)
    near, same_class, noise = (
        float(lpips_sub(found, originals).mean()) for found in (slightly, others, images(20, 1, 8))
    )
    assert near < same_class < noise < 2.0


def test_lpips_sub_is_one_fixed_network() -> None:
    """Values are comparable between runs: a pinned value, and any number of channels."""
    assert float(lpips_sub(images(1, 1, 8, 1), images(1, 1, 8, 2))) == pytest.approx(0.1830, abs=1e-3)
    assert lpips_sub(images(2, 3, 32, 1), images(2, 3, 32, 2)).shape == (2,)


def test_pairs_are_those_of_least_total_error() -> None:
    """A shuffled set is put in order again."""
    originals = images(6, 1, 5)
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    assert originals[order][pair_images(originals[order], originals)[1]].equal(originals)
