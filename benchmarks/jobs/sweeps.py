"""What sweeping costs beside its cells."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import Effort, Figure, timed

_WORKERS = 2


def sweep_overhead(effort: Effort) -> list[Figure]:
    """A sweep of 200 tiny cells, started as a user would, against its cells' own times divided by the workers."""
    seeds = 4 if effort.quick else 100
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.yaml"
        path.write_text(f"name: many\nbases: [tiny]\naxes: {{privacy.noise.sigma: [0.01, 0.1]}}\nseeds: {seeds}\n")
        command = [sys.executable, "-m", "scenarios", "sweep", str(path), "--workers", str(_WORKERS), "--json"]
        told: list[str] = []
        root = Path(__file__).parents[2]
        places = ["--out", f"{folder}/sweep", "--store", f"{folder}/cells"]
        wall_s = timed(lambda: told.append(subprocess.check_output([*command, *places], cwd=root, text=True)))
        cells_s = sum(row["seconds"] for row in json.loads(told[0])["cells"])
    ratio = wall_s * _WORKERS / cells_s
    detail = f"{2 * seeds} cells, {wall_s:.2f} s with {_WORKERS} workers; the cells themselves {cells_s:.2f} s"
    return [Figure("sweep of tiny cells", ratio, "times its cells divided by the workers", 1.3, detail=detail)]
