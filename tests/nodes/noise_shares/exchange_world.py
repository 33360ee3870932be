"""A small world with an exchange of noise shares, and what its log says about the noise that remains."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import chi2

from p2p.clock import Rank
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario

WORLD = """
name: shares
seed: 5
rounds: 1
clients: 12
data: {name: synthetic, samples: 240, features: 4, classes: 2}
model: {kind: linear}
training: {epochs: 1}
compute: 20 samples/s
evaluation: {every: 1000}
protocol: {kind: central, train_per_round: 10, deadline: 60 s}
anonymity: {sealed: sizes}
network: {sharing: ideal, uplink: 1 MB/s, downlink: 1 MB/s, latency: 100 ms}
privacy: {clip: {kind: flat, norm: 1.0}, delta: 1.0e-4}
noise_shares: {sigma_k: 0.2, unit_variance: 0.01, tau: 0.3}
"""
LEADER = "protocol={kind: rotating_leader, train_per_round: 10, deadline: 60 s}"
GOSSIP = "protocol={kind: gossip, train_per_round: 10, exchange_with: 6, deadline: 60 s}"
DIMENSION = 10
Rows = Callable[..., list[dict[str, Any]]]


def run(*overrides: str) -> Simulation:
    """The world above, run to its end."""
    simulation = build(parse_scenario(WORLD, overrides=overrides), threads=1)
    simulation.run()
    return simulation


def residuals(simulation: Simulation) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Measured and predicted variance of every aggregation."""
    assert simulation.sharing is not None
    found = simulation.sharing.share_log.residuals
    return np.array([one.measured for one in found]), np.array([one.predicted for one in found])


def covers(measured: np.ndarray[Any, Any], predicted: float, spread: float = 1.0) -> bool:
    """Whether the mean of independent variances is within its 99.9% interval; `spread` for heavier tails."""
    degrees = len(measured) * DIMENSION / spread
    low, high = chi2.ppf([0.0005, 0.9995], degrees) / degrees
    return bool(low * predicted <= measured.mean() <= high * predicted)


def lose(policy: str, lost: int, tau: float, count: int, mode: str = "vector") -> Simulation:
    """Rounds in which so many members are lost after the exchange and before their upload."""
    settings = (
        f"{{sigma_k: {math.sqrt(count * 0.01)}, unit_variance: 0.01, tau: {tau}, tau_mode: {mode}, policy: {policy}}}"
    )
    rounds = 30
    simulation = build(
        parse_scenario(
            WORLD,
            overrides=[
                f"rounds={rounds}",
                "clients=10",
                "data.samples=200",
                "protocol.deadline=10 s",
                "protocol.min_updates=0",
                f"noise_shares={settings}",
            ],
        ),
        threads=1,
    )
    for number in range(1, rounds + 1):
        for node in range(lost):
            _lose_in(simulation, (node + number) % 10, number, policy)
    simulation.run()
    return simulation


def _lose_in(simulation: Simulation, node: int, round_number: int, policy: str) -> None:
    """Crashes a node in the middle of a round's share phase, or with its upload still on the way."""
    phase, delay_s = ("share", 2.0) if policy == "omit" else ("send", 0.0)

    def watch(who: int, number: int, reached: str) -> None:
        if (who, number, reached) == (node, round_number, phase):
            at_s = simulation.clock.now + delay_s
            simulation.clock.call_at(at_s, Rank.FAULT, 0, lambda: simulation.supervisor.crash(node))
            simulation.clock.call_at(at_s + 11.0, Rank.FAULT, 0, lambda: simulation.supervisor.recover(node))

    simulation.world.phase_hooks.listeners.append(watch)
