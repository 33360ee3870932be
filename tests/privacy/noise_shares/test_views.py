"""Who can undo shared noise: exact views against the reference cases and against each other."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.random_streams import stream
from privacy.accounting.gaussian import delta_of, epsilon_of
from privacy.noise_shares.seed_expansion import address_number, expand_share, fast_normals
from privacy.noise_shares.uploads import NoiseExpander, ReceivedShare, Share, Upload, predicted_variance
from privacy.noise_shares.variance import circulant_shares, collusion_quantile, collusion_tail, residual_variance
from privacy.noise_shares.views import Seen, epsilon_over_draws, joint_mu2, peers_mu2, sum_mu2
from topologies.round_graph import round_graph

CASES = json.loads((Path(__file__).parents[1] / "reference_cases.json").read_text())["cases"]


class GivenFactors(NoiseExpander):
    """Multipliers as a case states them."""

    factors: dict[tuple[int, int], float]

    def multiplier(self, taken: ReceivedShare) -> float:
        """The stated one."""
        return self.factors[taken.share.sender, taken.share.receiver]


def make(edges: list[tuple[int, int]], members: int, variance: float, tau: float, independent: float) -> list[Upload]:
    """Uploads of an exchange along these edges."""
    shares = {
        (a, b): Share(1, a, b, a, b, math.sqrt(variance), bytes([a, b]) + bytes(30)) for a, b in map(tuple, edges)
    }
    return [
        Upload(
            1,
            node,
            1.0,
            tuple(share for share in shares.values() if share.sender == node),
            tuple(
                ReceivedShare(share, tau, bytes([7, share.sender, node]) + bytes(29))
                for share in shares.values()
                if share.receiver == node
            ),
            math.sqrt(independent),
            bytes([node]) * 32,
        )
        for node in range(members)
    ]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] == "niss_joint_view"], ids=lambda case: case["id"]
)
def test_reference_joint_views(case: dict[str, Any]) -> None:
    """The covariance of all uploads, multipliers known, inverted; infinite at tau = 0 without other noise."""
    inputs = case["inputs"]
    edges = circulant_shares(inputs["m"], inputs["v"])
    maker = GivenFactors(1, "fast", "scalar", False)
    maker.factors = dict(zip(edges, inputs["s"], strict=True))
    uploads = make(edges, inputs["m"], inputs["unit_variance"], 1.0, inputs["independent_variance"])
    sensitivity = dict.fromkeys(range(inputs["m"]), inputs["sensitivity"])
    found = math.sqrt(joint_mu2(Seen(uploads, sensitivity=sensitivity), maker)[inputs["client"]])
    assert found == pytest.approx(float(case["expected"]["mu"]), rel=1e-6)


@pytest.mark.parametrize("expansion", ["fast", "shake"])
def test_expansions_are_normal_and_named(expansion: Any) -> None:
    """Mean, variance, tails and correlations as of a normal; another round, end, index or seed is another draw."""
    seed = bytes(range(32))
    drawn = expand_share(expansion, seed, 3, 7, 12, 0, 100_001)
    assert drawn.shape == (100_001,)
    assert drawn.dtype == np.float64
    assert abs(drawn.mean()) < 0.015
    assert drawn.var() == pytest.approx(1.0, abs=0.02)
    assert np.mean(drawn**4) == pytest.approx(3.0, abs=0.15)
    assert np.mean(np.abs(drawn) > 3) == pytest.approx(0.0027, abs=0.0008)
    others = [
        (seed, 4, 7, 12, 0),
        (seed, 3, 8, 12, 0),
        (seed, 3, 7, 13, 0),
        (seed, 3, 7, 12, 1),
        (bytes(32), 3, 7, 12, 0),
    ]
    for other in others:
        assert abs(np.corrcoef(drawn, expand_share(expansion, *other, 100_001))[0, 1]) < 0.015
    assert (expand_share(expansion, seed, 3, 7, 12, 0, 100_001) == drawn).all()


def test_the_fast_expansion_keeps_its_vectors() -> None:
    """Both ends of two versions must agree: these numbers may not change."""
    found = fast_normals(bytes(range(32)), 3, 7, 12, 0, 4)
    assert found == pytest.approx([FAST[0], FAST[1], FAST[2], FAST[3]], abs=1e-6)
    assert address_number(bytes([1, 2, 0, 0, 9])) == 0x0201


FAST = (-0.414979398, -0.925267339, 1.035508275, -0.301782548)


@pytest.mark.slow
@given(st.integers(3, 9), st.integers(0, 1000), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_prediction_is_the_drop_out_table(members: int, seed: int, tau: float, lost: int) -> None:
    """For uploads of those who are left, with every share used, the two formulas agree."""
    degree = 1 + seed % (members - 1)
    edges = [(int(a), int(b)) for a, b in round_graph(np.arange(members), degree, stream(seed, "t"))]
    gone = set(range(min(lost, members - 1)))
    uploads = [upload for upload in make(edges, members, 0.04, tau, 0.0) if upload.node not in gone]
    assert predicted_variance(uploads) == pytest.approx(residual_variance(edges, gone, 0.04, tau), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@given(st.integers(3, 9), st.integers(0, 1000), st.sampled_from([0.2, 1.0]), st.sampled_from([0.0, 0.01]))
@settings(max_examples=30, deadline=None)
def test_views_are_ordered(members: int, seed: int, tau: float, independent: float) -> None:
    """Who sees only the sum learns least, who sees all uploads more, who has shares in them most."""
    edges = [(int(a), int(b)) for a, b in round_graph(np.arange(members), 2, stream(seed, "t"))]
    uploads, maker = make(edges, members, 0.04, tau, independent), NoiseExpander(3, "fast", "scalar", False)
    sensitivity = dict.fromkeys(range(members), 0.5)
    everything = Seen(uploads, sensitivity=sensitivity)
    outside, joint, peers = sum_mu2(everything, (), maker), joint_mu2(everything, maker), peers_mu2(everything, maker)
    for observer in range(members):
        alone = joint_mu2(Seen(uploads, known={observer}, sensitivity=sensitivity), maker)
        for node, value in alone.items():
            assert value >= joint[node] * (1 - 1e-9)
            assert joint[node] >= outside[node] * (1 - 1e-9)
            assert peers[observer][node] == pytest.approx(value, rel=1e-6)


def test_all_partners_colluding_leaves_only_independent_noise() -> None:
    """Scalar factors then protect nothing (E-N05); factors by coordinate leave `tau^2 r_j^2`, weakest coordinate."""
    uploads = make([(0, 1), (0, 2), (1, 0), (2, 0), (1, 2), (2, 1)], 3, 0.04, 0.5, 0.0)
    seen = Seen(uploads, known={1, 2}, sensitivity={0: 1.0})
    assert joint_mu2(seen, NoiseExpander(8, "fast", "scalar", False))[0] == math.inf
    maker = NoiseExpander(8, "fast", "vector", False)
    left = sum((0.5 * maker.share(one.share)) ** 2 for one in uploads[0].taken)
    assert joint_mu2(seen, maker)[0] == pytest.approx(1.0 / np.min(left))


def test_an_opened_share_protects_nobody() -> None:
    """What survivors told to correct a sum counts as known."""
    uploads = make([(0, 1), (1, 0)], 2, 0.04, 0.5, 0.0)
    maker = NoiseExpander(1, "fast", "scalar", False)
    seen = Seen(uploads, opened=[share for upload in uploads for share in upload.sent], sensitivity={0: 1.0, 1: 1.0})
    assert joint_mu2(seen, maker) == {0: math.inf, 1: math.inf}


@pytest.mark.slow
def test_delta_is_averaged_over_the_multipliers() -> None:
    """Of equal draws it is the exact epsilon; of several it lies between, with the mean delta just met."""
    assert epsilon_over_draws(np.full(5, 1.44), 1e-4) == pytest.approx(epsilon_of(1.2, 1e-4), rel=1e-9)
    mixed = np.array([1.0, 4.0])
    found = epsilon_over_draws(mixed, 1e-4)
    assert epsilon_of(1.0, 1e-4) < found < epsilon_of(2.0, 1e-4)
    assert np.mean([delta_of(found, mu) for mu in (1.0, 2.0)]) == pytest.approx(1e-4, rel=1e-6)
    assert epsilon_over_draws(np.array([1.0, math.inf]), 1e-4) == math.inf


@pytest.mark.slow
def test_quantiles_of_colluding_partners() -> None:
    """The least count that is exceeded with at most the remaining probability."""
    count = collusion_quantile(99, 40, 7, 0.95)
    assert collusion_tail(99, 40, 7, count + 1) <= 0.05 < collusion_tail(99, 40, 7, count)
