"""Record-level figures of whole runs: what they count, what makes them infinite, and that both units are named."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodes.learning.training import PerSample
from p2p.config.errors import UserError
from privacy.accounting.record_level import SampledGaussian, record_epsilon
from scenarios.accounting.unaccounted import why_no_record_level
from scenarios.build import build
from scenarios.loading.load import parse_scenario
from scenarios.metrics.headline.headline_rows import headline_rows
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.planning.plan import make_plan
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario

TEXT = """
name: records
rounds: 4
clients: 6
data: {name: synthetic, samples: 61, test_samples: 20, features: 5, classes: 3}
model: {kind: linear}
training: {batch_size: 4, per_sample: PRIVATE}
protocol: {kind: PROTOCOL, train_per_round: 4, deadline: 60 s}
"""


def scenario(private: str = "{clip: 1.0, noise: 1.5}", protocol: str = "central", more: str = "") -> Scenario:
    """Six clients with ten or eleven records each."""
    if protocol == "gossip":
        protocol = "gossip, exchange_with: 2"
    return parse_scenario(TEXT.replace("PRIVATE", private).replace("PROTOCOL", protocol) + more)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["central", "gossip", "rotating_leader"])
def test_a_run_charges_every_training_of_every_client(protocol: str, tmp_path: Path) -> None:
    """The figure is that of the client whose records were used most; tables, rounds, plan and summary agree."""
    world = scenario(protocol=protocol)
    simulation = build(world)
    simulation.run()
    told = report_privacy(simulation)
    trained = [client.trainings for client in simulation.clients]
    sizes = [simulation.learner.records(node) for node in range(6)] if simulation.learner else []
    each = [
        record_epsilon((SampledGaussian(4 / size, 1.5, -(-size // 4) * count),), 1e-5)
        for size, count in zip(sizes, trained, strict=True)
    ]
    assert told["record"]["epsilon"] == pytest.approx(max(each))
    assert told["record"]["trainings"] == {"min": min(trained), "mean": 16 / 6, "max": max(trained)}
    assert told["rigorous"]["local"] == math.inf
    table = simulation.log.privacy
    assert len(table) == 16
    assert table["record"].max() == pytest.approx(max(each))
    assert np.isinf(table["rigorous"]).all()
    assert simulation.log.rounds[-1]["epsilon_record"] == pytest.approx(max(each))
    plan = make_plan(world)["privacy"]
    assert plan["record"]["epsilon"] == pytest.approx(max(each))
    assert plan["record"]["how"] == "projected"


@pytest.mark.slow
def test_both_units_are_printed_with_their_names(tmp_path: Path) -> None:
    """A client whose update is clipped and noised too has a finite figure of its own; neither replaces the other."""
    both = "privacy: {clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: 2.0}}"
    summary, _ = run_scenario(scenario(more=both), tmp_path / "run")
    rows = "\n".join(f"{label}: {text}" for label, text in headline_rows(summary))
    assert "(client level" in rows
    assert "(record level" in rows
    privacy = summary["privacy"]
    assert math.isfinite(privacy["rigorous"]["local"])
    assert privacy["record"]["unit"] == "record"
    assert privacy["rigorous"]["unit"] == "client"
    assert "record-level epsilon" in summary["headline"]["epsilon"]["verdict"]
    assert "client-level epsilon" in summary["headline"]["epsilon"]["verdict"]
    assert summary["headline"]["epsilon"]["record"] == privacy["record"]["epsilon"]


@pytest.mark.slow
def test_a_client_stops_when_its_records_have_lost_enough() -> None:
    """Noise is for so many trainings; one more would cost more than epsilon, so the client declines."""
    world = replace(scenario("{clip: 1.0, epsilon: 3, participations: 2}"), rounds=5)
    simulation = build(world)
    simulation.run()
    assert max(client.trainings for client in simulation.clients) == 2
    told = report_privacy(simulation)["record"]
    assert 2.9 < told["epsilon"] <= 3.0
    assert "budget left" in simulation.proxy.outcome.stopped_because
    plan = make_plan(world)
    assert plan["rounds"]["possible"] == simulation.proxy.outcome.rounds_completed


@pytest.mark.slow
def test_a_training_that_a_crash_destroyed_is_charged_and_never_repeated() -> None:
    """Its noise and coins are used up: a second training in the round has others."""
    crash = "faults: [{kind: crash, who: 0-5, start: 0.3 s, end: 0.4 s}]\ncompute: 20 samples/s"
    simulation = build(scenario(more=crash))
    simulation.run()
    learning = simulation.deferred_learning
    assert learning is not None
    trained = [client.trainings for client in simulation.clients]
    assert learning.state().noise_numbers.tolist() == trained
    assert sum(trained) > len(simulation.log.privacy)


def test_shuffled_batches_are_not_amplified_and_the_results_say_so() -> None:
    """One Gaussian release for each pass, whatever the size of a batch."""
    simulation = build(scenario("{clip: 1.0, noise: 4.0, sampling: shuffled}"))
    simulation.run()
    told = report_privacy(simulation)["record"]
    most = told["trainings"]["max"]
    assert told["epsilon"] == pytest.approx(record_epsilon((SampledGaussian(1.0, 4.0, most),), 1e-5))
    assert "nothing is amplified" in told["no_amplification_because"]


def test_what_lets_one_record_change_others_is_no_proof() -> None:
    """Standardising by a client's own moments, pooling, and own data sets and objectives that do not say."""
    world = scenario()
    assert why_no_record_level(world, None) == ""

    class Own:
        def pooled(self) -> tuple[str, ...]:
            return ()

    own: Any = Own()
    assert "record_wise" in why_no_record_level(replace(world, data=own), None)
    own.record_wise = True
    assert why_no_record_level(replace(world, data=own), None) == ""
    from nodes.datasets.published import Adult

    assert "other records" in why_no_record_level(replace(world, data=Adult(standardise="per_client")), None)
    assert "pooled" in why_no_record_level(replace(world, data=Adult()), None)
    name = f"{Own.__module__}:{Own.__qualname__}"
    assert "plug-in" in why_no_record_level(replace(world, objective=own, plugins={name: "0"}), None)


