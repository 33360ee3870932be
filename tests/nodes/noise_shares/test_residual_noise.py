"""The noise that remains in aggregations, against the formulas of the paper and of spec C.3."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privacy.noise_shares.variance import expected_residual_variance
from tests.nodes.noise_shares.exchange_world import GOSSIP, LEADER, covers, lose, residuals, run


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["protocol.kind=central", LEADER])
@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("count", [1, 4, 7])
def test_theorem_2_over_the_simulator(protocol: str, tau: float, count: int) -> None:
    """All uploads summed leave `sum sigma_k^2 tau_k^2` (with one share each this is Lemma 1 as many times)."""
    total = count * 0.01
    simulation = run(
        protocol, "rounds=40", f"noise_shares={{sigma_k: {math.sqrt(total)}, tau: {tau}, tau_mode: vector}}"
    )
    measured, predicted = residuals(simulation)
    sharers = 9 if protocol == LEADER else 10
    assert np.allclose(predicted, sharers * total * tau**2)
    assert len(measured) == 40
    if tau == 0.0:
        assert measured.max() < 1e-28
    else:
        assert covers(measured, float(predicted[0]), spread=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["none", "omit", "correct"])
@pytest.mark.parametrize(("tau", "count", "lost"), [(0.0, 3, 1), (0.3, 6, 2), (1.0, 6, 5), (0.3, 4, 3), (0.0, 7, 4)])
def test_lost_peers_leave_what_the_formula_says(policy: str, tau: float, count: int, lost: int) -> None:
    """Spec C.3 in expectation over the partners; `omit` leaves out what senders left, `correct` leaves nothing."""
    simulation = lose(policy, lost, tau, count)
    measured, predicted = residuals(simulation)
    kept, unit = 10 - lost, 0.01
    both = unit * count * kept * (kept - 1) * tau**2 / 9
    one_lost = unit * count * kept * lost / 9
    expected = {
        "none": expected_residual_variance(10, count, unit, tau, lost),
        "omit": both + one_lost,
        "correct": both,
    }[policy]
    assert {one.contributors for one in simulation.sharing.share_log.residuals} == {kept}  # type: ignore[union-attr]
    assert predicted.mean() == pytest.approx(expected, rel=0.12, abs=1e-12)
    if expected == 0.0:
        assert measured.max() < 1e-12
    else:
        assert covers(measured, float(predicted.mean()), spread=3.0)


@pytest.mark.slow
@pytest.mark.parametrize("share_as", ["vector", "seed", "pairwise"])
@pytest.mark.parametrize("expansion", ["fast", "shake"])
def test_the_scalar_factor_has_the_same_mean(share_as: str, expansion: str) -> None:
    """As printed, one factor per share: a round's variance varies more, its mean is the same."""
    settings = f"{{sigma_k: 0.2, tau: 0.3, share_as: {share_as}, expansion: {expansion}}}"
    measured, predicted = residuals(run("rounds=60", f"noise_shares={settings}"))
    assert covers(measured, float(predicted[0]), spread=4.0)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["protocol.kind=central", LEADER])
@pytest.mark.parametrize("share_as", ["vector", "seed", "pairwise"])
def test_nothing_lost_and_tau_zero_is_no_noise(protocol: str, share_as: str) -> None:
    """The models equal those of the same run without noise shares to float accuracy, under real sealing too."""
    plain = run(protocol, "rounds=3", "noise_shares=none", "privacy={clip: {kind: flat, norm: 1.0}}")
    shared = run(
        protocol, "rounds=3", f"noise_shares={{sigma_k: 0.2, tau: 0, share_as: {share_as}}}", "anonymity.sealed=true"
    )
    for node in (*range(12), shared.world.server):
        assert plain.deferred_learning is not None
        assert shared.deferred_learning is not None
        difference = plain.deferred_learning.model(node).array() - shared.deferred_learning.model(node).array()
        assert np.abs(difference).max() < 3e-6


@pytest.mark.slow
def test_weights_by_records_sum_to_a_weighted_mean() -> None:
    """Uploads carry p_k = n_k / sum n; every share still cancels."""
    simulation = run(
        "data.split={kind: dirichlet, alpha: 1.0}",
        "noise_shares={sigma_k: 0.2, tau: 0, weights: records, records_public: true}",
    )
    assert simulation.sharing is not None
    uploads = simulation.sharing.share_log.uploads[1].values()
    assert sum(upload.weight for upload in uploads) == pytest.approx(1.0)
    assert len({upload.weight for upload in uploads}) > 1
    assert residuals(simulation)[0].max() < 1e-28


@pytest.mark.slow
def test_gossip_cancels_only_among_those_averaged_together() -> None:
    """When all are heard nothing remains; with some, partners drawn among co-recipients leave less than chance."""
    shares = "noise_shares={sigma_k: 0.2, tau: 0}"
    complete = "protocol={kind: gossip, train_per_round: 10, exchange_with: 9, deadline: 60 s}"
    assert residuals(run(complete, shares))[0].max() < 1e-28
    chance = residuals(run(GOSSIP, shares, "rounds=5"))
    chosen = residuals(run(GOSSIP, "noise_shares={sigma_k: 0.2, tau: 0, partners: co_recipients}", "rounds=5"))
    assert chosen[1].mean() < chance[1].mean()
    for measured, predicted in (chance, chosen):
        assert len(measured) == 50
        assert measured.mean() == pytest.approx(predicted.mean(), rel=0.25)
