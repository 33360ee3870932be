"""Run folders: where they go, what they hold, and what a killed run leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.run_folder.arrow_tables import LOGGED, TABLES, measured_from
from scenarios.run_folder.digest import events_digest
from scenarios.run_folder.environment import describe_environment
from scenarios.run_folder.reader import open_run
from scenarios.run_folder.writer import RunFolder, check_out

SUMMARY: dict[str, Any] = {"format": 1, "stopped_because": "all rounds done", "digest": {}}


def test_default_folder_takes_a_free_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of one name and seed stand beside each other."""
    monkeypatch.chdir(tmp_path)
    made = [RunFolder.create(None, "a run/..", 7).path for _ in range(3)]
    assert made == [Path("runs/a-run-7"), Path("runs/a-run-7-2"), Path("runs/a-run-7-3")]
    assert RunFolder.create(None, "..", 1).path == Path("runs/run-1")
    assert RunFolder.create(None, "é" * 300, 1).path.is_dir()


def test_out_must_be_new_or_empty(tmp_path: Path) -> None:
    """A folder with something in it, or a file, is refused and left alone."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "empty").mkdir()
    check_out(tmp_path / "empty")
    check_out(tmp_path / "new" / "deep")
    assert not (tmp_path / "new").exists()
    for bad, why in (("full", "is not empty"), ("full/x", "is a file"), ("full/x/y", "is a file")):
        with pytest.raises(UserError, match=f"--out = .*{bad}: .*{why}.*; name a folder that is new or empty"):
            RunFolder.create(tmp_path / bad, "n", 1)
    with pytest.raises(UserError, match=r"--out = .*choose a folder where you may write"):
        check_out(tmp_path / ("long" * 200))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_out_must_be_writable(tmp_path: Path) -> None:
    """A folder one may not write to is refused."""
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="is not writable; choose a folder where you may write"):
        check_out(tmp_path / "run")
    tmp_path.chmod(0o700)


def test_finished_run(tmp_path: Path, random_log: Callable[..., Log]) -> None:
    """A finished run holds whole tables, model and summary, no parts, and reads back as the same log."""
    log, folder = random_log(4), RunFolder.create(tmp_path / "run", "n", 1)
    folder.begin("name: n\nclients: 6\n", describe_environment(1, {"mine:Net": "ab" * 32}))
    folder.write_part(log, 1)
    folder.finish(log, SUMMARY, {"layer.weight": np.ones((2, 3), dtype=np.float32).T})
    files = {path.name for path in folder.path.iterdir()}
    assert files == {f"{name}.parquet" for name in TABLES} | {
        *("summary.json", "scenario.yaml", "environment.json", "model.safetensors"),
    }
    assert load_file(folder.path / "model.safetensors")["layer.weight"].shape == (3, 2)
    environment = json.loads((folder.path / "environment.json").read_text())
    assert environment["versions"]["numpy"] == np.__version__
    run = open_run(folder.path)
    assert run.summary == SUMMARY
    assert run.scenario == {"name": "n", "clients": 6}
    assert events_digest(run.log) == events_digest(log)
    assert [record["leader"] for record in run.log.rounds] == [record["leader"] for record in log.rounds]


def test_killed_run_leaves_its_parts(tmp_path: Path, random_log: Callable[..., Log]) -> None:
    """Without a summary the parts are the run: exactly the rows written so far, with what had ended since."""
    log, folder = random_log(5), RunFolder.create(tmp_path / "run", "n", 1)
    outcome = log.messages["outcome"].copy()
    log.messages["outcome"][:] = 0
    folder.begin("name: n\n", describe_environment(None, {}))
    folder.write_part(log, 1)
    log.messages["outcome"][:] = outcome
    log.messages["outcome"][::2] = 0
    folder.write_part(log, 2)
    run = open_run(folder.path)
    assert run.summary is None
    assert events_digest(run.log) == events_digest(log)
    for name in LOGGED:
        assert len(getattr(run.log, name)) == len(getattr(log, name))
    assert len(run.log.rounds) == 3
    assert list(np.asarray(run.table("messages")["id"])) == list(range(len(log.messages)))


def test_killed_before_the_first_round(tmp_path: Path) -> None:
    """Parts of nothing are an empty log."""
    folder = RunFolder.create(tmp_path / "run", "n", 1)
    folder.begin("name: n\n", describe_environment(None, {}))
    (folder.path / "parts").mkdir()
    assert len(open_run(folder.path).log.messages) == 0


def test_interrupted_run_says_so(tmp_path: Path, random_log: Callable[..., Log]) -> None:
    """After Ctrl-C the prefix is merged and the summary names the reason."""
    folder = RunFolder.create(tmp_path / "run", "n", 1)
    folder.finish(measured_from(random_log(6), 2), SUMMARY, partial=True)
    run = open_run(folder.path)
    assert run.summary is not None
    assert run.summary["stopped_because"] == "interrupted"
    assert not (folder.path / "model.safetensors").exists()


def test_a_folder_of_runs_names_them(tmp_path: Path) -> None:
    """As several seeds leave it: give them all, or one; a killed run counts too."""
    (tmp_path / "ring-1").mkdir()
    (tmp_path / "ring-1" / "summary.json").write_text('{"format": 1}')
    (tmp_path / "notes").mkdir()
    with pytest.raises(UserError) as caught:
        open_run(tmp_path)
    assert str(caught.value).endswith(f"; it holds a run, ring-1; give `{tmp_path}/ring-1`")
    (tmp_path / "ring-2" / "parts").mkdir(parents=True)
    with pytest.raises(UserError) as caught:
        open_run(tmp_path)
    assert str(caught.value).endswith(
        f"; it holds 2 runs, such as ring-1; give `{tmp_path}/*` for all or `{tmp_path}/ring-1` for one"
    )


def test_foreign_newer_and_damaged_folders(tmp_path: Path) -> None:
    """What is no run of this program is refused with the reason and the cure."""
    with pytest.raises(UserError, match=r"RUN = .*has no summary.json and no parts; give"):
        open_run(tmp_path)
    with pytest.raises(UserError, match=r"RUN = .*is not a folder; give"):
        open_run(tmp_path / "nowhere")
    (tmp_path / "summary.json").write_text('{"format": 2}')
    with pytest.raises(UserError, match="has format 2 and this peerveil reads up to 1; install a newer one"):
        open_run(tmp_path)
    for text, why in (("{", "is damaged"), ("[]", "is not a JSON object"), ('{"format": "x"}', "is unknown")):
        (tmp_path / "summary.json").write_text(text)
        with pytest.raises(UserError, match=why):
            open_run(tmp_path)
    (tmp_path / "summary.json").write_text('{"format": 1}')
    with pytest.raises(UserError, match=r"messages.parquet: is missing; run the scenario again"):
        open_run(tmp_path).table("messages")
    (tmp_path / "messages.parquet").write_text("PAR?")
    with pytest.raises(UserError, match="is damaged"):
        open_run(tmp_path).table("messages")


def test_a_write_that_fails_is_told(tmp_path: Path) -> None:
    """A full or vanished disk gives a message, and no half file."""
    folder = RunFolder.create(tmp_path / "run", "n", 1)
    folder.path.rmdir()
    with pytest.raises(UserError, match=r"scenario.yaml: cannot be written \(No such file or directory\); free"):
        folder.begin("name: n\n", {})
