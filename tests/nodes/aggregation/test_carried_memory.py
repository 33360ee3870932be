"""Momentum that leaders hand on, masks that go with models, and noise by the median, written out one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodes.aggregation.aggregator import Aggregator
from nodes.aggregation.settings import Aggregate, AggregateNoise
from nodes.learning.carried_memory import MemoryRules
from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.deferred_vectors import Vector
from nodes.learning.release_stages import ReleaseStages
from p2p.log.records import KIND
from p2p.random_streams import stream
from privacy.accounting.curves.gaussian import epsilon_of
from scenarios.accounting.round_contents import Aggregation
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.planning.plan import make_plan
from tests.nodes.aggregation.test_aggregate import LEADER, SMALL, models, run
from tests.nodes.learning.test_deferred_learning import Halver

Floats = NDArray[np.float64]
PLAIN = "privacy=none"


def by_round(*overrides: str) -> tuple[Simulation, dict[int, tuple[list[int], Floats]]]:
    """A run, and each round's contributors and what they released."""
    simulation = build(parse_scenario(SMALL, overrides=overrides), threads=1, listeners=[lambda row: take(row)])
    learning, found = simulation.deferred_learning, {}
    assert learning is not None

    def take(row: Mapping[str, Any]) -> None:
        number, table = int(row["round"]), simulation.log.aggregations
        used = table["contributor"][(table["round"] == number) & ~table["void"]].tolist()
        found[number] = used, learning.released(used, number).astype(np.float64)

    simulation.run()
    return simulation, found


def last_leader(simulation: Simulation) -> int:
    """The node that made the last aggregate."""
    return int(simulation.log.aggregations["aggregator"][-1])


@pytest.mark.slow
def test_leaders_go_on_with_the_momentum_of_the_one_before() -> None:
    """V <- beta V + (1 - beta) mean over all rounds, under any leader; the model is that of one aggregator."""
    simulation, found = by_round(LEADER, "aggregate={momentum: 0.6, step_size: 1.3}", "seed=9")
    learning = simulation.deferred_learning
    assert learning is not None
    model, momentum = learning.first_model().array().astype(np.float64), np.zeros(learning.dimension)
    for number in sorted(found):
        momentum = 0.6 * momentum + 0.4 * found[number][1].mean(axis=0)
        model = model - 1.3 * momentum
    assert len(set(simulation.log.aggregations["aggregator"].tolist())) > 1
    np.testing.assert_allclose(models(simulation)[last_leader(simulation)], model, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("learning", ["torch", "none"])
def test_what_goes_with_a_model_is_on_the_wire(learning: str) -> None:
    """Momentum doubles the numbers of every model that a leader hands out; a plan says the same."""
    sizes = {}
    for beta in (0.0, 0.5):
        done = run(LEADER, f"aggregate.momentum={beta}", f"learning={learning}")
        table = done.log.messages
        sizes[beta] = set(table["size_bytes"][table["kind"] == KIND["model"]].tolist())
        planned = make_plan(done.scenario)["bytes"]["total"]["by_kind"]
        assert planned["model"] == int(table["size_bytes"][table["kind"] == KIND["model"]].sum())
        assert planned["collect"] == int(table["size_bytes"][table["kind"] == KIND["collect"]].sum())
    dimension = 5 * 3 + 3
    assert sizes[0.5] == {size + 4 * dimension for size in sizes[0.0]}


@pytest.mark.slow
@pytest.mark.parametrize("sealed", ["true", "sizes"])
@pytest.mark.parametrize("protocol", ["protocol={kind: central, train_per_round: 4, deadline: 200 s}", LEADER])
def test_a_mask_is_the_largest_part_of_the_previous_noised_aggregate(sealed: str, protocol: str) -> None:
    """Round 1 sends all; from then on what the last step moved most, and nothing else."""
    stages = "update=[{kind: mask, rate: 0.3, by: last_aggregate, refresh: 3}, clip, {kind: gaussian, sigma: 0.01}]"
    simulation, found = by_round(PLAIN, protocol, stages, f"anonymity.sealed={sealed}", "rounds=6", "seed=9")
    dimension = found[1][1].shape[1]
    kept = math.ceil(0.3 * dimension)
    for number in sorted(found):
        sent = {tuple(np.flatnonzero(row).tolist()) for row in found[number][1]}
        if (number - 1) % 3 == 0:
            assert sent == {tuple(range(dimension))}
            continue
        step = found[number - 1][1].mean(axis=0)
        assert sent == {tuple(sorted(np.argsort(-np.abs(step))[:kept].tolist()))}
    table = simulation.log.messages
    planned = make_plan(simulation.scenario)["bytes"]["total"]["by_kind"]["model"]
    assert planned == int(table["size_bytes"][table["kind"] == KIND["model"]].sum())


def test_what_goes_with_a_model_comes_back_as_it_was() -> None:
    """The bytes are those declared, and a receiver reads model, momentum and mask from them."""
    rng = np.random.default_rng(3)
    values, momentum = rng.standard_normal((2, 21)).astype(np.float32)
    mask = (rng.random(21) < 0.4).astype(np.float32)
    rules = MemoryRules(momentum=True, handed_on=True, mask=5)
    attached = rules.blank(21)
    for name, array in (("momentum", momentum), ("mask", mask)):
        attached[name] = type(attached[name])(attached[name].wire, lambda array=array: array)  # type: ignore[misc]
    payload = Vector(21, lambda: values, attached=attached).payload()
    data = payload.to_bytes()
    assert len(data) == payload.size_bytes == 4 * 21 + 4 * 21 + 3
    back = payload.altered(data).value
    np.testing.assert_array_equal(back.array(), values)
    np.testing.assert_array_equal(back.attached["momentum"].find(), momentum)
    np.testing.assert_array_equal(back.attached["mask"].find(), mask)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["mean", "sum"])
