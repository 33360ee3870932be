"""Writes the reference pages that are made from the code: scenario keys, table columns, commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any

from p2p.config.choices import Choice
from p2p.config.distributions import DISTRIBUTIONS, Drawn, InUnitOfField
from p2p.config.units import SCALES, Unit, example
from scenarios.cli.main import COMMANDS
from scenarios.loading.writing.dump import dump_value, to_flow
from scenarios.loading.writing.field_docs import (
    REQUIRED,
    Key,
    bare,
    is_structured,
    item_type,
    keys_of,
    literals,
    marker,
    members,
    summary_of,
)
from scenarios.run_folder.column_docs import COLUMN_DOCS, TABLE_DOCS
from scenarios.schema import Scenario


def write_pages(folder: Path) -> None:
    """Writes all pages into `folder`."""
    pages = {"keys": _keys_page(), "tables": _tables_page(), "commands": _commands_page()}
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        path = folder / f"{name}.md"
        # Left alone if nothing changed, so that Sphinx need not read it again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _keys_page() -> Iterator[str]:
    yield "# Scenario keys"
    yield ""
    yield "Every key of a scenario file: type, default, meaning. `peerveil schema` prints the same as JSON Schema."
    yield ""
    yield from _table_of(Scenario)
    for key in keys_of(Scenario):
        for section in _sections(key.annotation):
            yield from _section(key.name, section)
    yield from ("## Distributions", "")
    yield "A quantity per node or pair is a number with its unit, or one of these."
    yield ""
    yield from _kinds(DISTRIBUTIONS, "kind")
    yield from ("## Units", "", "| of | units |", "|---|---|")
    for base, scales in SCALES.items():
        yield f"| {base or 'a plain number'} | {', '.join(f'`{name}`' for name in scales if name)} |"


def _sections(annotation: Any) -> list[Any]:
    found = [option for option in members(annotation) if is_structured(option) and not marker(option, Drawn)]
    item = item_type(annotation)
    return found + (_sections(item) if item is not None else [])


def _section(path: str, annotation: Any) -> Iterator[str]:
    """Yields the keys of a section, and those of the sections inside it."""
    yield from (f"## `{path}`", "")
    choice = marker(annotation, Choice)
    strategies = list(choice.table.values()) if choice else [bare(annotation)]
    if choice:
        yield f"One of these, named by `{choice.key}`; a part of one's own is `module:Class`."
        yield ""
        yield from _kinds(choice.table, choice.key)
    else:
        yield from (summary_of(strategies[0]), "")
        yield from _table_of(strategies[0])
    told: set[str] = set()
    for key in (key for strategy in strategies for key in keys_of(strategy)):
        for inner in _sections(key.annotation):
            if key.name not in told:
                told.add(key.name)
                yield from _section(f"{path}.{key.name}", inner)


def _kinds(table: Any, key: str) -> Iterator[str]:
    for kind, strategy in table.items():
        yield from (f"### `{key}: {kind}`", "", summary_of(strategy), "")
        yield from _table_of(strategy)


def _table_of(strategy: type) -> Iterator[str]:
    keys = keys_of(strategy)
    if not keys:
        return
    yield from ("| key | type | default | meaning |", "|---|---|---|---|")
    for key in keys:
        yield f"| `{key.name}` | {_type(key.annotation)} | {_default(key)} | {_cell(key.doc)} |"
    yield ""


def _type(annotation: Any) -> str:
    options = members(annotation)
    if len(options) > 1:
        return " or ".join("`none`" if option is NoneType else _type(option) for option in options)
    item = item_type(annotation)
    if item is not None:
        return f"list of {_type(item)}"
    return _single_type(annotation)


def _single_type(annotation: Any) -> str:
    words = literals(annotation)
    unit = marker(annotation, Drawn) or marker(annotation, Unit)
    if words:
        return ", ".join(f"`{str(word).lower()}`" for word in words)
    if marker(annotation, Choice):
        return "a kind"
    if marker(annotation, Drawn):
        return f"quantity (`{example(unit.base)}`) or distribution"
    if unit:
        return f"quantity (`{example(unit.base)}`)"
    if marker(annotation, InUnitOfField):
        return "quantity"
    if is_structured(annotation):
        return "section"
    return {"int": "whole number", "float": "number", "str": "text", "bool": "`true`, `false`"}.get(
        getattr(bare(annotation), "__name__", ""), "value"
    )


def _default(key: Key) -> str:
    if key.default is REQUIRED:
        return "required"
    text = to_flow(dump_value(key.annotation, key.default))
    # Long defaults are sections, whose own keys are listed below.
    return f"`{_cell(text)}`" if len(text) <= 40 else "see below"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _tables_page() -> Iterator[str]:
    yield from ("# Tables of a run", "")
    yield "A run folder has one Parquet file per table. Times are simulated seconds, nodes are true numbers."
    for table, columns in COLUMN_DOCS.items():
        yield from ("", f"## `{table}.parquet`", "", TABLE_DOCS[table], "", "| column | meaning |", "|---|---|")
        yield from (f"| `{name}` | {_cell(meaning)} |" for name, meaning in columns.items())


def _commands_page() -> Iterator[str]:
    yield from ("# Commands", "", "`peerveil COMMAND --help` prints the same.")
    for name, command in COMMANDS.items():
        parser = argparse.ArgumentParser(
            prog=f"peerveil {name}", formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100)
        )
        command.add_arguments(parser)
        yield from ("", f"## {name}", "", f"{command.help[0].upper()}{command.help[1:]}.", "")
        yield from ("```text", parser.format_help().rstrip(), "```")