@pytest.mark.parametrize(
    ("private", "message"),
    [
        ("{clip: 1.0}", "exactly one of `noise` and `epsilon`"),
        ("{clip: 0, noise: 1}", "per_sample.clip = 0"),
        ("{clip: 1, noise: 1, sampling: sorted}", "sampling"),
        ("{clip: 1, noise: 0, participations: 3}", "participations = 3"),
    ],
)
def test_bad_settings_are_refused(private: str, message: str) -> None:
    """With the path and the cure."""
    with pytest.raises(UserError, match="per_sample") as refused:
        scenario(private)
    assert message in str(refused.value)


def test_poisson_needs_a_batch_size() -> None:
    """All records in every step would be no sampling."""
    with pytest.raises(UserError, match=r"sampling = poisson: .*batch_size"):
        parse_scenario(
            TEXT.replace("PRIVATE", "{clip: 1, noise: 1}")
            .replace("PROTOCOL", "central")
            .replace(": 4, per", ": all, per")
        )


def test_the_noise_that_no_epsilon_allows_is_refused() -> None:
    """An epsilon that delta alone nearly covers."""
    world = scenario()
    private = PerSample(clip=1.0, epsilon=1e-9, delta=1e-12)
    with pytest.raises(UserError, match=r"per_sample.epsilon = 1e-09"):
        build(replace(world, training=replace(world.training, per_sample=private)))


@pytest.mark.slow
def test_a_schedule_that_reads_outputs_costs_all_trainings_it_may_allow(tmp_path: Path) -> None:
    """How many rounds there are is an output: the figure is that of all planned ones, however few took place."""
    more = "\n".join(
        [
            "privacy: {clip: {kind: flat, norm: 1.0}, noise: {kind: gaussian, sigma: 2.0}}",
            "schedule: {kind: crd, beta: 0.6}",
        ]
    )
    world = replace(scenario(more=more), rounds=12)
    simulation = build(world)
    simulation.run()
    assert simulation.proxy.outcome.rounds_completed < 12
    assert max(client.trainings for client in simulation.clients) < 12
    told = report_privacy(simulation)["record"]
    sizes = [simulation.learner.records(node) for node in range(6)] if simulation.learner else []
    preset = max(record_epsilon((SampledGaussian(4 / size, 1.5, -(-size // 4) * 12),), 1e-5) for size in sizes)
    assert told["epsilon"] == pytest.approx(preset)
    assert "depends on earlier outputs" in told["because"]
    assert simulation.log.privacy["record"].max() == pytest.approx(preset)
    assert {row["epsilon_record"] for row in simulation.log.rounds} == {told["epsilon"]}
    assert make_plan(world)["privacy"]["record"]["epsilon"] == pytest.approx(preset)
