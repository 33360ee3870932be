"""Loads YAML into a `Scenario`, or raises one error with all problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from privacy.settings import Privacy
from scenarios.loading.catalog import catalog_path
from scenarios.loading.checks.cross_checks import check_parts
from scenarios.loading.checks.graph_checks import refuse_gossip_keys
from scenarios.loading.mappings import parse_mapping
from scenarios.loading.overrides import Change, apply_changes, read_overrides
from scenarios.loading.plugins import Plugins, blaming_plugins
from scenarios.loading.problems import Problems, printable
from scenarios.loading.ratio_keys import shares_to_counts
from scenarios.loading.reader import Reader
from scenarios.loading.writing.field_docs import REQUIRED, keys_of
from scenarios.loading.yaml_text import MOST_CHARACTERS
from scenarios.schema import Scenario


def load_scenario(
    ref: str | Path,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    allow_plugins: bool = False,
) -> Scenario:
    """Loads a scenario by path or catalog name, with `a.b=v` overrides and optionally another seed.

    Raises:
        UserError: all problems at once, each as `path = value: rule; cure`.
    """
    problems = Problems()
    data, folder = scenario_keys(ref)
    # Last, so that `--seed` wins over a seed set otherwise.
    texts = overrides if seed is None else [*overrides, f"seed={seed}"]
    return read_scenario(data, read_overrides(texts, problems), str(ref), folder, allow_plugins, problems)


def parse_scenario(
    text: str,
    source: str = "scenario",
    folder: Path | None = None,
    overrides: Sequence[str] = (),
    allow_plugins: bool = False,
) -> Scenario:
    """Parses a scenario; files and plug-ins are searched for in `folder`."""
    problems = Problems()
    data = parse_mapping(text, source)
    return read_scenario(data, read_overrides(overrides, problems), source, folder, allow_plugins, problems)


def read_scenario(
    data: dict[str, Any],
    changes: Sequence[Change] = (),
    source: str = "scenario",
    folder: Path | None = None,
    allow_plugins: bool = False,
    problems: Problems | None = None,
) -> Scenario:
    """Reads a scenario from the plain values of its keys, which are changed in place.

    Args:
        problems: those found before, reported together with the ones found here.
    """
    # All steps run even after a problem, so that one error reports everything.
    problems = Problems() if problems is None else problems
    touched = apply_changes(data, changes, problems)
    # After the changes, which may set a ratio or the number of clients.
    shares_to_counts(data, problems)
    refuse_gossip_keys(data, problems, touched)
    _learn_nothing_from_bytes(data)
    plugins = Plugins(allow_plugins)
    reader = Reader(folder or Path.cwd(), problems, plugins, touched)
    parts, _ = reader.fields(Scenario, data, ())
    _join_stages(parts, data)
    # The checks ask parts about themselves, plug-ins too.
    with blaming_plugins(plugins.found):
        check_parts(_checkable(parts, reader, data), problems)
    problems.refuse(source)
    return Scenario(**parts, plugins=plugins.found)


def _learn_nothing_from_bytes(data: dict[str, Any]) -> None:
    """Turns learning off, unless the file says otherwise, where only the size of the model is given."""
    model = data.get("model")
    if isinstance(model, dict) and model.get("kind") == "bytes":
        data.setdefault("learning", "none")


def dump_scenario(scenario: Scenario) -> str:
    """Returns the resolved scenario as YAML with every default explicit; loading it gives an equal one."""
    # Imported here: loading and checking do not need the writer.
    from scenarios.loading.writing.dump import dump_keys, to_yaml

    return to_yaml(dump_keys(scenario))


def scenario_keys(ref: str | Path) -> tuple[dict[str, Any], Path]:
    """Returns the plain values of a scenario's keys, found by path or catalog name, and the folder it lies in."""
    path = catalog_path(ref)
    return parse_mapping(_read_text(path), str(ref)), path.parent


def _join_stages(parts: dict[str, Any], data: dict[str, Any]) -> None:
    """Gives the stages of `update` to the privacy section, which holds budget and delta; one by default."""
    # An unreadable privacy section is a problem of its own; without a section the defaults hold.
    if parts.get("update") and (data.get("privacy") in (None, "none") or "privacy" in parts):
        parts["privacy"] = replace(parts.get("privacy") or Privacy(), stages=parts["update"])


def _checkable(parts: dict[str, Any], reader: Reader, data: dict[str, Any]) -> dict[str, Any]:
    """Returns the input of the checks: readable sections, defaults of absent ones, and partial sections.

    Only sections whose keys are checked one by one may be partial; in others a default would be reported as a problem.
    """
    absent = {key.name: key.default for key in keys_of(Scenario) if key.name not in data}
    defaults = {name: value for name, value in absent.items() if value is not REQUIRED}
    partial = {name: reader.partial[(name,)] for name in ("protocol", "evaluation") if (name,) in reader.partial}
    # Stages of `update` give an absent privacy section its content, so what was read wins over defaults.
    return partial | defaults | parts


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            # A character takes up to four bytes; a larger file is refused by its length, and need not be read.
            content = file.read(4 * MOST_CHARACTERS + 1)
        return content.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError(printable(f"{path}: cannot be read ({reason})")) from error
    except UnicodeDecodeError as error:
        raise UserError(printable(f"{path}: is not UTF-8 text; save it as UTF-8")) from error
