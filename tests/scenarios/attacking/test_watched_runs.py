"""A watched run is the same run: digests, figures, resume; and its folder keeps what was seen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from scenarios.cli.main import main
from tests.scenarios.running.resumed_runs import CRASHES, LEADER, MODELS, run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_round_is_written")]
WATCHED = (
    "adversaries=[{kind: peer, who: 1, keep: {snapshots: true}}, {kind: coalition, size: 3}, {kind: server}, "
    "{kind: eavesdropper}, {kind: model}, {kind: proxy, peers: [2]}]"
)
SHARES = (
    "privacy={clip: flat}",
    "protocol={kind: central, train_per_round: 5, deadline: 20 s}",
    "noise_shares={sigma_k: 0.5, unit_variance: 0.05, tau: 0, tau_ind: 0.1}",
    "faults=[]",
)
VARIANTS = pytest.mark.parametrize(
    "overrides",
    [(), (LEADER, CRASHES), (MODELS, "anonymity.sealed=false"), SHARES, ("learning=none",)],
    ids=["gossip", "leader", "models", "shares", "no learning"],
)


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """All that must not depend on being watched."""
    return {key: value for key, value in summary.items() if key not in ("wall_s", "resumed")}


@VARIANTS
def test_a_watched_run_is_the_same_run(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    """Events, learning, epsilons, and everything else in the summary."""
    alone = run(tmp_path / "alone", *overrides)
    watched = run(tmp_path / "watched", *overrides, WATCHED)
    assert watched["digest"] == alone["digest"]
    assert json.dumps(figures(watched), default=str) == json.dumps(figures(alone), default=str)
    assert not (tmp_path / "alone" / "observations").exists()


@VARIANTS
def test_an_interrupted_watch_goes_on(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    """Interrupted after its second round and resumed: the same rows, vectors and models."""
    run(tmp_path / "whole", *overrides, WATCHED)
    run(tmp_path / "run", *overrides, WATCHED, stop_after=2)
    run(tmp_path / "run", *overrides, WATCHED, resume=True)
    whole, resumed = tmp_path / "whole" / "observations", tmp_path / "run" / "observations"
    assert {path.name for path in whole.iterdir()} == {path.name for path in resumed.iterdir()}
    for path in whole.glob("**/*.parquet"):
        assert pq.read_table(path).equals(pq.read_table(resumed / path.relative_to(whole)), check_metadata=True)
    for path in whole.glob("*.safetensors"):
        one, other = load_file(path), load_file(resumed / path.name)
        assert one.keys() == other.keys()
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name])


def test_attacks_run_afterwards_again_and_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the folder alone, by one observer or all; the summary keeps one entry for each, and the files are there."""
    run(tmp_path / "run", WATCHED)
    assert main(["attack", "linkage", str(tmp_path / "run"), "--by", "coalition"]) == 0
    assert main(["attack", "linkage", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert {entry["by"] for entry in told[str(tmp_path / "run")]} == {"peer", "coalition", "proxy"}
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert [entry["by"] for entry in summary["attacks"]].count("coalition") == 1
    for entry in summary["attacks"]:
        assert (tmp_path / "run" / "attacks" / f"{entry['file']}.json").is_file()


def test_attacks_of_a_scenario_are_scored_at_its_end(tmp_path: Path) -> None:
    """The same entries as by the command."""
    summary = run(tmp_path / "run", WATCHED, "attacks=[{kind: linkage, by: coalition}]")
    assert [(entry["kind"], entry["by"]) for entry in summary["attacks"]] == [("linkage", "coalition")]
    assert json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))["attacks"] == summary["attacks"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["linkage", "RUN", "--by", "nobody"], "by = nobody: no such observer; there are peer, coalition"),
        (["linkage", "RUN", "--by", "model"], "model: it gets no updates"),
        (["linkages", "RUN"], "KIND = linkages: unknown attack; did you mean `linkage`?"),
        (["linkage", "RUN", "--set", "x=1"], "x: unknown key"),
        (["linkage", "BARE"], "no adversary watches; add `adversaries: [{kind: peer}]` and run again"),
        (["linkage", "NONE"], "is not a folder"),
        (["linkage"], "RUN: is needed"),
    ],
)
def test_what_cannot_be_attacked_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    """One message with the cure, exit code 2."""
    if "RUN" in arguments:
        run(tmp_path / "RUN", WATCHED)
    if "BARE" in arguments:
        run(tmp_path / "BARE")
    words = [str(tmp_path / word) if word in ("RUN", "BARE", "NONE") else word for word in arguments]
    assert main(["attack", *words]) == 2
    assert told in capsys.readouterr().err


def test_lost_observations_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one observer, and of all; the cure is not to add an observer, which the scenario has."""
    path = tmp_path / "RUN"
    run(path, WATCHED)
    (path / "observations" / "coalition.safetensors").unlink()
    assert main(["attack", "linkage", str(path), "--by", "coalition"]) == 2
    assert "coalition.safetensors is missing or damaged" in capsys.readouterr().err
    assert main(["attack", "linkage", str(path)]) == 0
    told = capsys.readouterr()
    assert "linkage by peer: " in told.out
    assert "coalition.safetensors is missing or damaged" in told.err
    shutil.rmtree(path / "observations")
    assert main(["attack", "linkage", str(path)]) == 2
    assert "the files of its observers are gone from observations/; run the scenario again" in capsys.readouterr().err


def test_equal_reasons_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the names of all that they are about."""
    run(tmp_path / "RUN", WATCHED)
    assert main(["attack", "non_neighbours", str(tmp_path / "RUN")]) == 2
    error = capsys.readouterr().err
    assert error.count("no models are exchanged") == 1
    assert "peer, coalition, " in error
