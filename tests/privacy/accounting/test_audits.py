"""Audits: no sampled attack refutes a figure, and figures that were too small once are refuted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privacy.accounting.accountant import Accountant
from privacy.accounting.content_log import RoundContents
from privacy.accounting.curves.fixed_size_sampling import model_epsilon
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.sampling_premises import Amplification, Draw
from privacy.accounting.setting import Setting
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from tests.privacy.accounting.audit import lower_epsilon, observed_scores
from tests.privacy.accounting.oracle import Release, Round, closures
from tests.scenarios.metrics.log_reading import rounds_of

pytestmark = pytest.mark.slow
Vector = NDArray[np.float32]
DELTA, TRIALS = 1e-5, 40_000
WORLD = """
name: audited
seed: 3
rounds: 1
clients: 8
learning: none
data: {name: synthetic, samples: 80, features: 4, classes: 2}
model: {kind: linear}
training: {epochs: 1}
protocol: {kind: central, train_per_round: 8, deadline: 60 s}
network: {sharing: ideal, uplink: 1 MB/s, downlink: 1 MB/s, latency: 100 ms}
privacy: {clip: flat, noise: {kind: gaussian, sigma: 1}}
"""
SHARED = ["privacy={clip: flat}", "noise_shares={sigma_k: 0.5, unit_variance: 0.05, tau: 0, tau_ind: 0.1}"]
LEADER = "protocol={kind: rotating_leader, train_per_round: 8, deadline: 60 s}"
GOSSIP = "protocol={kind: gossip, train_per_round: 8, exchange_with: 3, deadline: 60 s}"
CRASH = "faults=[{kind: crash, who: 4, round: 1, phase: send}]"
CASES = {
    "central": [],
    "central, shares": SHARED,
    "leader": [LEADER],
    "leader, shares": [LEADER, *SHARED],
    "leader, lost partners corrected": [LEADER, SHARED[0], SHARED[1][:-1] + ", policy: correct}", CRASH],
    "gossip": [GOSSIP],
    "gossip, shares": [GOSSIP, *SHARED],
}  # fmt: skip


def simulate(*overrides: str) -> Simulation:
    """Events happen once; noise is drawn as often as an audit wants."""
    simulation = build(parse_scenario(WORLD, overrides=overrides), threads=1)
    simulation.run()
    return simulation


@pytest.mark.parametrize("case", CASES)
def test_no_audit_refutes_a_figure(case: str) -> None:
    """The best single peer, the server and the outsider, each against the best projection of what it saw."""
    simulation = simulate(*CASES[case])
    found = simulation.observer.privacy.account(None)
    assert found is not None
    views, (one,) = found[1].views(None), rounds_of(simulation)
    public = simulation.topology != "gossip"
    rng = np.random.default_rng(7)
    seen = closures([one], simulation.scenario.clients)[0]
    receivers = {node for node, _ in one.received}
    for node in [max(receivers), 1]:
        direct = {row for observer, row in one.received if observer == node}
        rows = sorted(direct if public else {row for _, row in seen[node]})
        target = next(u for u in (2, 0) if u != node)
        scores = observed_scores(one, rows, {node}, target, sums=public, trials=TRIALS, rng=rng)
        figure = views.receiver if node >= simulation.scenario.clients else views.peer_worst
        assert lower_epsilon(*scores, DELTA) <= figure.epsilon
    if public:
        scores = observed_scores(one, [], set(), 2, sums=True, trials=TRIALS, rng=rng)
        assert 0.0 < lower_epsilon(*scores, DELTA) <= views.model.epsilon


def test_sums_taken_as_equally_weighted_are_refuted() -> None:
    """Weights by records: if each client's noise is scaled up by its weight and then averaged, an audit proves more."""
    shares = "noise_shares={sigma_k: 0.5, unit_variance: 0.05, tau: 0, tau_ind: 0.05, weights: records"
    data = "data={name: digits, split: {kind: dirichlet, alpha: 0.1}}"
    simulation = simulate(
        "clients=10",
        "learning=torch",
        data,
        "protocol.train_per_round=10",
        SHARED[0],
        f"{shares}, records_public: true}}",
    )
    found = simulation.observer.privacy.account(None)
    assert found is not None
    (one,) = rounds_of(simulation)
    heaviest = max(one.releases, key=lambda release: release.sensitivity).client
    scores = observed_scores(one, [], set(), heaviest, sums=True, trials=TRIALS, rng=np.random.default_rng(1))
    weights = np.array([release.sensitivity / 2.0 for release in one.releases])
    mutant = epsilon_of(2.0 / math.sqrt(np.square(0.05 / weights).sum()), DELTA)
    assert mutant == pytest.approx(0.179, abs=0.005)
    assert 1.15 < lower_epsilon(*scores, DELTA) <= found[0].model.epsilon


def test_amplification_with_unequal_noise_is_refuted() -> None:
    """A client with a quarter of the noise of others: the spread of a mean's coordinates tells whether it was drawn."""
    clients, cohort, loud, others, trials = 20, 2, 1.4, 49, 2_000_000
    quiet = 1.0 + 1.0 / 16.0
    rng = np.random.default_rng(5)
    scores = []
    for move in (0.0, 1.0):
        drawn = rng.random(trials) < cohort / clients
        variance = np.where(drawn, loud**2 * quiet, loud**2 * 2.0)
        first = np.sqrt(variance) * rng.standard_normal(trials) + move * drawn
        spread = variance * rng.chisquare(others, trials) / others
        scores.append(np.where(spread < loud**2 * 1.1, first, -100.0))
    audited = lower_epsilon(scores[0], scores[1], DELTA)
    # The mutant takes the noise of whatever cohort was drawn, and amplifies.
    mutant = model_epsilon([cohort / clients], [math.sqrt(2.0) * loud], DELTA)
    assert mutant < audited <= epsilon_of(1.0 / (math.sqrt(quiet) * loud), DELTA)
    stds = np.full(clients, loud)
    stds[0] = loud / 4
    amplification = Amplification()
    amplification.add(_means(np.array([0, 5]), stds), Draw(cohort / clients, cohort))
    assert "noise or weights differ" in amplification.why_not


