"""A marker that says: here stands one strategy out of a table, named by `kind`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Marks a field that takes one entry of `table`, chosen by `key` (scenarios/read.py reads it)."""

    table: Mapping[str, type]
    key: str = "kind"
