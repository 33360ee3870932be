"""What is surely not meant is told, with what was probably meant; what is meant is not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from scenarios.cli.main import main
from scenarios.loading.catalog import catalog
from scenarios.loading.checks.implausible import implausible_settings
from scenarios.loading.load import load_scenario
from scenarios.metrics.implausible_results import chance_warning, label_warning

NOISE = "privacy={clip: flat, noise: {kind: gaussian, sigma: 1}, delta: 0.5}"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "network.latency=50",
            "network.latency = 50 s: a message takes that long one way; if milliseconds were meant, write `50 ms`",
        ),
        ("network.jitter=20", "network.jitter = 20 s: a message takes that long one way"),
        (
            "network.uplink=20",
            "network.uplink = 20 bytes/s: slower than any access link; if megabits were meant, write `20 Mbit/s`",
        ),
        ("network.downlink={kind: lognormal, median: 8, sigma: 0.5}", "network.downlink = 8 bytes/s: slower"),
        ("network.devices=[{name: a, share: 1, uplink: 5}]", "network.devices.0.uplink = 5 bytes/s: slower"),
        ("network.server_uplink=100", "network.server_uplink = 100 bytes/s: slower"),
        ("compute=0.001", "compute = 0.001 samples/s: one sample takes 1000 s"),
        (NOISE, "privacy.delta = 0.5: above 1/clients"),
        ("network.energy={}", "network.energy: all rates are 0"),
        (
            "network={loss: 0.1, retransmit: {timeout: 2 min}}",
            "network.retransmit.timeout = 2 min: not below protocol.deadline",
        ),
    ],
)
def test_surely_not_meant(change: str, told: str) -> None:
    """Each slip is named by path and value, with a cure."""
    (warning,) = implausible_settings(load_scenario("tiny", [change]))
    assert warning.startswith(told)


@pytest.mark.parametrize("name", sorted(catalog()))
def test_the_catalog_means_what_it_says(name: str) -> None:
    """No scenario that ships is warned of."""
    assert implausible_settings(load_scenario(name)) == []


def test_check_tells_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    """As text and as JSON; a warning is no problem."""
    assert main(["check", "tiny", "--set", "network.latency=50"]) == 0
    assert "warning: network.latency = 50 s" in capsys.readouterr().out
    assert main(["check", "tiny", "--set", "network.latency=50", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["ok"]
    assert len(found["warnings"]) == 1


def test_accuracy_at_chance() -> None:
    """Ten equal classes: 0.1 is chance, and 0.14 is on 1,000 records not."""
    labels = np.arange(1000) % 10
    assert chance_warning(0.1, labels) is not None
    assert "0.110 is chance" in (chance_warning(0.11, labels) or "")
    assert chance_warning(0.14, labels) is None
    # Of two classes in nine to one, 0.9 is chance.
    assert chance_warning(0.9, (np.arange(1000) % 10 == 0).astype(np.int64)) is not None


def test_a_continuous_label() -> None:
    """800 values in 1,000 records are no classes; 100 classes of 500 records each are."""
    assert "800 distinct values in 1,000 training records" in (label_warning(800, 1000) or "")
    assert label_warning(100, 50_000) is None
    assert label_warning(10, 20) is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "tiny", "--rounds", "5"], "--rounds: unknown option; did you mean `--set rounds=5`?"),
        (["run", "tiny", "--epochs=3"], "--epochs=3: unknown option; did you mean `--set training.epochs=3`?"),
        (["check", "tiny", "--set", "data.split=non_iid"], "did you mean `shards` or `dirichlet`?"),
        (["check", "tiny", "--set", "protocol.kind=leader"], "did you mean `rotating_leader`?"),
        (["check", "tiny", "--set", "protocol.kind=FedAvg"], "did you mean `central`?"),
        (["run", "tiny", "--protocol", "gossip"], "did you mean `--set protocol.kind=gossip`?"),
        (["run", "no-such-thing-at-all"], "give a path, or a name that `peerveil list` shows"),
        (["check", "tiny", "--set", "network.bandwidth=1"], "did you mean `uplink` or `downlink`?"),
        (["check", "tiny", "--set", "training.lr=0.1"], "did you mean `learning_rate`?"),
        (["check", "tiny", "--set", "network.classes=[]"], "did you mean `devices`?"),
    ],
)
def test_hints(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A word of the field leads to the name it has here; an option that is a key to `--set`; and to one line each."""
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert told in shown
    assert "5: unknown option" not in shown


@pytest.mark.parametrize(
    ("auxiliary", "told"),
    [
        (115, "reserved.auxiliary = 115: the data has 120 records, of which 6 clients need 6; reserve at most 114"),
        (114, ""),
    ],
)
def test_records_set_aside_are_left_by_the_clients(
    auxiliary: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` says it, and what it lets pass runs."""
    words = ["tiny", "--set", f"reserved.auxiliary={auxiliary}"]
    assert main(["check", *words]) == (2 if told else 0)
    assert told in capsys.readouterr().err


def test_what_passes_the_check_runs(tmp_path: Path) -> None:
    """One record for each client is left."""
    assert main(["run", "tiny", "--set", "reserved.auxiliary=114", "--quiet", "--out", str(tmp_path / "run")]) == 0


def test_the_list_of_devices_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with a section of a scenario, which is valid; energies say where they come from."""
    assert main(["list", "devices"]) == 0
    shown = capsys.readouterr().out
    assert "not checked against the paper" in " ".join(shown.split())
    section = shown.partition("In a scenario:\n")[2]
    tiny = (catalog()["tiny"]).read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(f"{tiny}\n{section}", encoding="utf-8")
    assert main(["check", str(tmp_path / "mine.yaml")]) == 0
    assert main(["list", "traces"]) == 0
    assert "availability: {kind: day, trace: phones_charging, start: 20 h}" in capsys.readouterr().out
