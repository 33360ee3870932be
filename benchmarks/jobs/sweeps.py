"""What sweeping costs beside its cells, and what memory it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import Effort, Figure, timed

_WORKERS = 2
_ROOT = Path(__file__).parents[2]


def sweeps(effort: Effort) -> list[Figure]:
    """A sweep of 200 tiny cells: its time, and the memory of a process that runs all of them."""
    return [_overhead(effort), _memory(effort)]


def _overhead(effort: Effort) -> Figure:
    """Started as a user would, against its cells' own times divided by the workers."""
    seeds = 4 if effort.quick else 100
    with tempfile.TemporaryDirectory() as folder:
        command = [*_command(folder, seeds), "--workers", str(_WORKERS), "--json"]
        told: list[str] = []
        wall_s = timed(lambda: told.append(subprocess.check_output(command, cwd=_ROOT, text=True)))
        cells_s = sum(row["seconds"] for row in json.loads(told[0])["cells"])
    ratio = wall_s * _WORKERS / cells_s
    detail = f"{2 * seeds} cells, {wall_s:.2f} s with {_WORKERS} workers; the cells themselves {cells_s:.2f} s"
    return Figure("sweep of tiny cells", ratio, "times its cells divided by the workers", 1.3, detail=detail)


def _memory(effort: Effort) -> Figure:
    """The most memory of a process that sweeps and runs the cells itself, after many cells against after few."""
    few, many = (2, 4) if effort.quick else (10, 100)
    first, last = _most_bytes(few), _most_bytes(many)
    detail = f"{first / 1e6:.0f} MB after {2 * few} cells, {last / 1e6:.0f} MB after {2 * many}"
    return Figure("memory of a sweep", last / first, "times that of a tenth of its cells", 1.25, detail=detail)


def _most_bytes(seeds: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = [*_command(folder, seeds), "--on", "serial", "--quiet"]
        child = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"the sweep ended with {child.returncode}")
    return 1024 * used.ru_maxrss


def _command(folder: str, seeds: int) -> list[str]:
    path = Path(folder) / "many.yaml"
    path.write_text(f"name: many\nbases: [tiny]\naxes: {{privacy.noise.sigma: [0.01, 0.1]}}\nseeds: {seeds}\n")
    command = [sys.executable, "-m", "scenarios", "sweep", str(path)]
    return [*command, "--out", f"{folder}/sweep", "--store", f"{folder}/cells"]
