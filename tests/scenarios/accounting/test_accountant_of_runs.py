"""The accountant against brute force over simulated worlds with faults, elections, shares, colluders and weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from p2p.config.errors import UserError
from privacy.accounting.curves.gaussian import epsilon_of
from scenarios.accounting.unaccounted import unaccounted_releases
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from tests.privacy.accounting import oracle
from tests.random_worlds import TIMES, troubled_worlds
from tests.scenarios.metrics.log_reading import RECEIVERS, rounds_of

pytestmark = pytest.mark.slow
WORLD = """
name: accounted
seed: 5
rounds: 2
clients: 6
learning: none
data: {name: synthetic, samples: 60, features: 4, classes: 2}
model: {kind: linear}
training: {epochs: 1}
protocol: {kind: gossip, train_per_round: 3, exchange_with: 2, deadline: 60 s}
network: {sharing: ideal, uplink: 1 kB/s, downlink: 1 kB/s, latency: 100 ms}
privacy: {clip: flat, noise: {kind: gaussian, sigma: 2}, colluders: [0, 1]}
"""
SHARES = st.builds(
    lambda std, ind, policy, form, partners: (
        f"noise_shares={{sigma_k: {std}, unit_variance: 0.5, tau: 0, tau_ind: {ind}, policy: {policy}, "
        f"share_as: {form}, when_short: {partners}}}"
    ),
    st.sampled_from([0.5, 1.5]),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from(["none", "none", "omit", "correct"]),
    st.sampled_from(["seed", "pairwise"]),
    st.sampled_from(["skip", "fill"]),
)
OFTEN = settings(max_examples=60 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
DELTA = 1e-5


def simulate(*overrides: str) -> Simulation:
    """Runs the world above; combinations that `peerveil check` refuses are left out."""
    try:
        scenario = parse_scenario(WORLD, overrides=overrides)
    except UserError:
        assume(False)
    simulation = build(scenario)
    simulation.run()
    return simulation


def without_privacy(world: list[str]) -> list[str]:
    """A world's overrides but for those of noise, which the world above has with colluders."""
    return [text for text in world if not text.startswith(("privacy=", "noise_shares="))]


def compare(simulation: Simulation) -> None:
    """Every view of the run equals what brute force over its tables says, to 1e-9."""
    found = simulation.observer.privacy.account(None)
    if unaccounted_releases(simulation.scenario, simulation.noise):
        assert found is None  # losses that leave with updates
        return
    assert found is not None
    views, world, clients = found[1].views(None), rounds_of(simulation), simulation.scenario.clients
    everyone = range(clients)
    if simulation.scenario.aggregate.noise_after_momentum:
        # Counted as if it came before momentum, with the least noise that any mean may have: a bound.
        outside = max(oracle.public_mu2(world, set(), u) for u in everyone)
        assert views.model.epsilon >= epsilon(outside) * (1.0 - 1e-9)
        return
    if simulation.topology == "gossip":
        seen, model = oracle.closures(world, clients)
        peers = [max(oracle.path_mu2(world, seen[v], {v}, u) for u in everyone) for v in everyone]
        team = max(oracle.path_mu2(world, seen[0] | seen[1], {0, 1}, u) for u in everyone)
        outside = max(oracle.path_mu2(world, model[v], set(), u) for v in everyone for u in everyone)
    else:
        peers = [max(oracle.public_mu2(world, {v}, u) for u in everyone) for v in everyone]
        team = max(oracle.public_mu2(world, {0, 1}, u) for u in everyone)
        outside = max(oracle.public_mu2(world, set(), u) for u in everyone)
    assert views.coalition is not None
    same(views.peer_worst.epsilon, max(peers))
    assert views.peer_median.epsilon == pytest.approx(np.median([epsilon(mu2) for mu2 in peers]), rel=1e-9)
    same(views.coalition.epsilon, team)
    same(views.model.epsilon, outside)
    if simulation.topology == "central":
        server = clients + 3
        same(views.receiver.epsilon, max(*peers, *(oracle.public_mu2(world, {server}, u) for u in everyone)))
    same(views.local.epsilon, max((sum(received(one, u) for one in world) for u in everyone), default=0.0))


def received(one: oracle.Round, target: int) -> float:
    """mu^2 of all receivers of a round together; an update that its leader kept is seen in the aggregate only."""
    rows = set(range(len(one.releases))) - one.kept
    inside = any(one.releases[row].client == target for row in one.kept)
    in_sums = oracle.mu2(one, [], set(), target, sums=True) if inside else 0.0
    return in_sums + oracle.mu2(one, rows, {RECEIVERS}, target, sums=False)


def epsilon(mu2: float) -> float:
    """Epsilon of a total mu^2."""
    return epsilon_of(math.sqrt(mu2), DELTA)


def same(found: float, mu2: float) -> None:
    """Both are infinite, or agree to 1e-9."""
    assert found == epsilon(mu2) or math.isclose(found, epsilon(mu2), rel_tol=1e-9)


@pytest.mark.soak
@OFTEN
@given(troubled_worlds())
def test_views_of_troubled_runs_equal_brute_force(world: list[str]) -> None:
    """Crashes, elections, intruders, duplicates, partitions: whatever reached anyone is counted."""
    compare(simulate(*without_privacy(world)))


@pytest.mark.soak
@OFTEN
@given(troubled_worlds(), SHARES)
def test_views_of_troubled_runs_with_shares_equal_brute_force(world: list[str], shares: str) -> None:
    """The same with shared noise: late shares, openings to several leaders, corrections, exchanges after a crash."""
    compare(simulate(*without_privacy(world), shares))
