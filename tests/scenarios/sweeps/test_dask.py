"""Sweeps on a real Dask cluster: a scheduler and workers in processes of their own, some of which are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.scenarios.sweeps.conftest import command, comparable, environment

pytestmark = pytest.mark.extra
Run = Callable[..., subprocess.CompletedProcess[str]]
LONG = """
name: long
bases: [tiny]
settings: {rounds: 150}
axes: {privacy.noise.sigma: [0.01, 0.1, 1.0]}
seeds: 2
"""


class Cluster:
    """A scheduler and workers that are started and killed by the test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start(
            "dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)
        )
        wait_until(self.file.exists)
        self.address = str(json.loads(self.file.read_text())["address"])

    def add_worker(self) -> None:
        """Starts a worker without a nanny: who kills it, kills the process that computes."""
        options = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder))
        self.workers.append(self._start("dask_worker", self.address, *options))

    def kill_worker(self) -> None:
        """kill -9 the oldest worker."""
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()

    def close(self) -> None:
        """Ends all processes of the cluster."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", f"distributed.cli.{module}", *options]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(words, cwd=self.folder, env=environment(), stdout=quiet, stderr=quiet)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    pytest.importorskip("distributed")
    made = Cluster(tmp_path)
    made.add_worker()
    made.add_worker()
    yield made
    made.close()


def wait_until(holds: Callable[[], bool], at_most_s: float = 120.0) -> None:
    """Waits for something that another process does."""
    until_s = time.monotonic() + at_most_s
    while not holds():
        assert time.monotonic() < until_s, "it does not happen"
        time.sleep(0.05)


def begin(path: Path, folder: Path, *options: str) -> subprocess.Popen[str]:
    """Starts a sweep that the test will disturb."""
    return subprocess.Popen(
        command(str(path), *options), cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True
    )


def test_killed_workers_and_a_killed_sweep_lose_no_cell(sweep: Run, cluster: Cluster, tmp_path: Path) -> None:
    """One worker, then all of them and the sweep; started again, every cell is recorded once, as in a serial sweep."""
    path = tmp_path / "long.yaml"
    path.write_text(LONG)
    sweep(str(path), "--on", "serial", "--store", "calm", "--out", "undisturbed")
    store = tmp_path / "runs" / "cells"
    process = begin(path, tmp_path, "--on", cluster.address, "--out", "killed")
    wait_until(lambda: len(list(store.glob("*/parts"))) >= 2)
    cluster.kill_worker()
    wait_until(lambda: len(list(store.glob("*/summary.json"))) >= 1)
    finished = {file: file.stat().st_mtime_ns for file in store.glob("*/summary.json")}
    cluster.kill_worker()
    process.kill()
    process.communicate()
    cluster.add_worker()
    cluster.add_worker()
    sweep(str(path), "--on", cluster.address, "--out", "killed")
    assert comparable(tmp_path / "killed") == comparable(tmp_path / "undisturbed")
    assert all(file.stat().st_mtime_ns == written for file, written in finished.items())
    folders = [folder for folder in store.iterdir() if not folder.name.startswith(".")]
    assert len(folders) == 6


def test_a_scheduler_that_vanishes_is_one_message(cluster: Cluster, tmp_path: Path) -> None:
    """Exit code 2; what has ended stays, and another executor finishes the sweep."""
    path = tmp_path / "long.yaml"
    path.write_text(LONG)
    process = begin(path, tmp_path, "--on", cluster.address)
    wait_until(lambda: bool(list((tmp_path / "runs" / "cells").glob("*/summary.json"))))
    cluster.scheduler.send_signal(signal.SIGKILL)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 2, told
    assert "the executor is lost" in told
    assert "Traceback" not in told
    states = [row["state"] for row in comparable(tmp_path / "runs" / "sweeps" / "long")]
    assert "done" in states


def test_a_cluster_of_this_machine(sweep: Run, small: Path, tmp_path: Path) -> None:
    """`--on dask` gives the table of a serial sweep."""
    pytest.importorskip("distributed")
    sweep(str(small), "--on", "serial", "--store", "one", "--out", "serial")
    sweep(str(small), "--on", "dask", "--workers", "2", "--store", "two", "--out", "dask")
    assert comparable(tmp_path / "dask") == comparable(tmp_path / "serial")


def test_no_scheduler_no_sweep(sweep: Run, small: Path) -> None:
    """One message that names the address."""
    pytest.importorskip("distributed")
    done = sweep(str(small), "--on", "tcp://127.0.0.1:1", check=False)
    assert done.returncode == 2
    assert "--on = tcp://127.0.0.1:1: no scheduler answers" in done.stderr
