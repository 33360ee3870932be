"""A run of `tiny` is, event by event, the one that was written down."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest


@pytest.mark.slow
def test_tiny_is_what_it_was() -> None:
    """If this change is meant: `python tests/golden/regenerate.py`, and say why in the commit."""
    script = runpy.run_path(str(Path(__file__).parent / "regenerate.py"))
    expected = json.loads(script["FILE"].read_text(encoding="utf-8"))
    found = script["golden_rows"]()
    assert sorted(found) == sorted(expected)
    for name, rows in expected.items():
        assert found[name] == rows, name
