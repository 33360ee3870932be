"""What a run with noise shares says it protects, and what it lists as not accounted for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from p2p.config.errors import UserError
from scenarios.loading.load import parse_scenario
from scenarios.metrics.headline.headline_rows import headline_rows
from scenarios.running.run import run_scenario

pytestmark = pytest.mark.slow
WORLD = """
name: shares
seed: 5
rounds: 3
clients: 10
data: {name: synthetic, samples: 200, features: 4, classes: 2}
model: {kind: linear}
training: {epochs: 1}
compute: 20 samples/s
protocol: {kind: central, train_per_round: 10, deadline: 20 s}
anonymity: {sealed: sizes}
network: {sharing: ideal, uplink: 1 MB/s, downlink: 1 MB/s, latency: 100 ms}
privacy: {clip: {kind: flat, norm: 3.0}, delta: 1.0e-4}
noise_shares: {epsilon: 10, formula: published, tau: 0}
"""


def summary_of(tmp_path: Path, *overrides: str) -> dict[str, Any]:
    """The summary of the world above, run with these overrides."""
    return run_scenario(parse_scenario(WORLD, overrides=overrides), tmp_path / "run", threads=1)[0]


def test_perfect_offset_is_no_privacy(tmp_path: Path) -> None:
    """Published speaks of one upload alone; the joint view is infinite, and the reason is told."""
    summary = summary_of(tmp_path)
    privacy = summary["privacy"]
    assert privacy["published"]["epsilon"] == pytest.approx(5.0)
    assert privacy["noise_shares"]["marginal"]["classic_over_sqrt2"] == pytest.approx(10 / math.sqrt(2))
    assert privacy["rigorous"]["local"] == privacy["noise_shares"]["joint"]["composed"] == math.inf
    assert "shares cancel" in privacy["why_infinite"]
    assert summary["noise_shares"]["residual_variance"] < 1e-28
    told = dict(headline_rows(summary))
    assert "measured" in told["residual noise"]
    assert "of what vectors cost" in told["noise shares"]
    assert "inf" in told["joint view"]


def test_residual_noise_is_what_protects(tmp_path: Path) -> None:
    """With tau the sum is protected with a tail bound on the factors; an observer of all uploads is not bounded."""
    summary = summary_of(tmp_path, "noise_shares={epsilon: 10, tau: 1, tau_mode: vector}", "privacy.colluders=[0, 1]")
    rigorous, joint = summary["privacy"]["rigorous"], summary["privacy"]["noise_shares"]["joint"]
    assert rigorous["model"] <= rigorous["peer"]["worst"] <= rigorous["coalition"] == joint["with_colluders"] < math.inf
    assert rigorous["how"] | {"coalition": "bound"} == {"local": "inf", "receiver": "inf"} | dict.fromkeys(
        ("peer", "model", "coalition"), "bound"
    )
    assert "tau > 0" in rigorous["because"]["local"]
    assert "tail bound" in rigorous["because"]["model"]


def test_independent_noise_makes_a_mask_private(tmp_path: Path) -> None:
    """niss-plus: large shares, and the joint view is nearly that of the sum of all independent noises."""
    plus = "noise_shares={sigma_k: 5.0, unit_variance: 4.0, tau: 0, tau_ind: 0.5}"
    rigorous = summary_of(tmp_path, plus)["privacy"]["rigorous"]
    assert rigorous["model"] <= rigorous["local"] <= 1.1 * rigorous["model"] < math.inf


@pytest.mark.parametrize(
    ("shares", "listed"),
    [
        ("{sigma_k: 0.2, tau: 1, weights: records}", "record counts"),
        ("{sigma_k: [0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.2], tau: 1, unequal: list}", "sigma_k"),
    ],
)
def test_what_is_not_accounted_for_is_listed(tmp_path: Path, shares: str, listed: str) -> None:
    """And makes every proof void."""
    rigorous = summary_of(tmp_path, f"noise_shares={shares}")["privacy"]["rigorous"]
    assert any(listed in item for item in rigorous["unaccounted_releases"])
    assert rigorous["local"] == rigorous["model"] == rigorous["peer"]["worst"] == math.inf


def test_gossip_tells_every_aggregation(tmp_path: Path) -> None:
    """One residual for each peer and round; each receiver is an observer that knows its own shares."""
    summary = summary_of(
        tmp_path,
        "protocol={kind: gossip, train_per_round: 10, exchange_with: 5, deadline: 20 s}",
        "noise_shares={sigma_k: 0.2, tau: 0, tau_ind: 0.1}",
    )
    shares = summary["noise_shares"]
    assert shares["aggregations"] == len(shares["residuals"]) == 30
    assert summary["privacy"]["rigorous"]["peer"]["worst"] < math.inf
    assert summary["privacy"]["rigorous"]["peer"]["median"] <= summary["privacy"]["rigorous"]["peer"]["worst"]


def _stop(row: Any) -> None:
    if row["round"] == 1:
        raise KeyboardInterrupt


@pytest.mark.parametrize("share_as", ["seed", "vector"])
def test_a_resumed_run_ends_as_if_nothing_had_happened(tmp_path: Path, share_as: str) -> None:
    """Seeds are drawn by name, so noise is the same; agreed keys are other ones, and that is refused."""
    scenario = parse_scenario(WORLD, overrides=[f"noise_shares={{epsilon: 10, tau: 0.5, share_as: {share_as}}}"])
    whole = run_scenario(scenario, tmp_path / "whole", threads=1)[0]
    run_scenario(scenario, tmp_path / "run", threads=1, listeners=[_stop])
    again = run_scenario(scenario, tmp_path / "run", threads=1, resume=True)[0]
    for key in ("digest", "noise_shares", "privacy"):
        assert again[key] == whole[key]
    agreed = parse_scenario(WORLD, overrides=["noise_shares.share_as=pairwise"])
    with pytest.raises(UserError, match="has other keys"):
        run_scenario(agreed, tmp_path / "agreed", threads=1, resume=True)