def _means(members: NDArray[np.int64], stds: NDArray[np.float64]) -> RoundContents:
    return RoundContents(
        round_number=1,
        clients=members,
        sensitivity=np.ones(len(members)),
        variance=np.square(stds[members]),
        sums=np.ones((1, len(members))),
    )


def test_the_trap_training_is_not_linear() -> None:
    """A neighbour answers with the sign of what it received: an audit beats the linear view over rounds, not ours.

    Client 0 sends x + z to client 1, which mixes it in with weight 0.01, trains, and sends C sign(.) + z to client 2.
    """
    rng, trials = np.random.default_rng(3), 100_000
    scores = []
    for x in (-1.0, 1.0):
        received = 0.01 * (x + rng.standard_normal(trials))
        scores.append(np.sign(received) + rng.standard_normal(trials))
    audited = lower_epsilon(scores[0], scores[1], DELTA)
    linear = epsilon_of(0.01 * 2.0 / math.hypot(0.01, 1.0), DELTA)
    told = Accountant(Setting(clients=3, spread="by_path", delta=DELTA, rounds=2))
    for number, (sender, receiver) in enumerate([(0, 1), (1, 2)]):
        one = _means(np.array([sender]), np.ones(3))
        edge = np.array([[receiver, 0]])
        told.add(replace(one, round_number=number + 1, sensitivity=np.full(1, 2.0), receipts=edge, used=edge[:, ::-1]))
    ours = told.views().peer_worst
    assert linear < 0.1 < 0.7 < audited < ours.epsilon
    assert ours.how == "bound"
    assert ours.epsilon == pytest.approx(epsilon_of(2.0, DELTA))


def test_late_means_are_refuted_if_they_are_left_out() -> None:
    """Two overlapping means of a round, one of them void: their difference shows one update."""
    one = Round(
        releases=[Release(row, 1.0, {("own", row): 1.0}) for row in range(5)],
        variances={("own", row): 1.0 for row in range(5)},
        sums=[([0, 1, 2, 3, 4], {}), ([0, 1, 2, 3], {})],
    )
    scores = observed_scores(one, [], set(), 4, sums=True, trials=TRIALS, rng=np.random.default_rng(2))
    single = epsilon_of(0.5 / math.sqrt(5), DELTA)  # at half the move, which an audit of this size tells from 1
    contents = RoundContents(
        round_number=1, clients=np.arange(5), sensitivity=np.ones(5), variance=np.ones(5),
        sums=np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0.0]]),
    )  # fmt: skip
    told = Accountant(Setting(clients=5, spread="to_all", delta=DELTA, rounds=1))
    told.add(contents)
    assert told.views().model.epsilon == pytest.approx(epsilon_of(1.0, DELTA))
    assert single < lower_epsilon(*scores, DELTA) <= told.views().model.epsilon


def test_an_end_to_end_audit_of_real_training() -> None:
    """Two neighbouring data sets, trained for real, noise drawn anew: the server's and the outsider's figures hold.

    Only the noise has another seed; events, batches and all other draws stay.
    """
    update, _, _ = trained_once(0, swapped=False, sigma=1e-6)
    direction = update / np.linalg.norm(update)
    runs = [[trained_once(2 * seed + side, swapped=bool(side)) for seed in range(60)] for side in (0, 1)]
    for seen, figure in enumerate(runs[0][0][2]):
        without, with_it = (np.array([float(run[seen] @ direction) for run in side]) for side in runs)
        # The two inputs are told apart, by the server almost surely: the audit has something to refute.
        assert abs(without.mean() - with_it.mean()) > (0.1 if seen == 0 else 0.02)
        assert lower_epsilon(without, with_it, DELTA) <= figure


def trained_once(noise_seed: int, *, swapped: bool, sigma: float = 0.1) -> tuple[Vector, Vector, tuple[float, float]]:
    """The update of client 0, the server's model, and the figures of server and outsider in one real run."""
    kept: list[Vector] = []
    simulations: list[Simulation] = []

    def keep(row: Mapping[str, Any]) -> None:
        learning = simulations[0].deferred_learning
        assert learning is not None
        kept.append(learning.released([0], 1)[0].copy())

    changes = ["learning=torch", "clients=4", "data.samples=40", "protocol.train_per_round=4", "evaluation.every=1000"]
    scenario = parse_scenario(
        WORLD,
        overrides=[
            *changes,
            "training={epochs: 5, learning_rate: 1.0}",
            f"privacy={{clip: {{kind: flat, norm: 0.1}}, noise: {{kind: gaussian, sigma: {sigma}}}}}",
        ],
    )
    simulation = build(scenario, threads=1, listeners=[keep])
    simulations.append(simulation)
    learning, learner = simulation.deferred_learning, simulation.learner
    assert learning is not None
    assert learner is not None
    learning._seed = noise_seed
    if swapped:
        learner._train.records[learner._shards[0]] *= -1.0
    simulation.run()
    account = simulation.observer.privacy.account(None)
    assert account is not None
    model = -learning.model(simulation.world.server).array()
    return kept[0], model, (account[0].receiver.epsilon, account[0].model.epsilon)
