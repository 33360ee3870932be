"""Sweeps as they are run: in one process or several, stopped in the middle, with bad cells among them."""

from __future__ import annotations

import json
import os
import random as chance  # noqa: TID251 - when a process is killed is no part of a simulation
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.cli import main
from scenarios.sweeps.store import Store
from tests.scenarios.sweeps.conftest import command, comparable, environment

pytestmark = pytest.mark.slow
Run = Callable[..., subprocess.CompletedProcess[str]]


def test_serial_processes_and_shards_give_equal_tables(sweep: Run, small: Path, tmp_path: Path) -> None:
    """Sorted, without wall times; two shards that start together share the work and write one table."""
    sweep(str(small), "--on", "serial", "--store", "one", "--out", "serial")
    sweep(str(small), "--workers", "2", "--store", "two", "--out", "processes")
    shards = [
        subprocess.Popen(
            command(str(small), "--shard", f"{number}/2", "--on", "serial", "--store", "three", "--out", "shards"),
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
        )
        for number in (1, 2)
    ]
    assert [shard.wait() for shard in shards] == [0, 0]
    for shard in shards:
        assert shard.stdout is not None
        shard.stdout.close()
    expected = comparable(tmp_path / "serial")
    assert [row["state"] for row in expected] == ["done"] * 8
    assert all(row["digest_events"] and row["digest_learning"] for row in expected)
    assert comparable(tmp_path / "processes") == expected
    assert comparable(tmp_path / "shards") == expected


def test_a_finished_cell_is_found_also_by_another_sweep(sweep: Run, small: Path, tmp_path: Path) -> None:
    """The second sweep has two of its three cells already; a new name and a further value change nothing."""
    sweep(str(small), "--on", "serial", "--only", "seed=1")
    other = tmp_path / "other.yaml"
    other.write_text(
        "name: other\nbases: [tiny]\naxes: {privacy.noise.sigma: [0.01, 0.1, 1.0]}\n"
        "settings: {protocol.train_per_round: 3}"
    )
    told = json.loads(sweep(str(other), "--on", "serial", "--json").stdout)
    assert (told["found"], told["done"]) == (2, 3)
    status = json.loads(sweep(str(small), "--status", "--json").stdout)["cells"]
    assert sorted(cell["state"] for cell in status) == ["done"] * 4 + ["waiting"] * 4
    folders = [path for path in (tmp_path / "runs" / "cells").iterdir() if not path.name.startswith(".")]
    assert len(folders) == 5


def test_a_bad_cell_fails_alone(sweep: Run, moody: Callable[[str], Path]) -> None:
    """Its message is in the table; it is not tried again unless asked for, and then fails again."""
    path = str(moody("[12, 13, 14]"))
    assert "--allow-plugins" in sweep(path, check=False).stderr
    done = sweep(path, "--allow-plugins", "--json", "--workers", "2", check=False)
    told = json.loads(done.stdout)
    assert (done.returncode, told["done"], told["failed"]) == (1, 2, 1)
    message = next(row["message"] for row in told["cells"] if row["state"] == "failed")
    assert "ValueError: thirteen is unlucky" in message
    again = json.loads(sweep(path, "--allow-plugins", "--json", check=False).stdout)
    assert (again["found"], again["failed"]) == (2, 1)
    retried = sweep(path, "--allow-plugins", "--retry", "failed", "--on", "serial", check=False)
    assert retried.returncode == 1
    assert "thirteen is unlucky" in retried.stderr


def test_a_cell_that_kills_its_worker_fails_alone(sweep: Run, moody: Callable[[str], Path]) -> None:
    """65 is killed once and then runs; 66 kills every worker; 64 and 67 are not hurt."""
    done = sweep(str(moody("[64, 65, 66, 67]")), "--allow-plugins", "--json", "--workers", "2", check=False)
    rows = {row["data.test_samples"]: row for row in json.loads(done.stdout)["cells"]}
    assert [rows[size]["state"] for size in (64, 65, 66, 67)] == ["done", "done", "failed", "done"]
    assert "the worker process died 3 times" in rows[66]["message"]


