"""How similar reconstructed images are to originals, image by image; pixels in [0, 1], [n, channels, height, width]."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, relu

from p2p.random_streams import stream

# The constants and the window of Wang et al. 2004 as scikit-image has them.
SSIM_WINDOW, SSIM_K1, SSIM_K2 = 7, 0.01, 0.03
# A constant: distances are comparable only within one substitute, so it never depends on a run.
_SUBSTITUTE_SEED = 0
_SUBSTITUTE_CHANNELS = (16, 32, 64)


def psnr_db(found: Tensor, originals: Tensor) -> Tensor:
    """Returns the peak signal-to-noise ratio `10 log10(1/MSE)` of each image; infinite for equal images."""
    error: Tensor = (found - originals).double().square().flatten(1).mean(1)
    return -10.0 * error.log10()


def cosine_similarity(found: Tensor, originals: Tensor) -> Tensor:
    """Returns the cosine of each pair of images as vectors; NaN if one is black."""
    x, y = found.double().flatten(1), originals.double().flatten(1)
    lengths: Tensor = torch.linalg.vector_norm(x, dim=1) * torch.linalg.vector_norm(y, dim=1)
    return (x * y).sum(1) / lengths


def euclidean_distance(found: Tensor, originals: Tensor) -> Tensor:
    """Returns the L2 distance of each pair of images as vectors."""
    distances: Tensor = torch.linalg.vector_norm((found - originals).double().flatten(1), dim=1)
    return distances


def structural_similarity(found: Tensor, originals: Tensor) -> Tensor:
    """Returns SSIM with a uniform window of 7 x 7 (smaller for smaller images), the mean over windows and channels."""
    side = min(SSIM_WINDOW, *found.shape[-2:])
    x, y = found.double(), originals.double()

    def mean(values: Tensor) -> Tensor:
        return avg_pool2d(values, side, stride=1)

    mean_x, mean_y = mean(x), mean(y)
    # Unbiased variances, as scikit-image computes them by default; a window of one pixel has none.
    unbiased = side**2 / max(side**2 - 1, 1)
    var_x, var_y = unbiased * (mean(x * x) - mean_x**2), unbiased * (mean(y * y) - mean_y**2)
    covariance = unbiased * (mean(x * y) - mean_x * mean_y)
    c1, c2 = SSIM_K1**2, SSIM_K2**2
    top = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    windows: Tensor = top / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))
    return windows.flatten(1).mean(1)


def lpips_sub(found: Tensor, originals: Tensor) -> Tensor:
    """Returns a substitute of LPIPS, whose trained weights we do not ship: features of a fixed random network.

    Three convolutions with weights drawn once for all; features of each pixel are scaled to unit length, squared
    differences are summed over channels and averaged over pixels and layers. Values lie in [0, 2] up to rounding, and
    compare with no other network's.
    """
    distances = []
    x, y = found, originals
    for number, width in enumerate(_SUBSTITUTE_CHANNELS):
        kernel = _kernel(number, x.shape[1], width)
        x, y = relu(conv2d(x, kernel, padding=1)), relu(conv2d(y, kernel, padding=1))
        distances.append((_unit(x) - _unit(y)).square().sum(1).flatten(1).mean(1))
        # Coarser features in later layers, as long as the image has enough pixels.
        if min(x.shape[-2:]) >= 4:
            x, y = avg_pool2d(x, 2), avg_pool2d(y, 2)
    return torch.stack(distances).mean(0).double()


def _kernel(number: int, inputs: int, outputs: int) -> Tensor:
    # He's scale keeps the size of features from layer to layer.
    scale = np.float32(np.sqrt(2.0 / (9 * inputs)))
    drawn = stream(_SUBSTITUTE_SEED, "lpips_sub", number, inputs).standard_normal((outputs, inputs, 3, 3), np.float32)
    return torch.from_numpy(drawn * scale)


def _unit(features: Tensor) -> Tensor:
    return features / (features.square().sum(1, keepdim=True).sqrt() + 1e-10)


def pair_images(found: Tensor, originals: Tensor) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns numbers of originals and, for each, of the reconstruction that stands for it: least total squared error.

    Images of a batch have no order that an update could show. If there are more of one kind, the rest stays unpaired.
    """
    from scipy.optimize import linear_sum_assignment

    errors = torch.cdist(originals.double().flatten(1), found.double().flatten(1)).square()
    which, chosen = linear_sum_assignment(errors.numpy())
    return which.astype(np.int64), chosen.astype(np.int64)
