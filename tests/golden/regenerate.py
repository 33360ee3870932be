"""The canonical rows of a `tiny` run; `python tests/golden/regenerate.py` writes them down anew.

Do that only when the events of a run are meant to change, and say why in the commit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from p2p.log import Log
from p2p.table import Table
from scenarios.build import build
from scenarios.load import load_scenario
from scenarios.tables import WORDS

FILE = Path(__file__).parent / "tiny-events.json"
COLUMNS = {
    "messages": "sent_s sender receiver kind attempt round size_bytes overhead_bytes arrived_s outcome reason",
    "spans": "start_s node name round end_s",
    "dropouts": "at_s node aggregator what round reason",
    "graphs": "round sender receiver",
}


def golden_rows() -> dict[str, list[list[Any]]]:
    """What happens in `tiny`: sorted rows with words for codes and times in whole microseconds, null for never."""
    simulation = build(load_scenario("tiny"))
    simulation.run()
    return {name: rows(simulation.log, name) for name in COLUMNS}


def rows(log: Log, name: str) -> list[list[Any]]:
    """One table's rows."""
    table: Table = getattr(log, name)
    columns = [_column(name, column, table[column]) for column in COLUMNS[name].split()]
    return sorted(map(list, zip(*columns, strict=True)), key=lambda row: [-1 if cell is None else cell for cell in row])


def _column(table: str, column: str, values: np.ndarray[Any, Any]) -> list[Any]:
    words = WORDS.get(table, {}).get(column)
    if words is not None:
        return [words[code] for code in values]
    if values.dtype.kind == "f":
        return [None if np.isnan(value) else round(float(value) * 1e6) for value in values]
    return [int(value) for value in values]


def write() -> None:
    """One row per line, so that a change can be read."""
    parts = []
    for name, found in golden_rows().items():
        lines = ",\n".join(f"  {json.dumps(row)}" for row in found)
        parts.append(f'"{name}": [\n{lines}\n]' if found else f'"{name}": []')
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
