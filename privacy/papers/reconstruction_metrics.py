"""Similarity of reconstructed to original images (pixels in [0, 1]), and Weng's leakage scores."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float64]


def mean_squared_error(x: Image, y: Image) -> float:
    """Mean of squared differences."""
    return float(np.mean(np.square(x - y)))


def psnr_db(x: Image, y: Image) -> float:
    """Peak signal-to-noise ratio `10 log10(1/MSE)` in dB; infinite for equal images."""
    error = mean_squared_error(x, y)
    return math.inf if error == 0.0 else -10.0 * math.log10(error)


def cosine_similarity(x: Image, y: Image) -> float:
    """Cosine of the angle between the images as vectors; NaN if one is all zero."""
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(np.sum(x * y)) / lengths if lengths > 0.0 else math.nan


def euclidean_distance(x: Image, y: Image) -> float:
    """L2 distance of the images as vectors."""
    return float(np.linalg.norm(x - y))


def total_variation(image: Image) -> float:
    """Mean absolute vertical plus mean absolute horizontal difference, over the last two axes."""
    steps = [np.abs(np.diff(image, axis=axis)) for axis in (-2, -1)]
    # An image of a single row has no vertical differences, and the mean of nothing is NaN.
    return sum(float(step.mean()) for step in steps if step.size)


def leakage_scores(
    cosines: NDArray[np.float64], distances: NDArray[np.float64], cosine_weight: float, noise: float
) -> NDArray[np.float64]:
    """(4.3): `a2 (CS_j - mean CS - rho) - (1-a2)(ED_j - mean ED + rho)`, rho = `leakage_margin(noise)`.

    Centred on the mean, scores measure spread, not leakage: images that all leak perfectly score -rho (E-T15).
    """
    rho = leakage_margin(noise)
    closer = cosine_weight * (cosines - cosines.mean() - rho)
    result: NDArray[np.float64] = closer - (1.0 - cosine_weight) * (distances - distances.mean() + rho)
    return result


def leakage_margin(noise: float) -> float:
    """rho = `min(sigma C, 0.1)`."""
    return min(noise, 0.1)


def gradient_ratio(clip_norm: float, gradient_norm: float, noise_norm: float) -> float:
    """k1 of (4.5): `min(1, C/||g||) + ||noise||/||g||`."""
    # Lengths are added as in (4.5), as if clipped gradient and noise had one direction.
    return min(1.0, clip_norm / gradient_norm) + noise_norm / gradient_norm
