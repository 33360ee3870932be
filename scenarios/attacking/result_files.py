"""The `attacks` folder of a run: for each attack and observer a table, figures and curves as JSON, and pictures."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from privacy.attacks.attack import Result
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.parquet_files import write_table

FOLDER = "attacks"


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result read from a run folder; `images` has the pictures of each grid, by its place."""

    headline: str
    figures: dict[str, Any]
    curves: list[dict[str, Any]]
    grids: list[dict[str, Any]]
    images: list[NDArray[np.float32]]


def write_result(run: Path, stem: str, result: Result) -> None:
    """Writes one result; the JSON file comes last and promises the others."""
    import pyarrow as pa

    folder = run / FOLDER
    atomic_write.make_folder(folder)
    if result.table:
        write_table(folder / f"{stem}.parquet", pa.table(dict(result.table)))
    if result.grids:
        images = {f"grid-{place}": np.ascontiguousarray(grid.images) for place, grid in enumerate(result.grids)}
        atomic_write.write_tensors(folder / f"{stem}.safetensors", images)
    grids = [{"title": grid.title, "rows": list(grid.rows), "text": grid.text} for grid in result.grids]
    entry = {"headline": result.headline, "figures": dict(result.figures), "grids": grids}
    entry["curves"] = [asdict(curve) for curve in result.curves]
    atomic_write.write_text(folder / f"{stem}.json", to_json(entry))


def read_result(run: Path, stem: str) -> StoredResult:
    """Reads one result."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = run / FOLDER / f"{stem}.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        images = load_file(path.with_suffix(".safetensors")) if stored["grids"] else {}
        pictures = [images[f"grid-{place}"] for place in range(len(stored["grids"]))]
        return StoredResult(stored["headline"], stored["figures"], stored["curves"], stored["grids"], pictures)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise UserError(f"RUN = {path}: is missing or damaged ({error}); attack the run again") from error
