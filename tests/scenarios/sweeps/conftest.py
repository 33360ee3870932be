"""Small sweeps and what they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SMALL = """
name: small
bases: [tiny]
axes: {privacy.noise.sigma: [0.01, 0.1], protocol.train_per_round: [3, 4]}
seeds: 2
"""
BAD_DATA = '''
"""Synthetic data that misbehaves at some sizes."""
import os, signal
from dataclasses import dataclass
from pathlib import Path
from nodes.datasets.registry import Synthetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Moody(Synthetic):
    """Fails, or ends its process, by the number of test records.

    Attributes:
        marks: folder for marks
    """

    marks: str = ""

    def load(self, data_dir, seed):
        if self.test_samples == 13:
            raise ValueError("thirteen is unlucky")
        if self.test_samples == 66 or (self.test_samples == 65 and self._first_time()):
            os.kill(os.getpid(), signal.SIGKILL)
        return Synthetic.load(self, data_dir, seed)

    def _first_time(self):
        mark = Path(self.marks) / "killed"
        if mark.exists():
            return False
        mark.touch()
        return True
'''


def command(*arguments: str) -> list[str]:
    """A call of `peerveil sweep` in a process of its own."""
    return [sys.executable, "-m", "scenarios", "sweep", *arguments]


@pytest.fixture
def sweep(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `peerveil sweep` in an empty folder; returns code and output."""

    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command(*arguments), cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False
        )
        assert not check or done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def environment() -> dict[str, str]:
    """The environment of a call from another folder."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A sweep of eight cells."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def moody(tmp_path: Path) -> Callable[[str], Path]:
    """A sweep over sizes of a data set that misbehaves; arguments as in the plug-in above."""

    def write(values: str) -> Path:
        (tmp_path / "moody.py").write_text(BAD_DATA)
        (tmp_path / "base.yaml").write_text(
            "name: moody\nrounds: 1\nclients: 4\n"
            f"data: {{name: 'moody:Moody', samples: 80, features: 4, classes: 2, marks: '{tmp_path}'}}\nmodel: linear\n"
            "protocol: {kind: gossip, train_per_round: 3, exchange_with: 2}\n"
        )
        path = tmp_path / "moody.yaml"
        path.write_text(f"name: moody\nbases: [base.yaml]\naxes: {{data.test_samples: {values}}}\n")
        return path

    return write


def comparable(path: Path) -> list[dict[str, Any]]:
    """The rows of runs.parquet, sorted, without wall times and without where they are."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path / "runs.parquet").to_pylist()
    left_out = ("seconds", "worker", "folder")
    return sorted(
        ({name: value for name, value in row.items() if name not in left_out} for row in rows),
        key=lambda row: str(row["cell"]),
    )