def test_the_servers_noise_may_be_a_multiple_of_the_median_norm(on: str) -> None:
    """LCDP-FL: clip to the median of what arrived, weigh by records, keep momentum, then add 1.18 times the median."""
    noise = f"{{multiplier: 1.18, scale: cohort_median, on: {on}, when: after_momentum}}"
    update = "update=[{kind: top_k, rate: 0.5}, {kind: gaussian, multiplier: 2, scale: own_norm, per_record: true}, "
    simulation, found = by_round(
        PLAIN, update + "clip_cohort_median]", f"aggregate={{weights: records, momentum: 0.5, noise: {noise}}}"
    )
    learning = simulation.deferred_learning
    assert learning is not None
    records = simulation.samples_per_training / 2
    model, momentum = learning.first_model().array().astype(np.float64), np.zeros(learning.dimension)
    for number, (used, rows) in sorted(found.items()):
        norms = np.linalg.norm(rows, axis=1)
        median = float(np.median(norms))
        weights = records[used] / records[used].sum()
        momentum = 0.5 * momentum + 0.5 * weights @ (rows * np.minimum(1.0, median / norms)[:, None])
        drawn = stream(4, "aggregate noise", simulation.world.server, number, 0)
        drawn_noise = drawn.standard_normal(learning.dimension, dtype=np.float32).astype(np.float64)
        model = model - momentum - 1.18 * median / (len(used) if on == "sum" else 1) * drawn_noise
    np.testing.assert_allclose(models(simulation)[-1], model, rtol=1e-5, atol=5e-6)
    assert math.isinf(report_privacy(simulation)["rigorous"]["model"])


def test_noise_by_the_median_is_never_counted() -> None:
    """Its size depends on all updates, so that it proves nothing by itself."""
    settings_ = Aggregate(noise=AggregateNoise(multiplier=2.0, scale="cohort_median"))
    counted = Aggregation(Aggregator(settings=settings_, clip_norm=1.0), np.ones(3), 4)
    assert counted.mean_stds(np.array([2.0, 4.0])).tolist() == [0.0, 0.0]


def worst_mu2(momentum: Floats, moves: Floats, std: Floats, own: Floats) -> float:
    """What the released steps tell of one client at most, by trying all signs of its moves in one dimension.

    Steps are B (m + n) + z: B momentum, m the client's moves, n noise of clients' own, z the aggregator's.
    """
    covariance = momentum @ np.diag(own**2) @ momentum.T + np.diag(std**2)
    inverse = np.linalg.inv(covariance)
    signs = itertools.product([-1.0, 1.0], repeat=len(moves))
    return max(float((momentum @ (moves * sign)) @ inverse @ (momentum @ (moves * sign))) for sign in signs)


