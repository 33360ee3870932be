"""Gossip over named graphs: who sends to whom, with which weight, and how fast members come to agree."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.deferred_vectors import Vector
from p2p.log.records import DROPOUT_REASONS
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.loading.load import parse_scenario
from scenarios.metrics.privacy.privacy_report import report_privacy
from topologies.mixing import metropolis_weights, second_eigenvalue, uniform_weights

SCENARIO = """
name: graphs
seed: 5
rounds: 4
clients: 16
data: {name: synthetic, samples: 320, test_samples: 20, features: 4, classes: 3}
model: linear
training: {epochs: 1, batch_size: 10, learning_rate: 0.2}
evaluation: {every: 10}
protocol: {kind: gossip, train_per_round: 16, graph: ring, redraw: never}
"""
STILL = "training.learning_rate=1e-30"
"""Training that moves nothing, so that only mixing does."""
LOCAL = "protocol={kind: gossip, train_per_round: 16, graph: ring, redraw: never, exchange: model, min_updates: 9}"
"""No member has nine neighbours, so models are those after the local step alone."""


class Models:
    """Reads every client's model after each round; before the first mixing it sets them to given rows."""

    def __init__(self, start: Any = None) -> None:
        self.simulation: Simulation | None = None
        self.after: list[Any] = []
        self._start = start

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Called when a round has closed."""
        assert self.simulation is not None
        learning = self.simulation.learning
        if not isinstance(learning, DeferredLearning):
            return
        if self._start is not None and not self.after:
            for node, model in enumerate(self._start):
                learning.adopt(node, Vector(len(model), lambda model=model: model))  # type: ignore[misc]
        self.after.append(np.stack([learning.model(node).array() for node in range(16)]).astype(np.float64))


def run(*overrides: str, start: Any = None) -> tuple[Simulation, list[Any]]:
    """A run and the models after each round."""
    models = Models(start)
    models.simulation = build(parse_scenario(SCENARIO, overrides=overrides), listeners=[models])
    models.simulation.run()
    return models.simulation, models.after


def graph(simulation: Simulation, round_number: int) -> Any:
    """The edges of a round, as logged."""
    rows = simulation.log.graphs["round"] == round_number
    return np.stack([simulation.log.graphs[name][rows] for name in ("sender", "receiver")], axis=1).astype(np.int64)


@pytest.mark.parametrize("exchange", ["update", "model"])
@pytest.mark.parametrize("mixing", ["uniform", "metropolis"])
def test_a_complete_graph_gives_everyone_the_mean_of_everyone(exchange: str, mixing: str) -> None:
    """After every round all models are equal, and the same whether updates or models were exchanged."""
    _, after = run("protocol.graph=complete", f"protocol.exchange={exchange}", f"protocol.mixing={mixing}")
    alone = run(LOCAL, "rounds=1")[1][0]
    _, plain = run("protocol={kind: gossip, train_per_round: 16, exchange_with: 15}")
    for mine, theirs in zip(after, plain, strict=True):
        assert np.ptp(mine, axis=0).max() < 1e-5
        assert np.abs(mine - theirs).max() < 1e-5
    assert np.abs(after[0] - alone.mean(axis=0)).max() < 1e-5
    assert np.ptp(alone, axis=0).max() > 0.01, "everyone learned the same"


@pytest.mark.parametrize(
    ("kind", "mixing"), [("ring", "uniform"), ("star", "metropolis"), ("path", "metropolis"), ("torus", "uniform")]
)
def test_disagreement_falls_at_the_rate_of_the_spectral_gap(kind: str, mixing: str) -> None:
    """Consensus distance on a fixed graph, without training: each round the models are W times those before.

    Over the last of 30 rounds the distance to the mean shrinks by the second eigenvalue of W.
    """
    start = np.random.default_rng(0).standard_normal((16, 15)).astype(np.float32)
    keys = f"graph: {kind}, redraw: never, mixing: {mixing}, exchange: model"
    protocol = f"protocol={{kind: gossip, train_per_round: 16, {keys}}}"
    simulation, after = run(protocol, STILL, "rounds=30", "evaluation.every=40", start=start)
    edges = graph(simulation, 1)
    weights = metropolis_weights(edges, 16) if mixing == "metropolis" else uniform_weights(edges, 16)
    assert np.abs(after[1] - weights @ start).max() < 1e-5
    distance = [np.linalg.norm(models - models.mean(axis=0)) for models in after]
    assert (distance[-1] / distance[-7]) ** (1 / 6) == pytest.approx(second_eigenvalue(weights), rel=0.02)


def test_one_peer_exponential_reaches_the_mean_in_four_rounds() -> None:
    """Sixteen members, one message each a round, and after log2(16) of them everyone has the mean of all."""
    start = np.random.default_rng(0).standard_normal((16, 15)).astype(np.float32)
    simulation, after = run(
        "protocol={kind: gossip, train_per_round: 16, graph: exponential, redraw: one_peer_exponential, "
        "exchange: model}",
        STILL, "rounds=5", start=start,
    )  # fmt: skip
    assert np.ptp(after[3], axis=0).max() > 0.01
    assert np.abs(after[4] - start.mean(axis=0)).max() < 1e-5
    assert [len(graph(simulation, number)) for number in range(1, 6)] == [16] * 5
    assert [graph(simulation, number)[0].tolist() for number in range(1, 6)] == [[0, 1], [0, 2], [0, 4], [0, 8], [0, 1]]


def test_metropolis_weights_are_applied_to_updates() -> None:
    """First round of a star: everyone starts from one model, so models differ by W times the updates."""
    alone = run(LOCAL)[1]
    simulation, after = run("protocol.graph=star", "protocol.mixing=metropolis")
    weights = metropolis_weights(graph(simulation, 1), 16)
    assert np.abs(after[0] - weights @ alone[0]).max() < 1e-5
    uniform = run("protocol.graph=star")[1]
    assert np.abs(after[0] - uniform[0]).max() > 1e-3


@pytest.mark.parametrize("exchange", ["update", "model"])
def test_the_weight_of_what_did_not_arrive_goes_to_the_own_vector(exchange: str) -> None:
    """Client 0, the centre of a star, hears nothing of clients 1 to 8; the weights of what it averages sum to one."""
    alone = run(LOCAL)[1]
    cut = "faults=[{kind: partition, between: [1-8, 0], both: false, start: 0 s, end: 1000 s}]"
    _, after = run(
        "protocol.graph=star", "protocol.mixing=metropolis", f"protocol.exchange={exchange}", cut, "rounds=1"
    )
    weight = np.zeros(16)
    weight[9:] = 1 / 16
    weight[0] = 1 - weight.sum()
    assert np.abs(after[0][0] - weight @ alone[0]).max() < 1e-5


def test_a_fixed_graph_stays_and_is_cut_to_the_members() -> None:
    """A ring of all clients, of which ten train: edges among them only; who has no neighbour is unconnected."""
    simulation, _ = run("protocol.train_per_round=7")
    ring = {(a, b) for a in range(16) for b in ((a + 1) % 16, (a - 1) % 16)}
    unconnected = 0
    for number in range(1, 5):
        edges = set(map(tuple, graph(simulation, number).tolist()))
        cohort = set(simulation.records[number].cohort.tolist())
        assert edges == {(a, b) for a, b in ring if a in cohort and b in cohort}
        unconnected += len(cohort - {a for a, _ in edges})
    reasons = [DROPOUT_REASONS[code] for code in simulation.log.dropouts["reason"]]
    assert unconnected > 0
    assert reasons == ["unconnected"] * unconnected


def test_swaps_change_the_graph_from_round_to_round() -> None:
    """Two swaps before each round but the first: at most eight edges go, and everyone keeps two neighbours."""
    simulation, _ = run("protocol.redraw={kind: swaps, edges: 2}", "learning=none")
    graphs = [set(map(tuple, graph(simulation, number).tolist())) for number in range(1, 5)]
    assert graphs[0] == {(a, b) for a in range(16) for b in ((a + 1) % 16, (a - 1) % 16)}
    for before, after in pairwise(graphs):
        assert 0 < len(before - after) <= 8
        assert np.array_equal(np.bincount([a for a, _ in after]), np.full(16, 2))


def test_a_graph_of_every_round_has_other_neighbours_each_time() -> None:
    """Members take random places on the ring."""
    simulation, _ = run("protocol.redraw=every_round", "learning=none")
    graphs = [graph(simulation, number).tobytes() for number in range(1, 5)]
    assert len(set(graphs)) == 4


def test_a_member_that_trains_too_slowly_mixes_the_model_it_has() -> None:
    """Client 3 misses the deadline of a minute: it sends nothing, and averages its unchanged model with the others."""
    slow = "faults=[{kind: slow, who: 3, factor: 10000, start: 0 s, end: 10000 s}]"
    simulation, after = run("protocol.exchange=model", "protocol.graph=star", "rounds=1", slow)
    alone = run(LOCAL)[1]
    first = simulation.learning.first_model().array()
    assert np.abs(after[0][3] - (alone[0][0] + first) / 2).max() < 1e-5
    others = [node for node in range(16) if node != 3]
    assert np.abs(after[0][0] - alone[0][others].mean(axis=0)).max() < 1e-5
    table = simulation.log.aggregations
    assert not ((table["contributor"] == 3) & (table["aggregator"] == 3)).any()


def test_noise_is_added_once_to_a_model_that_is_sent() -> None:
    """A sent model is the node's model minus its clipped, noised update; privacy is charged once for all receivers."""
    private = "privacy={clip: {kind: flat, norm: 0.5}, noise: {kind: gaussian, sigma: 0.3}}"
    plain, noisy = run(LOCAL, "rounds=1")[1][0], run(LOCAL, private, "rounds=1")
    first = noisy[0].learning.first_model().array()
    clipped = plain - first
    clipped *= np.minimum(1.0, 0.5 / np.linalg.norm(clipped, axis=1, keepdims=True))
    noise = noisy[1][0] - first - clipped
    assert noise.std() == pytest.approx(0.3, rel=0.15)
    assert abs(noise.mean()) < 0.1
    assert len(noisy[0].log.privacy) == 16


