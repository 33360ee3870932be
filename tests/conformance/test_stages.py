"""Every stage does what a plain loop over one client does, with the same draws, and has the bytes that it declares."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from privacy.stages.api import Stage
from privacy.stages.clipping import Clip, ClipOwnMedian
from privacy.stages.gaussian import Gaussian
from privacy.stages.selective import Snlc
from privacy.stages.sparse import Mask, TopK
from privacy.stages.table import STAGES
from tests.conformance.plain_stages import (
    CASES,
    IDS,
    LAYERS,
    Client,
    D,
    Plain,
    pipeline,
    released,
    scaled,
    updates,
)


@pytest.mark.parametrize(("plain", "stages"), CASES, ids=IDS)
def test_a_stage_is_its_algorithm(plain: Plain, stages: tuple[Stage, ...]) -> None:
    """Rows are releases of one client each, to single precision."""
    made, _ = pipeline(*stages)
    for round_number in (1, 7, 10):
        rows, models = updates(round_number)
        found = released(made, round_number)
        for place, node in enumerate((3, 0, 2)):
            expected = plain(rows[place].astype(np.float64), Client(node, round_number, models))
            np.testing.assert_allclose(found[place], expected, rtol=2e-5, atol=2e-6)


def test_own_medians_follow_each_clients_history() -> None:
    """Plain DPFL of Weng (2025): every layer to the median of that client's norms so far, noise by that and records."""
    made, plan = pipeline(ClipOwnMedian(), Gaussian(multiplier=3.0, per_record=True))
    history: dict[tuple[int, int], list[float]] = {}
    for round_number in (1, 2, 3, 4):
        rows, models = updates(round_number)
        found = released(made, round_number)
        for place, node in enumerate((3, 0, 2)):
            client, parts = Client(node, round_number, models), []
            noise = np.split(client.draws.standard_normal(D, dtype=np.float32), np.cumsum(LAYERS)[:-1])
            for layer, part in enumerate(np.split(rows[place].astype(np.float64), np.cumsum(LAYERS)[:-1])):
                norms = history.setdefault((node, layer), [])
                norms.append(float(np.linalg.norm(part)))
                bound = statistics.median(norms)
                parts.append(scaled(part, bound) + 3.0 * bound / client.records * noise[layer])
            np.testing.assert_allclose(found[place], np.concatenate(parts), rtol=2e-5, atol=2e-6)
    assert any("median of the client's own norms" in reason for reason in plan.unaccounted)


def test_the_surrogate_noises_what_moved_most_and_less_when_the_loss_settles() -> None:
    """omega_t = clip(omega |L_(t-1) - L_t| / |L_0 - L_1|, omega_min, omega)."""
    made, _ = pipeline(Snlc(sigma=5.0, omega=0.8, omega_min=0.1))
    for round_number, loss, share in ((1, 3.0, 0.8), (2, 2.0, 0.8), (3, 1.5, 0.4), (4, 1.49, 0.1), (5, 9.0, 0.8)):
        rows, _ = updates(round_number)
        found = released(made, round_number, (loss, loss, loss))
        for place in range(3):
            moved = set(np.flatnonzero(found[place] != rows[place]).tolist())
            assert moved == set(np.argsort(-np.abs(rows[place]))[: math.ceil(share * D)].tolist())


def test_every_stage_of_the_table_is_tested_here() -> None:
    """A new stage needs its plain implementation."""
    tried = {type(stage) for _, stages in CASES for stage in stages} | {ClipOwnMedian, Snlc}
    assert tried == set(STAGES.values())


@pytest.mark.parametrize(("plain", "stages"), CASES, ids=IDS)
def test_releases_have_the_bytes_that_are_declared(plain: Plain, stages: tuple[Stage, ...]) -> None:
    """Each one is really encoded, and decoded again to the same bits."""
    made, _ = pipeline(*stages)
    for round_number in (1, 2):
        for node, row in zip((3, 0, 2), released(made, round_number), strict=True):
            wire = made.wire_of(round_number, node)
            data = wire.encode(row)
            assert len(data) == wire.size_bytes(D)
            np.testing.assert_array_equal(wire.decode(data, D), row)
            # Damaged bytes decode to something, never to an error.
            assert wire.decode(bytes(255 - byte for byte in data), D).shape == (D,)


def test_bytes_by_hand() -> None:
    """Of 1,000 coordinates: indices are shorter up to 31 kept, a bitmap above; a common mask sends values only."""
    from privacy.stages.binomial import Quantised
    from privacy.stages.sparse_wire import CommonMask, Sparse

    assert Sparse(31).size_bytes(1000) == 31 * 4 + 31 * 4
    assert Sparse(32).size_bytes(1000) == 32 * 4 + 125
    assert CommonMask(100, random=True).size_bytes(1000) == 400
    assert Quantised(1.0, 16, 1000, rotated=True).size_bytes(1000) == 1250  # 0..1015 takes 10 bits


@pytest.mark.parametrize("stages", [(TopK(rate=1.0),), (Mask(rate=1.0),), (Mask(rate=1.0, by="last_aggregate"),)])
def test_keeping_everything_changes_no_bit(stages: tuple[Stage, ...]) -> None:
    """Neither of the release nor of its declaration."""
    plain, plan = pipeline(Clip(), Gaussian(sigma=0.1))
    other, other_plan = pipeline(*stages, Clip(), Gaussian(sigma=0.1))
    assert released(plain, 2).tobytes() == released(other, 2).tobytes()
    assert other_plan.wire is plan.wire
    assert other_plan.unaccounted == plan.unaccounted == ()
