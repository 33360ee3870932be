"""Updates are clipped and noised the same, however many cores share the work."""

from __future__ import annotations

import numpy as np

from nodes.learning.clip_and_noise import NUMBERS_AT_ONCE, ClipAndNoise
from p2p.random_streams import stream
from privacy.mechanisms.clip_and_noise import FlatClip, GaussianNoise


def test_threads_change_no_bit() -> None:
    """Each row's noise is its own generator's."""
    pipeline = ClipAndNoise(FlatClip(norm=1.0), GaussianNoise(sigma=0.1), np.array([0.1, 0.2, 0.0, 0.3]))
    rows = np.random.default_rng(1).standard_normal((3, NUMBERS_AT_ONCE // 2), dtype=np.float32)
    alone, together = (
        pipeline.apply(rows.copy(), [3, 1, 2], [stream(1, "noise", node, 0) for node in (3, 1, 2)], threads)
        for threads in (1, 2)
    )
    assert alone.tobytes() == together.tobytes()
    assert np.std(alone[0]) > np.std(alone[1]) > np.std(alone[2])
