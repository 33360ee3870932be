"""Updates pass the stages the same, however many cores share the work."""

from __future__ import annotations

import numpy as np

from nodes.learning.release_stages import NUMBERS_AT_ONCE, make_stages
from p2p.random_streams import streams
from privacy.calibration.noise_plan import PlanContext
from privacy.stages.api import UpdateShape
from privacy.stages.clipping import Clip
from privacy.stages.gaussian import Gaussian
from privacy.stages.wire import DENSE


def test_threads_change_no_bit() -> None:
    """Each row's noise is its own generator's."""
    rows = np.random.default_rng(1).standard_normal((3, NUMBERS_AT_ONCE // 2), dtype=np.float32)
    context = PlanContext(
        clients=4,
        train_per_round=3,
        exchange_with=None,
        rounds=1,
        records=np.ones(4, dtype=np.int64),
        topology="central",
        shape=UpdateShape(rows.shape[1]),
    )
    pipeline = make_stages([Clip(norm=1.0), Gaussian(sigma=0.1)], context, 1, lambda _: 0.1, DENSE)
    nodes = [3, 1, 2]
    noises = [("noise", node, 0) for node in nodes]
    models = np.zeros((4, rows.shape[1]), dtype=np.float32)
    alone, together = (pipeline.apply(rows.copy(), nodes, streams(1, noises), models, 1, threads) for threads in (1, 2))
    assert alone.tobytes() == together.tobytes()
    np.testing.assert_allclose(np.std(alone, axis=1), 0.1, rtol=0.05)
