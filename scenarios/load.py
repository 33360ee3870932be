"""YAML to `Scenario`, or one error with everything that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from p2p.errors import UserError
from scenarios.catalog_files import catalog_path
from scenarios.checks import check_parts
from scenarios.keys import REQUIRED, keys_of
from scenarios.overrides import apply_overrides
from scenarios.plugins import Plugins
from scenarios.problems import Problems, printable
from scenarios.read import Reader
from scenarios.schema import Scenario
from scenarios.shares import shares_to_counts
from scenarios.yamltext import MOST_CHARACTERS, parse_yaml


def load_scenario(
    ref: str | Path,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    allow_plugins: bool = False,
) -> Scenario:
    """The scenario at a path or of that name in the catalog, with `a.b=v` overrides and maybe another seed.

    Raises:
        UserError: all problems at once, each as `path = value: rule; cure`.
    """
    path = catalog_path(ref)
    return parse_scenario(
        _read_text(path),
        source=str(ref),
        folder=path.parent,
        overrides=overrides if seed is None else [*overrides, f"seed={seed}"],
        allow_plugins=allow_plugins,
    )


def parse_scenario(
    text: str,
    source: str = "scenario",
    folder: Path | None = None,
    overrides: Sequence[str] = (),
    allow_plugins: bool = False,
) -> Scenario:
    """The scenario that the text stands for; `folder` is where files and plug-ins are looked for."""
    problems = Problems()
    data = _mapping(text, source)
    touched = apply_overrides(data, overrides, problems)
    shares_to_counts(data, problems)
    plugins = Plugins(allow_plugins)
    reader = Reader(folder or Path.cwd(), problems, plugins, touched)
    parts, _ = reader.fields(Scenario, data, ())
    check_parts(_checkable(parts, reader, data), problems)
    problems.refuse(source)
    return Scenario(**parts, plugins=plugins.found)


def dump_scenario(scenario: Scenario) -> str:
    """The resolved scenario, every default written out; loading it gives an equal one."""
    # Imported here, because to read and to check takes no writer.
    from scenarios.dump import dump_keys, to_yaml

    return to_yaml(dump_keys(scenario))


def _mapping(text: str, source: str) -> dict[str, Any]:
    try:
        data = parse_yaml(text)
    except ValueError as reason:
        raise UserError(printable(str(reason)), printable(source)) from reason
    if not isinstance(data, dict):
        raise UserError("must be a mapping of keys to values; start with `name: ...`", printable(source))
    return data


def _checkable(parts: dict[str, Any], reader: Reader, data: dict[str, Any]) -> dict[str, Any]:
    """What the checks may look at: what was read, defaults of what was not given, and parts of a bad section.

    Only sections whose keys are checked one by one may be partial; in others a default would be complained about.
    """
    absent = {key.name: key.default for key in keys_of(Scenario) if key.name not in data}
    defaults = {name: value for name, value in absent.items() if value is not REQUIRED}
    partial = {name: reader.partial[(name,)] for name in ("protocol", "evaluation") if (name,) in reader.partial}
    return partial | parts | defaults


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(4 * MOST_CHARACTERS + 1)
        return content.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError(printable(f"{path}: cannot be read ({reason})")) from error
    except UnicodeDecodeError as error:
        raise UserError(printable(f"{path}: is not UTF-8 text; save it as UTF-8")) from error
