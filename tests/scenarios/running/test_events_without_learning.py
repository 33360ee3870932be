"""Events are those of a run with learning: `learning: none` leaves out the arithmetic, not the clients' records."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.loading.load import parse_scenario
from scenarios.running.run import run_scenario

SCENARIO = """
name: events
seed: 4
rounds: 2
clients: 9
data: DATA
model: {kind: mlp, hidden: [4]}
training: {epochs: 1, batch_size: 16, learning_rate: 0.1}
evaluation: {every: 0, clients: 1}
protocol: {kind: gossip, train_per_round: 7, exchange_with: 3, deadline: 5 min}
anonymity: {sealed: sizes}
network: {sharing: fair, uplink: 1 Mbit/s, downlink: 2 Mbit/s, latency: 20 ms}
compute: {kind: lognormal, median: 200 samples/s, sigma: 0.4}
"""
DATA_SETS = ["name: digits", "name: synthetic, samples: 1003, classes: 7, features: 5"]
SPLITS = [
    "iid",
    "{kind: iid, records: 11}",
    "{kind: shards, classes_per_client: 3}",
    "{kind: dirichlet, alpha: 0.05, min_records: 20}",
]


def digest_of(out: Path, data: str, learning: str) -> str:
    """The digest of a run's events."""
    text = SCENARIO.replace("DATA", data) + f"learning: {learning}\n"
    summary, _ = run_scenario(parse_scenario(text), out / learning)
    return str(summary["digest"]["events"])


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("data", DATA_SETS)
def test_events_are_the_same_with_and_without_learning(tmp_path: Path, data: str, split: str) -> None:
    """Training takes as long as a client has records, so each must have as many."""
    entry = f"{{{data}, split: {split}}}"
    assert digest_of(tmp_path, entry, "none") == digest_of(tmp_path, entry, "torch")
