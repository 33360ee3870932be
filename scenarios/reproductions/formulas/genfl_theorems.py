"""DP-GenFL: its theorem on mixed training."""

from __future__ import annotations

import math

from scenarios.reproductions.formulas.refutation import refuted
from scenarios.reproductions.verdict import Part, Verdict


def mixed_training() -> Verdict:
    """S3-C2. Refuted if a divergence that the proof bounds by another one exceeds it.

    The GAN's part of the Renyi divergence is bounded by a Kullback-Leibler divergence. Two distributions on two points,
    (0.999, 0.001) and (1 - 1e-9, 1e-9), and order 2.
    """
    p, q = (0.999, 0.001), (1 - 1e-9, 1e-9)
    kl = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    renyi = math.log(sum(a * a / b for a, b in zip(p, q, strict=True)))
    part = Part(
        "the Renyi divergence is at most the Kullback-Leibler one", renyi <= kl, f"{renyi:.3g} against {kl:.3g}"
    )
    return refuted([part], "a Renyi divergence of order above one is at least the Kullback-Leibler one, not at most")
