"""The scenarios that are measured. Evaluation is off but for the last round, which is not timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nodes.faults.availability import Churn
from nodes.protocols.rotating_leader import RotatingLeader
from p2p.config.distributions import Exponential
from scenarios.loading.load import parse_scenario
from scenarios.schema import Scenario

_GOSSIP = "{{kind: gossip, train_per_round: {trained}, exchange_with: {degree}, send_at: barrier, deadline: 10 min}}"
_LEADER = "{{kind: rotating_leader, train_per_round: {trained}, send_at: barrier, deadline: 10 min}}"
_WORLD = """
name: benchmark
rounds: {rounds}
clients: {clients}
data: {data}
model: {model}
training: {{epochs: 1, batch_size: {batch}, learning_rate: 0.1}}
evaluation: {{every: 0, clients: 1}}
protocol: {protocol}
anonymity: {{sealed: {sealed}}}
network:
  sharing: fair
{rates}
  latency: {{kind: uniform, low: 20 ms, high: 120 ms}}
learning: {learning}
"""
_AMPLE = """  uplink: {kind: lognormal, median: 20 Mbit/s, sigma: 0.5}
  downlink: 100 Mbit/s"""
_SHORT = """  uplink: {kind: uniform, low: 2 Mbit/s, high: 50 Mbit/s}
  downlink: {kind: uniform, low: 10 Mbit/s, high: 100 Mbit/s}"""
_PRIVACY = """
privacy:
  clip: {kind: flat, norm: 1.0}
  noise: {kind: gaussian, sigma: 0.01}
"""
_SIZES: dict[str, dict[str, Any]] = {
    "mnist": {"shape": [784], "records": 600, "batch": 10, "model": "{kind: mlp, hidden: [200, 200]}"},
    "small": {"shape": [64], "records": 14, "batch": 8, "model": "{kind: mlp, hidden: [32]}"},
    "cnn": {
        "shape": [3, 32, 32],
        "records": 100,
        "batch": 10,
        "model": "{kind: cnn, channels: [16, 32], dense: [512]}",
    },
}


def scene(
    size: str,
    *,
    rounds: int,
    clients: int = 100,
    trained: int = 70,
    degree: int = 50,
    leader: bool = False,
    sealed: str = "sizes",
    learning: str = "torch",
    private: bool = True,
    short: bool = False,
    stages: str = "",
) -> Scenario:
    """A world of one of three sizes, on random records: what they are does not matter for time.

    `stages`: the list of `update`, instead of the usual clipping and noise.
    `short`: many downlinks cannot take what comes, so that everyone's transfers depend on others'.
    """
    facts = _SIZES[size]
    samples = clients * facts["records"]
    text = _WORLD.format(
        rounds=rounds,
        clients=clients,
        data=f"{{name: synthetic, samples: {samples}, test_samples: 10, shape: {facts['shape']}}}",
        model=facts["model"],
        batch=facts["batch"],
        protocol=(_LEADER if leader else _GOSSIP).format(trained=trained, degree=degree),
        sealed=sealed,
        learning=learning,
        rates=_SHORT if short else _AMPLE,
    )
    if stages:
        return parse_scenario(f"{text}\nupdate: {stages}\n")
    return parse_scenario(text + (_PRIVACY if private else ""))


def peers(count: int, *, way: str = "quiet") -> Scenario:
    """Everyone trains and sends to five others over links that differ; byte counts only.

    `way`: quiet (all send at one instant), ready (each as soon as it has trained, over short downlinks), lossy (1% loss
    and jitter over short downlinks), troubled (the same under churn), or leader (all send to one, with 1% loss).
    """
    world = scene(
        "small", rounds=1, clients=count, trained=count, degree=5, learning="none", private=False, short=way != "quiet"
    )
    protocol = {"ready": replace(world.protocol, send_at="ready")}.get(way, world.protocol)
    if way == "leader":
        protocol = RotatingLeader(
            train_per_round=count, send_at="barrier", deadline=1800.0, model_deadline=1800.0, leader_timeout=1200.0
        )
    loss = 0.0 if way in ("quiet", "ready") else 0.01
    jitter = Exponential(mean=0.005) if way in ("lossy", "troubled") else None
    availability = Churn(mean_up=3600.0, mean_down=120.0) if way == "troubled" else world.availability
    network = replace(world.network, loss=loss, jitter=jitter)
    return replace(world, protocol=protocol, network=network, availability=availability)
