"""DLG on a smooth network: exact from a bare gradient, useless under noise, and on the sum of all uploads."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from nodes.adversaries.reconstruction.dlg import Dlg
from nodes.adversaries.reconstruction.similarity import pair_images, psnr_db
from nodes.datasets.dataset import Dataset
from nodes.learning.model_kinds.models import Mlp
from nodes.learning.model_kinds.published_models import SigmoidLenet
from tests.nodes.adversaries.victims import Victim, make_victim

SIGMOID = Mlp(hidden=(64,), activation="sigmoid")


def psnr(victim: Victim, std: float = 0.0) -> torch.Tensor:
    """Each image's; DLG is not told the labels."""
    found = Dlg(restarts=2).reconstruct(victim.noisy(std), 10, 0, "dlg").images
    return psnr_db(found[pair_images(found, victim.images)[1]], victim.images)


@pytest.mark.slow
@pytest.mark.parametrize("model", [SIGMOID, SigmoidLenet()], ids=["mlp", "lenet"])
def test_one_image_is_found_without_its_label(digits: Dataset, model: Mlp | SigmoidLenet) -> None:
    """Above 30 dB differences are invisible."""
    assert float(psnr(make_victim(digits, model, 1)).min()) > 30.0


@pytest.mark.slow
def test_noise_of_the_papers_size_ends_it(digits: Dataset) -> None:
    """Variance 1.6e-5 on every coordinate, as in the NISS paper, and a deviation ten and a hundred times that."""
    victim = make_victim(digits, SIGMOID, 1)
    without, printed, more, most = (float(psnr(victim, factor * 1.6e-5**0.5).mean()) for factor in (0, 1, 10, 100))
    assert without > 60.0 > printed + 20.0
    assert printed > more + 10.0 > most + 15.0
    assert most < 9.0


@pytest.mark.slow
def test_shares_that_cancel_protect_one_upload_and_not_the_sum(digits: Dataset) -> None:
    """Four uploads with noise that sums to zero: each alone shows nothing, their mean shows all four images."""
    together = make_victim(digits, SIGMOID, 4)
    images, labels = together.images, together.labels
    noise = torch.randn(4, len(together.target.gradient), generator=torch.Generator().manual_seed(5)) * 0.1
    noise -= noise.mean(0)
    uploads = [together.target.of(images[i : i + 1], labels[i : i + 1]).detach() + noise[i] for i in range(4)]
    alone = replace(together.target, gradient=uploads[0], count=1)
    first = Dlg(restarts=2).reconstruct(alone, 10, 0, "one").images
    mean = replace(together.target, gradient=torch.stack(uploads).mean(0))
    found = Dlg(restarts=2).reconstruct(mean, 10, 0, "sum").images
    assert float(psnr_db(first, images[:1])) < 12.0
    assert float(psnr_db(found[pair_images(found, images)[1]], images).min()) > 20.0


def test_a_loss_that_is_not_finite_keeps_what_was_best(digits: Dataset) -> None:
    """An infinite gradient cannot be matched, and nothing crashes."""
    victim = make_victim(digits, SIGMOID, 1)
    broken = replace(victim.target, gradient=victim.target.gradient * float("inf"))
    found = Dlg(iterations=2, restarts=1).reconstruct(broken, 10, 0, "inf")
    assert bool(torch.isfinite(found.images).all())