def test_privacy_of_models_is_that_of_updates_over_the_same_messages() -> None:
    """Both carry what their sender had and its fresh release, so who can have learnt what is the same."""
    private = "privacy={clip: {kind: flat, norm: 0.5}, noise: {kind: gaussian, sigma: 2.0}}"
    figures = [
        report_privacy(run(private, f"protocol.exchange={exchange}", "protocol.train_per_round=15", "rounds=3")[0])
        for exchange in ("update", "model")
    ]
    assert np.isfinite(figures[0]["rigorous"]["peer"]["median"])
    for view in ("local", "receiver"):
        assert figures[0]["rigorous"][view] == figures[1]["rigorous"][view]
    assert figures[0]["rigorous"]["peer"] == figures[1]["rigorous"]["peer"]


def test_a_listed_weight_costs_eight_bytes() -> None:
    """A member of a ring learns two weights with its assignment; the whole run differs by that alone."""
    equal, weighted = (
        run("learning=none", "rounds=1", f"protocol.mixing={mixing}")[0] for mixing in ("uniform", "metropolis")
    )
    assert weighted.log.messages["size_bytes"].sum() - equal.log.messages["size_bytes"].sum() == 16 * 2 * 8


def test_a_round_without_any_edge_is_skipped() -> None:
    """Two members at opposite places of a ring: neither has a neighbour to send to, and the run goes on."""
    simulation, _ = run("protocol.train_per_round=2", "learning=none", "rounds=3")
    empty = [number for number in range(1, 4) if not len(graph(simulation, number))]
    assert empty
    assert simulation.proxy.outcome.rounds_completed == 3
    assert all(simulation.records[number].skipped for number in empty)


