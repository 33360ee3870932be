"""Reconstructions beside the originals that they were paired with, and all measures of their similarity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nodes.adversaries.reconstruction.carry_out import Attempt
from nodes.adversaries.reconstruction.similarity import (
    cosine_similarity,
    euclidean_distance,
    lpips_sub,
    psnr_db,
    structural_similarity,
)
from privacy.attacks.observations import Records

MEASURES = {
    "psnr_db": psnr_db,
    "ssim": structural_similarity,
    "cosine": cosine_similarity,
    "euclidean": euclidean_distance,
    "lpips_sub": lpips_sub,
}
# A perfect reconstruction has an infinite PSNR; means are formed with this one.
MOST_DB = 100.0


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """An attempt beside the originals that its images were paired with."""

    attempt: Attempt
    originals: Tensor
    found: Tensor
    records: Records
    prior_db: float
    printed: float
    recognised: NDArray[np.bool_]
    right_links: float

    def measured(self) -> dict[str, Tensor]:
        """Returns every measure of every image."""
        found = {name: measure(self.found, self.originals) for name, measure in MEASURES.items()}
        return found | {"psnr_db": found["psnr_db"].clamp(max=MOST_DB)}