@settings(max_examples=200, deadline=None)
@given(
    beta=st.floats(0.01, 0.99),
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    on=st.sampled_from(["mean", "sum"]),
    takes_part=st.lists(st.booleans(), min_size=6, max_size=6),
    own=st.sampled_from([0.0, 0.3, 2.0]),
)
def test_noise_after_momentum_is_counted_by_no_less_than_it_tells(
    beta: float, counts: list[int], on: Any, takes_part: list[bool], own: float
) -> None:
    """Against brute force: the figure of noise that comes before momentum, of the largest mean, is a bound."""
    rounds = len(counts)
    when = AggregateNoise(sigma=0.7, on=on, when="after_momentum")
    aggregation = Aggregation(
        Aggregator(settings=Aggregate(momentum=beta, noise=when), clip_norm=1.0), np.ones(6), max(counts)
    )
    number = np.array(counts, dtype=np.float64)
    matrix = np.array([[(1 - beta) * beta ** (t - s) if s <= t else 0.0 for s in range(rounds)] for t in range(rounds)])
    moves = 2.0 / number * np.array(takes_part[:rounds])
    std, own_noise = 0.7 / (number if on == "sum" else np.ones(rounds)), own / np.sqrt(number)
    told = worst_mu2(matrix, moves, std, own_noise)
    counted = np.square(moves) / (np.square(aggregation.mean_stds(number)) + np.square(own_noise))
    assert counted.sum() >= told * (1.0 - 1e-9)


@pytest.mark.slow
def test_noise_after_momentum_proves_what_noise_before_it_proves() -> None:
    """With noise on the mean the figures are equal; the label says that they are bounds, and nothing is amplified."""
    told = {}
    for when in ("before_momentum", "after_momentum"):
        section = f"aggregate={{momentum: 0.7, noise: {{multiplier: 3, when: {when}}}}}"
        told[when] = report_privacy(run("privacy={clip: {kind: flat, norm: 0.5}}", section))["rigorous"]
    after = told["after_momentum"]
    times = 4  # a client takes part in every round at most
    assert after["model"] <= epsilon_of(math.sqrt(times) * (2 * 0.5 / 4) / (3 * 0.5), 1e-5) * (1 + 1e-9)
    assert told["before_momentum"]["model"] <= after["model"] < math.inf
    assert after["how"]["model"] == "bound"
    assert "after momentum" in after["because"]["model"]
    assert "after momentum" in after["no_amplification_because"]
    assert math.isinf(after["local"])


def test_a_model_under_way_keeps_what_goes_with_it_over_a_resume() -> None:
    """Its receiver goes on with the same momentum and mask, although the run was interrupted before it arrived."""

    def learning() -> DeferredLearning:
        rules = MemoryRules(momentum=True, handed_on=True, mask=1)
        aggregator = Aggregator(settings=Aggregate(momentum=0.5))
        return DeferredLearning(Halver(), 2, ReleaseStages(), 3, aggregator=aggregator, memory=rules)

    def lead(whose: DeferredLearning, node: int, number: int) -> None:
        whose.step(node, [Vector(whose.dimension, lambda: update)], round_number=number)

    whole, resumed = learning(), learning()
    update = np.arange(1, whole.dimension + 1, dtype=np.float32)
    lead(whole, 0, 1)
    sent, state = whole.model(0), whole.state()
    resumed.pause()
    lead(resumed, 0, 1)
    again = resumed.model(0)
    assert again.payload().size_bytes == sent.payload().size_bytes
    resumed.restore(state)
    for one, model in ((whole, sent), (resumed, again)):
        one.adopt(1, model)
        lead(one, 1, 2)
    np.testing.assert_array_equal(whole.state().models, resumed.state().models)
    for name, rows in whole.state().memory.items():
        np.testing.assert_array_equal(rows, resumed.state().memory[name])
        assert rows[1].any()
