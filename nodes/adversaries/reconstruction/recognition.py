"""Whether a classifier sees the original in a reconstruction: five small networks, trained on public images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodes.adversaries.small_networks import train_network
from p2p.random_streams import stream
from privacy.papers.reconstruction_metrics import leakage_scores

# Hidden widths of the five substitutes for Weng's pretrained networks.
SHAPES: tuple[tuple[int, ...], ...] = ((64,), (128,), (96, 48), (64, 64), (160,))
STEPS = 200
# The weight a2 of cosines against distances, which Weng (2025) does not state.
COSINE_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Leakage:
    """Scores of one set of reconstructions.

    Attributes:
        printed: P(pl) as printed: the share of images with pl_j > 0. It is centred on the mean, so it measures spread:
            images that all leak perfectly score 0 (E-T15)
        recognised: whether each reconstruction gets the label that the ensemble gives its original
    """

    printed: float
    recognised: NDArray[np.bool_]


class Ensemble:
    """Five networks that classify images; their mean probabilities judge reconstructions."""

    def __init__(self, images: Tensor, labels: Tensor, classes: int, seed: int) -> None:
        pixels = images.flatten(1)
        self._modules = [
            train_network(SHAPES[number], pixels, labels, classes, STEPS, stream(seed, "recognition", number))
            for number in range(len(SHAPES))
        ]

    def probabilities(self, images: Tensor) -> Tensor:
        """Returns the mean probability of each class, [n, classes]."""
        with torch.no_grad():
            return torch.stack([module(images.flatten(1)).softmax(1) for module in self._modules]).mean(0).double()

    def judge(self, found: Tensor, originals: Tensor, noise: float) -> Leakage:
        """Compares what the ensemble sees in reconstructions and in their originals, in pairs.

        Args:
            noise: sigma C, the noise on a sum of gradients of which each is at most C.
        """
        seen, truth = self.probabilities(found), self.probabilities(originals)
        cosines = (seen * truth).sum(1) / (_lengths(seen) * _lengths(truth))
        # Probability vectors are at most sqrt(2) apart; Weng's distances lie in [0, 1].
        distances = _lengths(seen - truth) / 2**0.5
        scores = leakage_scores(cosines.numpy(), distances.numpy(), COSINE_WEIGHT, noise)
        return Leakage(float((scores > 0.0).mean()), (seen.argmax(1) == truth.argmax(1)).numpy())


def _lengths(rows: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths
