"""When a run is written down while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from scenarios.build import build
from scenarios.loading.load import parse_scenario
from scenarios.run_folder.reader import open_run
from scenarios.run_folder.writer import RunFolder
from scenarios.running.checkpoint import read_checkpoint
from scenarios.running.find_checkpoint import fresh_run
from scenarios.running.journal import Journal

SCENARIO = """
name: written
rounds: 20
clients: 4
data: {name: synthetic, samples: 80, features: 4, classes: 2}
model: {kind: linear}
protocol: {kind: gossip, train_per_round: 3, exchange_with: 2}
learning: none
"""


def test_short_rounds_are_written_together(tmp_path: Path) -> None:
    """Every look at the clock takes a second here, so writing does: then twelve seconds pass without any."""
    seconds = count()
    scenario = parse_scenario(SCENARIO)
    journals: list[Journal] = []
    saved: list[int] = []

    def close(row: Mapping[str, Any]) -> None:
        journals[0].close_round(int(row["round"]))
        checkpoint = read_checkpoint(tmp_path / "run")
        assert checkpoint is not None
        saved.append(checkpoint.round_number)

    simulation = build(scenario, listeners=[close])
    folder = RunFolder.create(tmp_path / "run", "written", 0)
    folder.begin("name: written\n", {})
    journals.append(Journal(simulation, folder, fresh_run(scenario).checkpoint, lambda: float(next(seconds))))
    simulation.run()
    assert saved == [1] * 12 + [13] * 8
    rounds = [pq.read_table(tmp_path / "run" / "parts" / f"rounds-{number}.parquet") for number in (1, 13)]
    assert [table["round"].to_pylist() for table in rounds] == [[1], list(range(2, 14))]
    assert [row["round"] for row in open_run(tmp_path / "run").log.rounds] == list(range(1, 14))
