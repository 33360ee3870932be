"""The network section as a scenario writes it: devices, latencies, jitter, energy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from p2p.config.distributions import Exponential
from p2p.config.errors import UserError
from p2p.links.latency import Matrix, Regions
from p2p.links.settings import Energy
from p2p.log.log import Log
from scenarios.loading.load import dump_scenario, parse_scenario
from scenarios.metrics.communication.energy import energy_j
from scenarios.schema import Scenario

BASE = """
name: links
rounds: 1
clients: 4
data: digits
model: mlp
protocol: {kind: gossip, train_per_round: 2, exchange_with: 1}
network:
  devices:
    - {name: phone, share: 60%, preset: phone_4g, compute: 50 samples/s}
    - {name: home, share: 0.4, uplink: {kind: weibull, scale: 8 Mbit/s, shape: 2}}
  jitter: {kind: exponential, mean: 5 ms}
  energy: {per_byte_sent: 2 uJ/byte, per_byte_received: 1 uJ/byte, per_sample: 1 mJ/sample}
"""


def read(latency: str, folder: Path | None = None) -> Scenario:
    """The scenario above with a latency."""
    return parse_scenario(f"{BASE}  latency: {latency}\n", folder=folder)


def test_sections_are_read_and_written_back(tmp_path: Path) -> None:
    """Devices, jitter, energy and either model of places survive a dump and a load."""
    (tmp_path / "rtt.csv").write_text("0,10\n20,0\n")
    for latency, kind in (
        ("{kind: regions, regions: {eu-west: 1}}", Regions),
        ("{kind: matrix, path: rtt.csv}", Matrix),
    ):
        scenario = read(latency, tmp_path)
        assert isinstance(scenario.network.latency, kind)
        assert scenario.network.jitter == Exponential(mean=0.005)
        assert [device.share for device in scenario.network.devices] == [0.6, 0.4]
        again = parse_scenario(dump_scenario(scenario), folder=tmp_path)
        assert again == scenario
    assert isinstance(again.network.latency, Matrix)
    assert again.network.latency.seconds.tolist() == [[0.0, 0.005], [0.01, 0.0]]


@pytest.mark.parametrize(
    ("latency", "said"),
    [
        ("{kind: regions, regions: {atlantis: 1}}", "network.latency.regions.atlantis: unknown region"),
        ("{kind: regions, regions: {eu-west: 2}}", "network.latency.regions.eu-west = 2: must be <= 1"),
        ("{kind: regions, regions: {eu-west: 0.2}}", "network.latency.regions = 0.2: the shares must sum to 1"),
        ("{kind: matrix, path: no.csv}", "network.latency.path = no.csv: no such file"),
        ("{kind: matrix, path: bad.csv}", "network.latency.path = bad.csv: line 1, column 2: '-1'"),
        ("{kind: matrix, path: bad.csv, unit: h}", "network.latency.unit = h: must be `s`, `ms` or `us`"),
        ("{kind: orbit}", "network.latency.kind = orbit: unknown kind"),
    ],
)
def test_bad_latencies_are_problems_with_their_path(tmp_path: Path, latency: str, said: str) -> None:
    """Path, value and rule of each."""
    (tmp_path / "bad.csv").write_text("0,-1\n1,0\n")
    with pytest.raises(UserError) as caught:
        read(latency, tmp_path)
    assert said in str(caught.value)


def test_places_are_for_latency_only() -> None:
    """An uplink has no region."""
    with pytest.raises(UserError, match=r"network.uplink.kind = regions: unknown kind"):
        parse_scenario(f"{BASE}  uplink: {{kind: regions}}\n")


def test_shares_of_devices_must_be_a_whole() -> None:
    """The problem names the key and the sum."""
    with pytest.raises(UserError, match=r"network.devices = 0.9: the shares must sum to 1"):
        parse_scenario(BASE.replace("0.4", "0.3"))


def test_energy_by_hand(add_message: Callable[..., int]) -> None:
    """100 bytes sent and received, 30 of a lost message that left, and one training of 50 samples."""
    log = Log()
    add_message(log, sender=0, receiver=1)
    add_message(log, sender=1, receiver=0, outcome="lost", reason="random", left_bytes=30, arrived_s=np.nan)
    add_message(log, sender=7, receiver=0, size_bytes=10, left_bytes=10)
    log.span(1, 1, "train", 0.0, 1.0)
    told = energy_j(log, Energy(per_byte_sent=2.0, per_byte_received=1.0, per_sample=0.1), np.array([40, 50]))
    assert told == {
        "total": 280.0 + 110.0 + 5.0,
        "sending": 280.0,
        "receiving": 110.0,
        "training": 5.0,
        "per_client": {"median": (210.0 + 165.0) / 2, "max": 210.0},
    }


def test_energy_of_no_run() -> None:
    """Nothing happened: nothing was spent."""
    assert energy_j(Log(), Energy(per_sample=1.0), np.array([5, 5]))["total"] == 0.0