def test_a_member_without_neighbours_takes_its_own_noisy_step() -> None:
    """Models are exchanged: it keeps the model after its local step, and the log says that its release is in there."""
    private = "privacy={clip: {kind: flat, norm: 0.5}, noise: {kind: gaussian, sigma: 0.3}}"
    few = ("protocol.train_per_round=7", "protocol.exchange=model", "rounds=1")
    simulation, after = run(*few, private)
    local = run(LOCAL, private, "rounds=1")[1][0]
    cohort = simulation.records[1].cohort.tolist()
    alone = [node for node in cohort if node not in graph(simulation, 1)]
    assert alone
    assert np.abs(after[0][alone] - local[alone]).max() < 1e-6
    table = simulation.log.aggregations
    own = table["contributor"][table["contributor"] == table["aggregator"]]
    assert sorted(own.tolist()) == cohort
    without, _ = run(*few, private, "protocol.include_own=false")
    table = without.log.aggregations
    assert not (table["contributor"] == table["aggregator"]).any()


def test_a_graph_of_ones_own_plugs_in(tmp_path: Path) -> None:
    """A frozen class with the verbs of a graph, beside the scenario; here everyone sends to client 0."""
    (tmp_path / "own_graphs.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n\nimport numpy as np\n\n\n"
        "@dataclass(frozen=True, kw_only=True)\nclass ToFirst:\n"
        '    """Everyone sends to the first.\n\n    Attributes:\n        first: place of the receiver\n    """\n\n'
        "    free_degree: ClassVar[bool] = False\n    first: int = 0\n\n"
        "    def problem(self, n, degree):\n        return ''\n\n"
        "    def draw(self, members, degree, rng):\n"
        "        others = np.delete(members, self.first)\n"
        "        return np.column_stack([others, np.full(len(others), members[self.first])])\n"
    )
    overrides = ["protocol.graph={kind: 'own_graphs:ToFirst', first: 2}", "learning=none", "rounds=1"]
    simulation = build(parse_scenario(SCENARIO, overrides=overrides, folder=tmp_path, allow_plugins=True))
    simulation.run()
    assert graph(simulation, 1).tolist() == [[node, 2] for node in range(16) if node != 2]