def test_kills_at_random_moments_lose_nothing(sweep: Run, tmp_path: Path) -> None:
    """kill -9 of the sweeping process; its workers end with it; the digests are those of an undisturbed sweep."""
    path = tmp_path / "long.yaml"
    path.write_text(
        "name: long\nbases: [tiny]\nsettings: {rounds: 40}\naxes: {privacy.noise.sigma: [0.01, 0.1]}\nseeds: 2"
    )
    sweep(str(path), "--on", "serial", "--store", "calm", "--out", "undisturbed")
    draw = chance.Random(1)  # noqa: S311
    for _ in range(4):
        process = subprocess.Popen(
            command(str(path), "--workers", "2", "--out", "killed"), cwd=tmp_path, env=environment()
        )
        time.sleep(draw.uniform(1.0, 3.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    sweep(str(path), "--out", "killed", "--workers", "2")
    assert comparable(tmp_path / "killed") == comparable(tmp_path / "undisturbed")


def test_ctrl_c_keeps_what_is_finished(small: Path, tmp_path: Path) -> None:
    """Exit code 130, a table of what is done, and the next call goes on."""
    text = small.read_text().replace("seeds: 2", "seeds: 40")
    small.write_text(text)
    process = subprocess.Popen(
        command(str(small), "--workers", "2"), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    store = tmp_path / "runs" / "cells"
    while process.poll() is None and len(list(store.glob("*/summary.json"))) < 3:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    states = [row["state"] for row in comparable(tmp_path / "runs" / "sweeps" / "small")]
    assert states.count("done") >= 3
    assert "open" in states


def test_a_folder_that_cannot_be_written_is_one_message(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is a file; the sweep's folder is one; nothing else is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    for arguments in (["--store", "taken"], ["--out", "taken"]):
        assert main.main(["sweep", str(small), "--on", "serial", *arguments]) == 2
        told = capsys.readouterr().err
        assert "cannot be written" in told
        assert len(told.splitlines()) == 1


def test_claims_are_seen_by_those_who_may_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim holds as long as its holder, and asking for it writes nothing."""
    store = Store(tmp_path)
    store.prepare()
    assert not store.is_claimed("a")
    with store.claim("a") as mine:
        monkeypatch.setattr(Path, "open", lambda path: open(path))  # noqa: SIM115 - reading alone is allowed
        assert (mine, store.is_claimed("a")) == (True, True)
    assert not store.is_claimed("a")


def test_a_full_disk_stops_the_sweep_and_fails_no_cell(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message; the cell is open, not failed, and runs when there is room again."""
    from scenarios.run_folder import writer

    def full(self: object, name: str, arrow: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(writer.RunFolder, "_write_table", full)
        assert main.main(["sweep", str(small), "--on", "serial"]) == 2
    told = capsys.readouterr().err
    assert "No space left" in told
    assert len(told.splitlines()) == 1
    assert main.main(["sweep", str(small), "--on", "serial", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 8


def test_bad_sweeps_write_nothing(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and no folder; so do unknown places and shards."""
    os.chdir(tmp_path)
    small.write_text(small.read_text().replace("sigma: [0.01, 0.1]", "sigma: [much]"))
    assert main.main(["sweep", str(small)]) == 2
    assert "privacy.noise.sigma = much" in capsys.readouterr().err
    small.write_text("name: a\nbases: [tiny]")
    for arguments in (["--shard", "3/2"], ["--on", "the moon"], ["--only", "x=1"]):
        assert main.main(["sweep", str(small), *arguments]) == 2
        assert arguments[0] in capsys.readouterr().err
    assert main.main(["sweep", str(small), "--dry-run", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["cells"]
    assert row["cpu_s"] > 0
    assert row["bytes"] > 0
    assert row["memory_bytes"] > 1e8
    assert not (tmp_path / "runs").exists()


ELSEWHERE = '''
from concurrent.futures import Executor
from dataclasses import replace
from scenarios.sweeps.executors import SerialExecutor


class Blind(SerialExecutor):
    """Runs cells as a machine would that does not see the store."""

    def submit(self, fn, /, task):
        return super().submit(fn, replace(task, store="/nowhere/to/be/seen"))


def make():
    return Blind()


def nothing():
    return 3
'''


def test_an_executor_of_ones_own_without_a_shared_disk(sweep: Run, small: Path, tmp_path: Path) -> None:
    """Results come back over the wire and fill the same store with the same figures."""
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    sweep(str(small), "--on", "serial", "--store", "one", "--out", "serial")
    sweep(str(small), "--on", "elsewhere:make", "--store", "two", "--out", "blind")
    assert comparable(tmp_path / "blind") == comparable(tmp_path / "serial")
    folder = next((tmp_path / "two").glob("*--*"))
    assert {file.name for file in folder.iterdir()} >= {"summary.json", "messages.parquet", "scenario.yaml"}
    assert "must be a concurrent.futures.Executor" in sweep(str(small), "--on", "elsewhere:nothing", check=False).stderr
    assert "cannot be imported" in sweep(str(small), "--on", "nowhere:make", "--store", "x", check=False).stderr


@pytest.mark.slow
def test_a_program_needs_no_guard(tmp_path: Path) -> None:
    """Workers do not import the program that sweeps, which would start the sweep again in each."""
    program = tmp_path / "program.py"
    program.write_text(
        "import peerveil\n"
        "grid = {'name': 'plain', 'bases': ['tiny'], 'settings': {'learning': 'none'}, 'seeds': 2}\n"
        "cells = peerveil.sweep(grid, out='out', store='store', workers=1)\n"
        "print(sorted(cells.table.state), __file__ is not None)\n"
    )
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "['done', 'done'] True", done.stderr[-2000:]
    assert "Traceback" not in done.stderr
