"""The `noise_shares` section: what it accepts, how tau and sigma follow, and what it refuses with an explanation."""

from __future__ import annotations

import math

import pytest

from p2p.config.errors import UserError
from privacy.noise_shares.settings import NoiseShares
from scenarios.loading.load import dump_scenario, parse_scenario

WORLD = """
name: shares
rounds: 1
clients: 12
data: {name: synthetic, samples: 240, features: 4, classes: 2}
model: {kind: linear}
protocol: {kind: rotating_leader, train_per_round: 10, deadline: 60 s}
privacy: {clip: {kind: flat, norm: 1.0}, delta: 1.0e-4}
noise_shares: {epsilon: 10, tau: 0.3}
"""


def refused(*overrides: str) -> str:
    """What the loader says to the world above with these overrides."""
    with pytest.raises(UserError) as error:
        parse_scenario(WORLD, overrides=overrides)
    return str(error.value)


def test_the_section_survives_a_round_trip() -> None:
    """Also with lists, groups and durations."""
    text = "noise_shares={sigma_k: 0.1, rho: 0.7, rho_by: quantile, coalitions: [0-3, [4, 5]], deadline: 20 s}"
    scenario = parse_scenario(WORLD, overrides=[text])
    assert scenario.noise_shares is not None
    assert scenario.noise_shares.coalitions == ("0-3", (4, 5))
    assert parse_scenario(dump_scenario(scenario)) == scenario


def test_tau_from_the_feared_share_of_colluders() -> None:
    """Theorem 3 takes rho as it is; a quantile fears more, and never less."""
    plain = NoiseShares(sigma_k=0.1, rho=0.8)
    assert plain.tau_against(99, 7) == pytest.approx(math.sqrt(0.6))
    assert NoiseShares(sigma_k=0.1, rho=0.4).tau_against(99, 7) == 0.0
    careful = NoiseShares(sigma_k=0.1, rho=0.4, rho_by="quantile", quantile=0.95)
    assert careful.tau_against(99, 7) == pytest.approx(math.sqrt(2 * 5 / 7 - 1))
    assert NoiseShares(sigma_k=0.1, tau=0.3).tau_against(99, 7) == 0.3


def test_sigma_by_either_formula() -> None:
    """Classic as the paper has it (0.434 at epsilon 10, delta 1e-4), analytic exactly; per client where given so."""
    assert NoiseShares(epsilon=10.0, formula="published").per_sensitivity(0, 1e-4) == pytest.approx(0.434, abs=5e-4)
    assert NoiseShares(epsilon=10.0).per_sensitivity(0, 1e-4) != pytest.approx(0.434, abs=5e-4)
    several = NoiseShares(epsilon=(5.0, 10.0), formula="published")
    first, second = (several.per_sensitivity(client, 1e-4) or 0.0 for client in (0, 1))
    assert first == pytest.approx(2 * second)
    assert NoiseShares(sigma_k=(0.1, 0.2)).given_sigma(1) == 0.2


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("noise_shares={tau: 0}", "exactly one of `epsilon` and `sigma_k`"),
        ("noise_shares={epsilon: 1, sigma_k: 1}", "exactly one of `epsilon` and `sigma_k`"),
        ("noise_shares={epsilon: 1, tau: 0.1, rho: 0.5}", "keep one of them"),
        ("noise_shares={epsilon: 1, deadline: 60 s}", "must be < protocol.deadline"),
        ("noise_shares={epsilon: 1, coalitions: [0-20]}", "there are clients 0 to 11"),
        ("noise_shares={epsilon: 1, coalitions: [0-5, 4-6]}", "client 4 is in two coalitions"),
        ("noise_shares={sigma_k: [0.1, 0.2]}", "has 2 numbers for 12 clients"),
        ("noise_shares={epsilon: 1, partners: co_recipients}", "is for gossip"),
        ("noise_shares={epsilon: 1, share_as: pairwise, weights: records}", "use `seed`"),
        ("privacy=none", "needs bounded updates"),
        ("protocol.train_per_round=2", "a leader is no member's partner"),
        ("privacy.noise={kind: gaussian, calibrate: {kind: rigorous, epsilon: 8}}", "noise that cancels as privacy"),
        ("privacy.noise={kind: gaussian, calibrate: {kind: dp_fedavg, epsilon: 8}}", ""),
    ],
)
def test_refusals_explain_themselves(override: str, told: str) -> None:
    """One line each, with the rule and the cure; published calibrations by themselves are none of its business."""
    if told:
        assert told in refused(override)
    else:
        assert parse_scenario(WORLD, overrides=[override]).noise_shares is not None


def test_counting_cancelled_noise_is_refused_unless_published_only() -> None:
    """A rigorous budget over a published calibration counts; a published one only compares."""
    noise = "privacy.noise={kind: gaussian, calibrate: {kind: adpdfl, epsilon: 8}}"
    assert "noise that cancels" in refused(noise, "privacy.budget={by: rigorous, epsilon: 8}")
    assert parse_scenario(WORLD, overrides=[noise, "privacy.budget={by: published}"]).noise_shares is not None
    given = ["privacy.noise={kind: gaussian, sigma: 0.5}", "privacy.budget={by: rigorous, epsilon: 8}"]
    assert "noise that cancels" in refused(*given)


def test_gossip_and_keys_set_limits() -> None:
    """No corrections and no weights by records without one sum; no agreed keys without keys."""
    gossip = "protocol={kind: gossip, train_per_round: 10, exchange_with: 6, deadline: 60 s}"
    assert "missing at one peer has reached another" in refused(gossip, "noise_shares.policy=correct")
    assert "use `equal`" in refused(gossip, "noise_shares.weights=records")
    assert "needs keys" in refused("anonymity.sealed=false", "noise_shares.share_as=pairwise")
