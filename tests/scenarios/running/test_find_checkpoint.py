"""What `--resume` finds: a run to continue, a finished one, none, or one that it must refuse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodes.messaging.endpoint import Endpoint
from p2p.config.errors import UserError
from scenarios.cli.main import main
from scenarios.loading.load import dump_scenario
from scenarios.run_folder.reader import open_run
from scenarios.running.checkpoint import FILE, Checkpoint, read_checkpoint, write_checkpoint
from scenarios.running.run import run_scenario
from tests.scenarios.running.resumed_runs import SCENARIO, Stop, files, interrupt, lasting, run, scenario

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_round_is_written")]


def test_a_finished_run_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, a message, and no file touched."""
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    run(tmp_path / "run", "learning=none")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()}
    options = ["--set", "learning=none", "--out", str(tmp_path / "run"), "--resume"]
    assert main(["run", str(path), *options]) == 0
    assert "has finished; nothing is left to do" in capsys.readouterr().err
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()} == before


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_a_run_that_begins_anew_is_told(tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also when quiet: the folder may be mistyped. Standard output stays clean."""
    command = ["run", "tiny", "--set", "learning=none", "--out", str(tmp_path / "run"), option]
    assert main([*command, "--resume"]) == 0
    told = capsys.readouterr()
    assert told.err == "nothing to resume; the run begins\n"
    assert "resume; " not in told.out
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().err == "", "what was found and goes on as asked is not told when quiet"


def test_another_scenario_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first key that differs is named; exit code 2; the folder stays as it was."""
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    run(tmp_path / "run", "learning=none", stop_after=1)
    options = ["--set", "learning=none", "--out", str(tmp_path / "run"), "--resume"]
    assert main(["run", str(path), *options, "--set", "protocol.exchange_with=2", "--set", "rounds=5"]) == 2
    assert "rounds = 5: the run in" in capsys.readouterr().err
    assert main(["run", str(path), *options, "--set", "protocol.exchange_with=2"]) == 2
    assert "protocol.exchange_with = 2: the run in" in capsys.readouterr().err
    assert main(["run", str(path), *options]) == 0
    stored = tmp_path / "run" / "scenario.yaml"
    stored.write_text(stored.read_text(encoding="utf-8").replace("  generated: none\n", ""), encoding="utf-8")
    assert main(["run", str(path), *options]) == 2
    assert "has no such key; it was begun with another scenario, or by another version" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(UserError, match="holds no run to resume"):
        run(tmp_path / "other", resume=True)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    """One changed byte, wherever it is, a part cut off, or another format: a message, never a wrong result."""
    run(tmp_path / "run", stop_after=2)
    path = tmp_path / "run" / FILE
    good = path.read_bytes()
    for place in np.linspace(0, len(good) - 1, 60).astype(int).tolist():
        path.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        with pytest.raises(UserError, match=r"--resume = .*state.safetensors: (is damaged|has format)"):
            run(tmp_path / "run", resume=True)
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(UserError, match="is damaged"):
        run(tmp_path / "run", resume=True)
    path.write_bytes(good.replace(b'{\\"format\\": 1', b'{\\"format\\": 0'))
    with pytest.raises(UserError, match=r"has format 0; this peerveil resumes format 1; use the version that"):
        run(tmp_path / "run", resume=True)
    path.write_bytes(good)
    assert run(tmp_path / "run", resume=True)["rounds_completed"] == 4


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    """One of another scenario, or one whose events were others."""
    for name, seed in (("run", 3), ("other", 5)):
        run(tmp_path / name, f"seed={seed}", "learning=none", "availability=always", stop_after=2)
    mine, other = (read_checkpoint(tmp_path / name) for name in ("run", "other"))
    assert mine is not None
    assert other is not None
    write_checkpoint(tmp_path / "run", other)
    with pytest.raises(UserError, match="belongs to another scenario or plug-in"):
        run(tmp_path / "run", "learning=none", "availability=always", resume=True)
    chain = np.concatenate([mine.chain[:1], other.chain[1:]])
    write_checkpoint(tmp_path / "run", Checkpoint(scenario_sha256=mine.scenario_sha256, round_number=2, chain=chain))
    with pytest.raises(UserError, match=r"replay differs from the interrupted run in round 2: other version"):
        run(tmp_path / "run", "learning=none", "availability=always", resume=True)


def test_a_run_that_still_goes_is_not_resumed(tmp_path: Path) -> None:
    """Two processes never write to one folder."""
    told: list[str] = []

    def meddle(row: Mapping[str, Any]) -> None:
        try:
            run(tmp_path / "run", "learning=none", resume=True)
        except UserError as error:
            told.append(str(error))

    run_scenario(scenario("learning=none", "rounds=1"), tmp_path / "run", listeners=[meddle])
    assert len(told) == 1
    told.clear()

    def resume_the_same(row: Mapping[str, Any]) -> None:
        with pytest.raises(UserError, match="another process is writing to it"):
            run(tmp_path / "two", "learning=none", resume=True)

    run_scenario(scenario("learning=none"), tmp_path / "two", listeners=[resume_the_same])


def test_a_run_that_had_hardly_begun(tmp_path: Path) -> None:
    """Killed before its scenario was written, or before there was a folder, it simply begins."""
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint" / "lock").touch()
    for name in ("run", "new"):
        assert "resumed" not in run(tmp_path / name, "learning=none", resume=True)
    assert lasting(tmp_path / "run") == lasting(tmp_path / "new")


def test_the_newest_unfinished_run_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--out`: seeds that are done stay, the interrupted one goes on, one that never began begins."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.yaml"
    quiet = ("learning=none", "availability=always", "faults=[]")
    path.write_text(dump_scenario(scenario(*quiet)), encoding="utf-8")
    run_scenario(scenario(*quiet), None)
    with monkeypatch.context() as patch:
        patch.setattr(Endpoint, "enter", interrupt)
        assert main(["run", str(path), "--seed", "5", "--quiet"]) == 130
    run_scenario(scenario(*quiet, "seed=4"), None, listeners=[Stop(2)])
    assert main(["run", str(path), "--seeds", "4", "--resume", "--quiet"]) == 0
    assert files(tmp_path / "runs") == {"resumed-3", "resumed-4", "resumed-5", "resumed-6"}
    summaries = [open_run(tmp_path / "runs" / f"resumed-{seed}").summary or {} for seed in (3, 4, 5, 6)]
    assert [summary.get("resumed") for summary in summaries] == [None, 1, 1, None]
    assert all(summary["stopped_because"] != "interrupted" for summary in summaries)
