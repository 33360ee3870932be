"""What the golden runs do; `python tests/golden/regenerate.py` writes all of it down anew.

`tiny` is kept row by row. Each other run is a scenario beside this file (`<name>.yaml`) and a digest of its events with
counts that say where a change is (`<name>.json`). Regenerate only when the events of a run are meant to change, and say
why in the commit.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from p2p.log import records
from p2p.log.column_table import Table
from p2p.log.log import Log
from scenarios.build import build
from scenarios.loading.load import load_scenario
from scenarios.run_folder.arrow_tables import WORDS
from scenarios.run_folder.digest import events_digest

HERE = Path(__file__).parent
FILE = HERE / "tiny-events.json"
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


def run_names() -> list[str]:
    """The golden runs beside `tiny`."""
    return sorted(path.stem for path in HERE.glob("*.yaml"))


def golden_summary(name: str) -> dict[str, Any]:
    """A run's digest, and counts by which a change is found: the digest alone would only say that there is one."""
    simulation = build(load_scenario(str(HERE / f"{name}.yaml")))
    simulation.run()
    log = simulation.log
    return {
        "digest": events_digest(log),
        "ended_us": round(simulation.clock.now * 1e6),
        "stopped_because": simulation.proxy.outcome.stopped_because,
        "rows": {table: len(getattr(log, table)) for table in (*COLUMNS, "aggregations", "privacy")},
        "messages": message_counts(log),
        "rounds": [round_facts(record) for record in log.rounds],
    }


def message_counts(log: Log) -> dict[str, int]:
    """How many messages of each kind had each outcome and reason."""
    table = log.messages
    columns = (table[name].tolist() for name in ("kind", "outcome", "reason"))
    found = Counter(
        f"{records.KINDS[kind]} {records.OUTCOMES[outcome]} {records.REASONS[reason]}".strip()
        for kind, outcome, reason in zip(*columns, strict=True)
    )
    return dict(sorted(found.items()))


def round_facts(record: dict[str, Any]) -> list[Any]:
    """A round's number, end in microseconds, leader, and updates used and missing."""
    return [
        record["round"],
        round(record["end_s"] * 1e6),
        *(record[name] for name in ("leader", "updates_used", "updates_missing")),
    ]


def write() -> None:
    """One row or fact per line, so that a change can be read."""
    parts = []
    for name, found in golden_rows().items():
        lines = ",\n".join(f"  {json.dumps(row)}" for row in found)
        parts.append(f'"{name}": [\n{lines}\n]' if found else f'"{name}": []')
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    for name in run_names():
        facts = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden_summary(name).items())
        (HERE / f"{name}.json").write_text("{\n" + facts + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
