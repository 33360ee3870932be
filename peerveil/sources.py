"""From what a caller names a scenario by - a name, a path, keys, an object - to a checked scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenarios.loading.overrides import Change
    from scenarios.schema import Scenario


def read_source(
    source: str | Path | Mapping[str, Any] | Scenario, changes: Mapping[str, Any], allow_plugins: bool = False
) -> Scenario:
    """Returns the scenario with the changes made.

    Args:
        changes: keys and their new values; a mapping changes the keys it names and leaves the others.

    Raises:
        UserError: all problems at once, each as `path = value: rule; cure`.
    """
    from scenarios.loading.load import read_scenario, scenario_keys

    keys: dict[str, Any]
    name, folder = "scenario", Path.cwd()
    if isinstance(source, str | Path):
        keys, folder = scenario_keys(source)
        name = str(source)
    elif isinstance(source, Mapping):
        keys = _copied(source)
    else:
        keys = _keys_of(source)
        if not changes:
            return source
    return read_scenario(keys, list(_paths(changes)), name, folder, allow_plugins)


def _keys_of(scenario: Scenario) -> dict[str, Any]:
    from p2p.config.errors import UserError
    from scenarios.loading.writing.dump import dump_keys
    from scenarios.schema import Scenario

    if not isinstance(scenario, Scenario):
        raise UserError(f"scenario = {scenario!r}: must be a name, a path, a mapping of keys, or a Scenario")
    return dump_keys(scenario)


def _paths(changes: Mapping[str, Any], above: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """Yields the path and value of every leaf; an empty mapping is a leaf."""
    for key, value in changes.items():
        path = (*above, *key.split(".")) if isinstance(key, str) else (*above, key)
        if isinstance(value, Mapping) and value:
            yield from _paths(value, path)
        else:
            yield path, _copied(value)


def _copied(value: Any) -> Any:
    """Returns plain containers of the same content: reading a scenario changes its keys in place."""
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value
