"""Calculator kinds for vectors and images: clipping, reconstruction, leakage (spec A.6, I)."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from annotated_types import MinLen

from privacy.calc.inputs import Count, Fraction, Layers, NonNegative, Positive, Result, Vector, answer, refuse
from privacy.mechanisms import layer_clipping
from privacy.papers import reconstruction_metrics

Rows = Annotated[list[Vector], MinLen(1)]


def clipping_scales(*, layers: Layers, C: Positive) -> Result:
    """Clipping factors of an update: flat, per layer with the same bound, per layer with the bound split."""
    norms = np.array([float(np.linalg.norm(layer)) for layer in layers])
    total = float(np.linalg.norm(norms))
    return {
        "layer_norms": norms.tolist(),
        "total_norm": total,
        "flat_scale": float(layer_clipping.scale_factors(total, C)),
        "per_layer_scale_same_C": layer_clipping.scale_factors(norms, C).tolist(),
        "per_layer_scale_split": layer_clipping.scale_factors(
            norms, layer_clipping.split_bound(C, len(layers))
        ).tolist(),
        "median_of_layer_norms": float(np.median(norms)),
        "total_sensitivity_same_C": layer_clipping.layered_sensitivity(C, len(layers)),
    }


def lemma7_k1(*, C: Positive, g_norm: Positive, sigma: NonNegative, n: Count, d: Count) -> Result:
    """k1 and k2 of the reconstruction theory: as published, and with the noise's true dimension."""
    published = reconstruction_metrics.gradient_ratio(C, g_norm, sigma * C / math.sqrt(n))
    return answer(
        {
            "k1_published": published,
            "k2_published": (published - 1.0) / published,
            "k1_with_dimension": reconstruction_metrics.gradient_ratio(C, g_norm, math.sqrt(d) * sigma * C / n),
        },
        (published >= 1.0, f"k1 = {published:.4g} is below 1: k2 is negative and no probability (E-T14)"),
    )


def image_pair_metrics(*, x: Rows, y: Rows) -> Result:
    """Similarity of two images (pixels in [0, 1]): MSE, PSNR, cosine, distance; and the second's total variation."""
    refuse(([len(row) for row in x] == [len(row) for row in y], "y: must have the shape of x"))
    refuse((len({len(row) for row in x}) == 1, "x: must have rows of equal length"))
    one, other = np.array(x), np.array(y)
    pixels = np.concatenate([one, other])
    return answer(
        {
            "mse": reconstruction_metrics.mean_squared_error(one, other),
            "psnr_db": reconstruction_metrics.psnr_db(one, other),
            "cosine": reconstruction_metrics.cosine_similarity(one, other),
            "euclid": reconstruction_metrics.euclidean_distance(one, other),
            "tv_of_y": reconstruction_metrics.total_variation(other),
        },
        (bool(pixels.min() >= 0.0 and pixels.max() <= 1.0), "PSNR presumes pixels in [0, 1]; some are outside"),
    )


def privacy_leakage_probability(
    *, CS: Vector, ED: Vector, sigma: NonNegative, C: Positive, alpha2: Fraction = 0.5
) -> Result:
    """Weng's leakage probability P(pl), from cosines and distances of reconstructions."""
    refuse((len(CS) == len(ED), f"ED: must have one entry per image; CS has {len(CS)}, ED has {len(ED)}"))
    scores = reconstruction_metrics.leakage_scores(np.array(CS), np.array(ED), alpha2, sigma * C)
    return {
        "rho": reconstruction_metrics.leakage_margin(sigma * C),
        "pl": scores.tolist(),
        "P_pl": float(np.mean(scores > 0.0)),
        "mean_pl": float(scores.mean()),
    }
