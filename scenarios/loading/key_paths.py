"""Where a key stands in a scenario: `epochs` is `training.epochs`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from p2p.config.choices import Choice
from scenarios.loading.writing.field_docs import bare, keys_of, marker, members
from scenarios.schema import Scenario


def paths_of(name: str) -> list[str]:
    """Returns the paths of a key in a scenario, at the top and in its sections; several sections may have it.

    A section that has kinds is meant by its kind: `protocol` is `protocol.kind`.
    """
    kinds = {key.name for key in keys_of(Scenario) if marker(key.annotation, Choice) is not None}
    found = dict.fromkeys(path for path in _paths() if path.rpartition(".")[2] == name)
    return [f"{path}.kind" if path in kinds else path for path in found]


def _paths() -> Iterator[str]:
    for key in keys_of(Scenario):
        yield key.name
        choice = marker(key.annotation, Choice)
        parts = list(choice.table.values()) if choice is not None else list(members(key.annotation))
        for part in parts:
            if dataclasses.is_dataclass(bare(part)):
                yield from (f"{key.name}.{inner.name}" for inner in keys_of(bare(part)))
