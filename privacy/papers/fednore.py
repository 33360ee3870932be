"""Losses of Fed-nore-1 and Fed-nore-2 as pure formulas: as printed, and in readings that affect the gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Layers = Sequence[NDArray[np.float64]]


def layer_sensitivities(global_model: Layers, local_model: Layers, records: int) -> NDArray[np.float64]:
    """`||W_i,l - W_l||_2 / n_i` for each layer, the current norms."""
    norms = [float(np.linalg.norm(local - start)) for local, start in zip(local_model, global_model, strict=True)]
    # Divided by the records as printed; the model may move by the whole norm (E-T06).
    return np.array(norms) / records


def nore1_penalty(sensitivities: NDArray[np.float64], strength: float, sigma: float) -> float:
    """`lambda sigma sum_l S_l`: an unsquared proximal term that pulls with constant force."""
    return strength * sigma * float(sensitivities.sum())


def nore1_gradient(
    global_model: Layers, local_model: Layers, records: int, strength: float, sigma: float
) -> list[NDArray[np.float64]]:
    """The penalty's gradient by the local model; zero at the global model, where the norm is not differentiable."""
    gradients = []
    for local, start in zip(local_model, global_model, strict=True):
        step = local - start
        norm = float(np.linalg.norm(step))
        gradients.append(step * (strength * sigma / (records * norm)) if norm > 0.0 else np.zeros_like(step))
    return gradients


def nore2_constant(strength: float, sigma: float, records: float) -> float:
    """`c = lambda sigma / sqrt(n)`. The printed loss needs c < 1; the best published settings have c = 65."""
    return strength * sigma / math.sqrt(records)


def nore2_printed(probabilities: NDArray[np.float64], c: float) -> NDArray[np.float64]:
    """`-ln(a_p (1-c))`: cross-entropy plus a constant, so its gradient is that of cross-entropy (E-T12)."""
    # Split into two logarithms, which shows the constant; log1p keeps the digits of a small c.
    result: NDArray[np.float64] = -np.log(probabilities) - math.log1p(-c)
    return result


def nore2_keep_label(probabilities: NDArray[np.float64], c: float) -> NDArray[np.float64]:
    """`-ln(a_p (1-c) + c)`: the reading that keeps the label in (3.18)."""
    result: NDArray[np.float64] = -np.log(probabilities * (1.0 - c) + c)
    return result


def nore2_keep_label_weight(probabilities: NDArray[np.float64], c: float) -> NDArray[np.float64]:
    """The factor of the cross-entropy gradient under `nore2_keep_label`, in (0, 1)."""
    kept = (1.0 - c) * probabilities
    result: NDArray[np.float64] = kept / (kept + c)
    return result
