"""Every column of a run folder is described, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from scenarios.loading.load import load_scenario
from scenarios.run_folder.arrow_tables import TABLES
from scenarios.run_folder.column_docs import COLUMN_DOCS, TABLE_DOCS
from scenarios.running.run import run_scenario

SOMETIMES = {"residual_variance", "predicted_variance"}
"""Columns that only runs with noise shares have."""


@pytest.mark.slow
def test_the_reference_names_exactly_the_columns_of_a_run(tmp_path: Path) -> None:
    """In the files of a real run, with noise shares and without."""
    run_scenario(load_scenario("tiny"), tmp_path / "plain")
    run_scenario(load_scenario("niss-leader", ["rounds=1"]), tmp_path / "shares")
    assert set(COLUMN_DOCS) == set(TABLE_DOCS) == set(TABLES)
    for table, described in COLUMN_DOCS.items():
        plain, shares = (set(pq.read_schema(tmp_path / way / f"{table}.parquet").names) for way in ("plain", "shares"))
        assert plain == set(described) - SOMETIMES
        assert shares == set(described)
