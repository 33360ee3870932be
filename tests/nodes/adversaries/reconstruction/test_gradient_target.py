"""The gradient of candidates is the gradient that training takes, and distances ignore what they should."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nodes.adversaries.reconstruction.gradient_target import (
    columns_of,
    cosine_distance,
    euclidean_distance,
    to_images,
    to_records,
    total_variation,
)
from nodes.datasets.published import Cifar10, Mnist
from nodes.learning.kernels.generic import unflatten
from privacy.papers import reconstruction_metrics
from tests.nodes.adversaries.victims import Victim


def test_the_gradient_is_what_backward_computes(ten_digits: Victim) -> None:
    """Plain `backward` on the module's own parameters is the oracle."""
    module, target = ten_digits.target.module, ten_digits.target
    module.load_state_dict(unflatten(module, target.weights[0]))
    module.zero_grad()
    nn.functional.cross_entropy(module(ten_digits.images), ten_digits.labels).backward()  # type: ignore[no-untyped-call]
    expected = torch.cat([part.grad.flatten() for part in module.parameters() if part.grad is not None])
    torch.testing.assert_close(target.gradient, expected)


def test_several_models_give_the_mean_gradient(ten_digits: Victim) -> None:
    """The option of the all-round manner."""
    from dataclasses import replace

    target = ten_digits.target
    other = target.weights * 0.5
    both = replace(target, weights=torch.cat([target.weights, other]))
    one, two = (replace(target, weights=w).of(ten_digits.images, ten_digits.labels) for w in (target.weights, other))
    torch.testing.assert_close(both.of(ten_digits.images, ten_digits.labels), (one + two) / 2)


def test_cosine_ignores_a_factor_per_part() -> None:
    """A factor on the whole leaves it alone; factors per layer leave the mean over layers alone."""
    found, wanted = torch.tensor([1.0, 2.0, 3.0, -1.0]), torch.tensor([2.0, 1.0, 0.5, 4.0])
    whole, halves = [slice(0, 4)], [slice(0, 2), slice(2, 4)]
    clipped = wanted * torch.tensor([0.5, 0.5, 0.125, 0.125])
    assert cosine_distance(found, wanted * 0.25, whole) == cosine_distance(found, wanted, whole)
    assert cosine_distance(found, clipped, halves) == cosine_distance(found, wanted, halves)
    assert cosine_distance(found, clipped, whole) != cosine_distance(found, wanted, whole)
    assert cosine_distance(found, found, whole) == pytest.approx(0.0, abs=1e-6)
    assert cosine_distance(found, torch.zeros(4), whole) == 1.0  # an update of nothing has no direction


def test_euclidean_distance_is_the_norm_of_the_difference() -> None:
    """3-4-5."""
    found, wanted = torch.tensor([3.0, 4.0, 1.0]), torch.tensor([0.0, 0.0, 1.0])
    assert euclidean_distance(found, wanted, [slice(0, 3)]) == 5.0
    assert euclidean_distance(found, wanted, [slice(0, 1), slice(1, 3)]) == 7.0


def test_layers_of_a_network(ten_digits: Victim) -> None:
    """64-64-10: weights and biases of a layer belong together."""
    target = ten_digits.target
    assert columns_of(target.module, 4810, "each") == [slice(0, 4160), slice(4160, 4810)]
    assert columns_of(target.module, 4810, "together") == [slice(0, 4810)]


def test_total_variation_is_the_calculators() -> None:
    """The two implementations share no code."""
    images = torch.rand(3, 2, 5, 4, generator=torch.Generator().manual_seed(1))
    expected = reconstruction_metrics.total_variation(images.double().numpy())
    assert float(total_variation(images)) == pytest.approx(expected, rel=1e-6)
    assert float(total_variation(torch.ones(1, 1, 1, 3))) == 0.0


@pytest.mark.parametrize("data", [Mnist(), Cifar10()])
def test_pixels_and_records_convert_both_ways(data: Mnist | Cifar10) -> None:
    """Black and white are where standardisation puts 0 and 1."""
    shape, _ = data.form()
    pixels = data.pixel_range()
    images = torch.stack([torch.zeros(shape), torch.ones(shape), torch.full(shape, 0.25)])
    records = to_records(images, pixels)
    torch.testing.assert_close(to_images(records, pixels), images)
    mean, std = data.MEAN, data.STD
    for channel in range(shape[0]):
        assert float(records[1, channel, 0, 0]) == pytest.approx((1 - mean[channel]) / std[channel], rel=1e-6)
