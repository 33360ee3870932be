"""The marker of fields that take one strategy out of a table, selected by `kind`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Marks a field that takes one entry of `table`, selected by `key`; interpreted by scenarios/loading/reader.py.

    `needs` names the methods and attributes that a plug-in in this place must have. `adapt` turns a class that is no
    strategy into one, if it is of a kind that this place accepts; it returns other classes as they are.
    """

    table: Mapping[str, type]
    key: str = "kind"
    needs: tuple[str, ...] = ()
    adapt: Callable[[type], type] | None = None
