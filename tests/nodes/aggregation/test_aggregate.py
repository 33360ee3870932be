"""Aggregation against the formulas written out, one client and one round at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodes.aggregation.aggregator import Aggregator, ServerStep, weigh
from nodes.aggregation.settings import Aggregate, AggregateNoise
from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.deferred_vectors import Vector
from nodes.learning.release_stages import ReleaseStages
from p2p.random_streams import stream
from privacy.accounting.curves.gaussian import epsilon_of
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.observing.observer import RoundListener
from scenarios.run_folder.digest import events_digest
from tests.nodes.learning.test_deferred_learning import Halver

SMALL = """
name: small
rounds: 4
clients: 6
seed: 4
data: {name: synthetic, samples: 130, test_samples: 60, features: 5, classes: 3, split: {kind: dirichlet, alpha: 1}}
model: {kind: linear}
training: {epochs: 2, batch_size: 10, learning_rate: 0.5}
protocol: {kind: central, train_per_round: 4, deadline: 200 s}
privacy: {clip: {kind: flat, norm: 0.5}, noise: {kind: gaussian, sigma: 0.01}}
"""
LEADER = "protocol={kind: rotating_leader, train_per_round: 4, deadline: 200 s}"
GOSSIP = "protocol={kind: gossip, train_per_round: 4, exchange_with: 2, deadline: 200 s}"
Floats = NDArray[np.float64]


def run(*overrides: str) -> Simulation:
    """A small run."""
    simulation = build(parse_scenario(SMALL, overrides=overrides), threads=1)
    simulation.run()
    return simulation


def loss_of(learning: DeferredLearning, node: int, number: int) -> float:
    """The loss that goes with a release."""
    loss = learning.release(node, number).loss
    assert loss is not None
    return loss()


def one_by_one(*overrides: str) -> tuple[Floats, Floats]:
    """The server's model of a run, and the same computed from its clients' updates as the formulas say."""
    simulation = build(parse_scenario(SMALL, overrides=overrides), threads=1, listeners=[lambda row: take(row)])
    learning, settings = simulation.deferred_learning, simulation.scenario.aggregate
    assert learning is not None
    records = simulation.samples_per_training / 2
    state = {"w": learning.first_model().array().astype(np.float64), "v": np.zeros(learning.dimension)}

    def take(row: Mapping[str, Any]) -> None:
        number = int(row["round"])
        cohort = simulation.records[number].cohort.tolist()
        updates = learning.released(cohort, number).astype(np.float64)
        n = np.array([records[node] for node in cohort])
        losses = np.array([loss_of(learning, node, number) for node in cohort]) if settings.sends_loss else None
        weights = {
            "uniform": np.full(len(cohort), 1 / len(cohort)),
            "records": n / n.sum(),
            "records_of_all": n / records.sum(),
            "loss_and_records": None
            if losses is None
            else (n * losses.sum() + n.sum() * losses) / (2 * n.sum() * losses.sum()),
        }[settings.weights]
        mean = weights @ updates
        noise: Floats = np.zeros(learning.dimension)
        if settings.noise is not None:
            std = (settings.noise.multiplier or 0.0) * 0.5 / (len(cohort) if settings.noise.on == "sum" else 1)
            server = simulation.world.server
            drawn = stream(4, "aggregate noise", server, number, 0)
            noise = std * drawn.standard_normal(learning.dimension, dtype=np.float32).astype(np.float64)
        before = settings.noise is None or settings.noise.when == "before_momentum"
        state["v"] = settings.momentum * state["v"] + (1 - settings.momentum) * (mean + noise * before)
        state["w"] = state["w"] - settings.step_size * (state["v"] + noise * (not before))

    simulation.run()
    return learning.state().models[-1].astype(np.float64), state["w"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "section",
    [
        "{weights: records}",
        "{weights: records_of_all, step_size: 1.5}",
        "{weights: loss_and_records}",
        "{momentum: 0.5}",
        "{momentum: 0.9, step_size: 0.5, weights: records}",
        "{noise: {multiplier: 0.1}}",
        "{noise: {multiplier: 0.1, on: sum}, momentum: 0.5}",
        "{noise: {multiplier: 0.1, when: after_momentum}, momentum: 0.5, weights: loss_and_records}",
    ],
)
def test_the_server_takes_the_stated_step(section: str) -> None:
    """Same seed: weights, momentum, noise and step size as written out above, to float tolerance."""
    found, expected = one_by_one(f"aggregate={section}")
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.slow
def test_defaults_change_nothing() -> None:
    """Momentum 0, step size 1 and uniform weights equal the system without them, to the bit and to the byte."""
    plain = run()
    stated = run("aggregate={weights: uniform, momentum: 0, step_size: 1}")
    assert events_digest(plain.log) == events_digest(stated.log)
    np.testing.assert_array_equal(models(plain), models(stated))


@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=9))
def test_momentum_zero_is_the_mean_to_the_bit(values: list[float]) -> None:
    """Also where the memory of earlier steps is not zero."""
    mean = np.array(values, dtype=np.float32)
    step = ServerStep(0.0, np.full(len(values), 7.0, dtype=np.float32), None, False, 1.0)
    np.testing.assert_array_equal(step.move(mean, slice(None)), mean)


def models(simulation: Simulation) -> Any:
    """All models at the end."""
    assert simulation.deferred_learning is not None
    return simulation.deferred_learning.state().models


NUMBERS = st.lists(st.tuples(st.integers(1, 600), st.floats(0.01, 5.0)), min_size=1, max_size=8)


@given(NUMBERS, st.integers(0, 4000))
def test_weights_are_those_of_the_papers(pairs: list[tuple[int, float]], others: int) -> None:
    """By records, by records of all clients (summing to what arrived of them), and (16) of DP-FedASGP."""
    n = [records for records, _ in pairs]
    losses = [loss for _, loss in pairs]
    shares = [records / (sum(n) + others) for records in n]
    assert weigh("records", shares, losses) == pytest.approx([one / sum(n) for one in n])
    assert sum(weigh("records_of_all", shares, losses)) == pytest.approx(sum(n) / (sum(n) + others))
    gamma = [(one * sum(losses) + sum(n) * loss) / (2 * sum(n) * sum(losses)) for one, loss in pairs]
    assert weigh("loss_and_records", shares, losses) == pytest.approx(gamma)


def test_the_weights_of_the_reference_values() -> None:
    """Four clients with 100, 300, 50 and 550 records and losses 2, 1, 3 and 0.5."""
    found = weigh("loss_and_records", [0.1, 0.3, 0.05, 0.55], [2.0, 1.0, 3.0, 0.5])
    assert found == pytest.approx([0.20384615, 0.22692308, 0.25576923, 0.31346154], rel=1e-7)


def test_a_loss_without_a_value_counts_as_none() -> None:
    """A diverged model must not take over the aggregate."""
    assert weigh("loss_and_records", [0.5, 0.5], [math.nan, 1.0]) == pytest.approx([0.25, 0.75])
    assert weigh("loss_and_records", [0.5, 0.5], [math.inf, math.nan]) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(("on", "expected"), [("mean", 3.0), ("sum", 3.0 / 5)])
def test_noise_has_the_stated_size_and_is_never_used_twice(on: Any, expected: float) -> None:
    """On the mean as given, on the sum divided by the updates; another round, node or repetition draws anew."""

    class Wide(Halver):
        dimension = 20_000

        def initial(self) -> Any:
            return np.zeros(self.dimension, dtype=np.float32)

    aggregator = Aggregator(settings=Aggregate(noise=AggregateNoise(multiplier=1.5, on=on)), clip_norm=2.0)
    learning = DeferredLearning(Wide(), 2, ReleaseStages(), 3, aggregator=aggregator)
    zero = Vector(20_000, lambda: np.zeros(20_000, dtype=np.float32))
    seen = []
    for node, number in ((2, 1), (2, 1), (2, 2), (0, 2)):
        before = learning.model(node).array().copy()
        learning.step(node, [zero] * 5, round_number=number)
        seen.append(learning.model(node).array() - before)
        assert float(seen[-1].std()) == pytest.approx(expected, rel=0.02)
    for one in range(4):
        for other in range(one):
            assert abs(np.corrcoef(seen[one], seen[other])[0, 1]) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["records", "loss_and_records"])
def test_every_member_of_gossip_is_an_aggregator(weights: str) -> None:
    """A member weighs what it received and its own by records (and losses), as a server does."""
    listeners: list[RoundListener] = []
    scenario = parse_scenario(SMALL, overrides=[GOSSIP, f"aggregate.weights={weights}", "rounds=1"])
    simulation = build(scenario, threads=1, listeners=listeners)
    learning = simulation.deferred_learning
    assert learning is not None
    first, records = learning.first_model().array().astype(np.float64), simulation.samples_per_training / 2
    expected: dict[int, Floats] = {}

    def take(row: Mapping[str, Any]) -> None:
        table = simulation.log.aggregations
        for node in set(table["aggregator"].tolist()):
            used = table["contributor"][table["aggregator"] == node].tolist()
            n = np.array([records[one] for one in used])
            factors = n / n.sum()
            if weights == "loss_and_records":
                told = np.array([loss_of(learning, one, 1) for one in used])
                factors = 0.5 * (factors + told / told.sum())
            expected[node] = first - factors @ learning.released(used, 1).astype(np.float64)

    listeners.append(take)
    simulation.run()
    assert len(expected) == 4
    for node, model in expected.items():
        np.testing.assert_allclose(models(simulation)[node], model, atol=2e-6)


@pytest.mark.slow
def test_numbers_that_go_with_updates_are_counted() -> None:
    """Eight bytes for a loss in every update; eight for each record share that the server is told."""
    sizes = {}
    for weights in ("uniform", "records", "loss_and_records"):
        table = run(f"aggregate.weights={weights}", "rounds=1").log.messages
        kinds = [table["size_bytes"][(table["round"] == 1) & (table["kind"] == kind)].sum() for kind in range(8)]
        sizes[weights] = np.array(kinds)
    from p2p.log.records import KIND

    more, most = sizes["records"] - sizes["uniform"], sizes["loss_and_records"] - sizes["records"]
    assert (more[KIND["control"]], more.sum()) == (8 * 4, 8 * 4)
    assert (most[KIND["update"]], most.sum()) == (8 * 4, 8 * 4)


def test_a_vector_with_a_loss_comes_back_as_it_was() -> None:
    """What is encoded has the stated size, and the receiver reads vector and loss from it."""
    values = np.array([1.5, -2.0, 0.25], dtype=np.float32)
    payload = Vector(3, lambda: values, loss=lambda: 0.7).payload()
    data = payload.to_bytes()
    assert len(data) == payload.size_bytes == 3 * 4 + 8
    back = payload.altered(data).value
    np.testing.assert_array_equal(back.array(), values)
    assert back.loss() == 0.7


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [(), (LEADER,)], ids=["server", "leader"])
def test_noise_on_the_aggregate_alone_protects_from_no_receiver(overrides: tuple[str, ...]) -> None:
    """`local` and `receiver` stay infinite and say why; who sees models only has mu = 2C/k over the noise per round."""
    section = "aggregate.noise={multiplier: 3, on: mean}"
    privacy = "privacy={clip: {kind: flat, norm: 0.5}}"
    everyone = ("protocol.train_per_round=6", "rounds=3")
    found = report_privacy(run(*overrides, *everyone, privacy, section))["rigorous"]
    assert math.isinf(found["local"])
    assert math.isinf(found["receiver"])
    assert found["because"]["local"] == "noise is added to the aggregate only: updates leave their clients without any"
    mu = math.sqrt(3) * (2 * 0.5 / 6) / (3 * 0.5)
    assert found["model"] == pytest.approx(epsilon_of(mu, 1e-5), rel=1e-9)


@pytest.mark.slow
def test_weights_enter_the_proof() -> None:
    """A client with most of the records moves a weighted mean further; model mu^2 is that of its weight."""
    simulation = run("aggregate={weights: records, noise: {sigma: 2}}", "protocol.train_per_round=6", "rounds=1")
    records = simulation.samples_per_training / 2
    weights = records / records.sum()
    variance = 0.01**2 * float(weights @ weights) + 2.0**2
    mu = 2 * 0.5 * float(weights.max()) / math.sqrt(variance)
    assert report_privacy(simulation)["rigorous"]["model"] == pytest.approx(epsilon_of(mu, 1e-5), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("{weights: loss_and_records, noise: {sigma: 2}}", "training losses"),
    ],
)
def test_what_is_not_charged_proves_nothing(section: str, reason: str) -> None:
    """Losses in the clear make every figure infinite by name."""
    found = report_privacy(run(f"aggregate={section}", "rounds=1"))["rigorous"]
    assert all(math.isinf(found[view]) for view in ("local", "receiver", "model"))
    assert reason in found["because"]["model"]


@pytest.mark.slow
def test_momentum_of_released_means_costs_nothing() -> None:
    """Noise before momentum: the figures are those without momentum."""
    figures = [
        report_privacy(run(f"aggregate={{momentum: {beta}, noise: {{sigma: 2}}}}"))["rigorous"] for beta in (0, 0.7)
    ]
    assert figures[0] == figures[1]
