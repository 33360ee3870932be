"""Claims that one run cannot falsify are falsified by repetitions, through the command, corrected for all tries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from privacy.attacks.membership.ceiling import level_of
from privacy.audits.one_run import p_value
from scenarios.cli.main import main

pytestmark = pytest.mark.slow
SMALL = (
    "adversaries=[{kind: leader, keep: {snapshots: true}}]",
    "attacks=[]",
    "reserved={victims: 0-1}",
    "rounds=3",
)
CLAIM = {"epsilon": 0.2, "delta": 1e-5, "formula": "a false one"}


def summary_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    return found


def repeat(folder: Path, seed: int, *overrides: str) -> Path:
    """A run that leaks, whose summary claims a small epsilon."""
    path = folder / f"run-{len(list(folder.iterdir()))}"
    options = [part for override in (*SMALL, *overrides) for part in ("--set", override)]
    assert main(["run", "attack-membership", "--out", str(path), "--quiet", "--seed", str(seed), *options]) == 0
    told = summary_of(path)
    told["privacy"]["published"] = CLAIM
    (path / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    return path


def attack(paths: list[Path], *options: str) -> None:
    assert main(["attack", "membership", *map(str, paths), "--set", "models=received", *options]) == 0


def test_runs_together_falsify_what_each_only_exceeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """40 coins a run are too few; 200 are not. Judging again changes nothing; another attack knows of it."""
    paths = [repeat(tmp_path, seed) for seed in (1, 2, 3, 4, 5)]
    attack(paths)
    told = capsys.readouterr().out
    assert "exceeds the ceiling in this run" in told
    assert "membership by leader: 5 runs together; published epsilon 0.2: falsified by" in told
    entries = [summary_of(path)["attacks"][0] for path in paths]
    for entry in entries:
        assert all(one["verdict"] != "falsified" for one in entry["claims"])
        (pool,) = entry["together"]
        assert pool["comparisons"] == 4
    assert all(entry["together"] == entries[0]["together"] for entry in entries)
    _is_what_the_coins_say(entries)
    assert main(["report", str(paths[0])]) == 0
    page = (paths[0] / "report.html").read_text(encoding="utf-8")
    assert "<p>5 runs together; published epsilon 0.2: falsified by" in page
    attack(paths)
    assert [summary_of(path)["attacks"][0] for path in paths] == entries
    attack(paths[:1], "--set", "models=own")
    assert summary_of(paths[0])["attacks"][1]["comparisons"] == 4
    # Alone again, the first attack still carries what the runs said together.
    attack(paths[:1])
    assert summary_of(paths[0])["attacks"][0]["together"] == entries[0]["together"]


def _is_what_the_coins_say(entries: list[dict[str, Any]]) -> None:
    """Coins add up, and the level is that of the comparisons after all that were made on each run."""
    pool = entries[0]["together"][0]
    before = sum(entry["comparisons"] for entry in entries)
    for claim in pool["claims"]:
        rows = [row for entry in entries for row in entry["methods"] if row["method"] == claim["method"]]
        assert claim["right_pairs"] == sum(row["right_pairs"] for row in rows)
        assert claim["pairs"] == sum(row["pairs"] for row in rows) == 200
        unlikely = p_value(200, 200, claim["right_pairs"], claim["epsilon"], claim["delta"])
        assert (claim["verdict"] == "falsified") == (unlikely < level_of(before, 4))


@pytest.mark.parametrize(
    ("seed", "override", "told"),
    [
        (1, "rounds=2", "have the same seed, so they are one run"),
        (2, "rounds=4", "differs from that of"),
    ],
)
def test_runs_that_are_no_repetitions_are_not_judged_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int, override: str, told: str
) -> None:
    """Each is attacked by itself, and the reason is told."""
    paths = [repeat(tmp_path, 1, "rounds=2"), repeat(tmp_path, seed, override)]
    attack(paths)
    shown = capsys.readouterr().out
    assert "not judged together" in shown
    assert told in shown
    assert all("together" not in summary_of(path)["attacks"][0] for path in paths)
