"""Reads plain values of a scenario file into strategies, each dataclass by its own field types.

A reader never stops at the first problem. An unreadable value becomes `INVALID`, and its problem is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path as FilesystemPath
from types import NoneType
from typing import Any, Final, Union

from p2p.config.choices import Choice
from p2p.config.distributions import Constant, Drawn, InUnitOfField
from p2p.config.errors import UserError
from p2p.config.file_paths import ExistingFile
from p2p.config.units import Unit
from scenarios.loading.plain_values_fast import UNDECIDED, parse_if_plain
from scenarios.loading.plugins import Plugins
from scenarios.loading.problems import Path, Problems, enumerated, suggestion
from scenarios.loading.writing.field_docs import (
    REQUIRED,
    accepts_none,
    bare,
    is_structured,
    item_type,
    keys_of,
    marker,
    members,
)

INVALID: Final = object()


class Reader:
    """Reads values and collects problems.

    `switched` maps a path whose kind was overridden to the old kind. `partial` holds, by path, parts in which
    unreadable values are replaced by defaults; they serve only to find more problems.
    """

    def __init__(
        self,
        folder: FilesystemPath,
        problems: Problems,
        plugins: Plugins,
        switched: dict[Path, str] | None = None,
    ) -> None:
        self.folder = folder
        self.problems = problems
        self.plugins = plugins
        self.switched = switched or {}
        self.partial: dict[Path, Any] = {}

    def read(self, annotation: Any, value: Any, path: Path, unit: Unit | None = None) -> Any:
        """Returns the value of that type, or INVALID; `unit` is that of the field that holds a distribution."""
        # Markers first: they override the annotated type. A union may contain a structured type, so it precedes one.
        for mark, method in self._markers():
            found = marker(annotation, mark)
            if found is not None:
                return method(found, value, path, unit)
        if len(members(annotation)) > 1:
            return self._alternative(annotation, value, path, unit)
        item = item_type(annotation)
        if item is not None and is_structured(item):
            return self._items(item, value, path)
        if is_structured(annotation):
            return self._record(bare(annotation), value, path, unit)
        return self._leaf(annotation, value, path)

    def _markers(self) -> tuple[tuple[type, Callable[..., Any]], ...]:
        return (
            (Choice, self._choice),
            (Drawn, self._drawn),
            (InUnitOfField, self._quantity),
            (ExistingFile, self._file),
        )

    def _choice(self, choice: Choice, value: Any, path: Path, unit: Unit | None) -> Any:
        """Reads one entry of a table: a mapping that names it, or its bare name."""
        mapping = {choice.key: value} if isinstance(value, str) else value
        if not isinstance(mapping, dict):
            return self._wrong(path, value, f"must be a mapping with `{choice.key}`; {_kinds(choice)}")
        if choice.key not in mapping:
            self.problems.missing((*path, choice.key), _kinds(choice))
            return INVALID
        kind = mapping[choice.key]
        named = path if isinstance(value, str) else (*path, choice.key)
        strategy = self._strategy(choice, kind, named)
        if strategy is None:
            return INVALID
        rest = {key: item for key, item in mapping.items() if key != choice.key}
        self._drop_keys_of_old_kind(choice, strategy, rest, path)
        # Built-in strategies may raise only what _guarded handles; anything else is a bug and must surface.
        if kind in choice.table:
            return self._record(strategy, rest, path, unit)
        return self._foreign(strategy, rest, path)

    def _strategy(self, choice: Choice, kind: Any, path: Path) -> type | None:
        if isinstance(kind, str) and kind in choice.table:
            return choice.table[kind]
        if isinstance(kind, str) and ":" in kind:
            try:
                return self.plugins.find(kind, self.folder, choice.needs, choice.adapt)
            except ValueError as reason:
                self.problems.wrong(path, kind, str(reason))
                return None
        self.problems.wrong(path, kind, f"unknown {choice.key}; {suggestion(str(kind), choice.table)}")
        return None

    def _foreign(self, strategy: type, rest: dict[str, Any], path: Path) -> Any:
        """Reads a plug-in's dataclass; exceptions of its code are reported as problems."""
        try:
            return self._record(strategy, rest, path, None)
        except Exception as error:  # noqa: BLE001, RUF100 - plug-in code may raise anything
            name = f"{strategy.__module__}:{strategy.__qualname__}"
            return self._wrong(path, name, f"the plug-in cannot be set up ({type(error).__name__}: {error})")

    def _drop_keys_of_old_kind(self, choice: Choice, strategy: type, rest: dict[str, Any], path: Path) -> None:
        """Removes keys that only the old kind has, after `--set protocol.kind=...`."""
        old = choice.table.get(self.switched.get(path, ""))
        if old is None:
            return
        stale = {key.name for key in keys_of(old)} - {key.name for key in keys_of(strategy)}
        for name in stale & rest.keys():
            # A key that the user set explicitly stays, and is reported as unknown.
            if (*path, name) not in self.switched:
                del rest[name]

    def _drawn(self, drawn: Drawn, value: Any, path: Path, unit: Unit | None) -> Any:
        """Reads a distribution; a bare quantity is a constant."""
        if isinstance(value, dict):
            distribution = self._choice(Choice(drawn.table), value, path, drawn)
        # Every distribution has parameters, so a bare name cannot be complete.
        elif isinstance(value, str) and value in drawn.table:
            return self._wrong(path, value, f"needs its numbers; write for example `{{kind: {value}, ...}}`")
        else:
            number = self._quantity(drawn, value, path, drawn)
            distribution = INVALID if number is INVALID else Constant(value=number)
        if distribution is INVALID:
            return INVALID
        return self._guarded(lambda: drawn.finish(distribution), path, type(distribution))

    def _quantity(self, mark: object, value: Any, path: Path, unit: Unit | None) -> Any:
        try:
            return (unit or Unit("")).check(value)
        except ValueError as reason:
            return self._wrong(path, value, str(reason))

    def _file(self, mark: ExistingFile, value: Any, path: Path, unit: Unit | None) -> Any:
        if not isinstance(value, str) or not value or "\0" in value:
            return self._wrong(path, value, "must be the name of a file")
        place = (self.folder / value).absolute()
        if not place.is_file():
            return self._wrong(path, value, f"no such file; it is looked for in {self.folder}")
        return str(place)

    def _alternative(self, annotation: Any, value: Any, path: Path, unit: Unit | None) -> Any:
        """Reads a union: null or `none`, a mapping for the structured member, a plain value for the others."""
        options = members(annotation)
        if value is None and NoneType in options:
            return None
        if value == "none" and accepts_none(annotation):
            return None
        options = tuple(option for option in options if option is not NoneType)
        structured = [option for option in options if is_structured(option)]
        plain = [option for option in options if not is_structured(option)]
        # A mapping can only mean the structured member.
        if structured and (isinstance(value, dict) or not plain):
            return self.read(structured[0], value, path, unit)
        if len(plain) == 1:
            return self.read(plain[0], value, path, unit)
        return self._leaf(Union[tuple(plain)], value, path)  # noqa: UP007 - built at run time

    def _items(self, item: Any, value: Any, path: Path) -> Any:
        if not isinstance(value, list):
            return self._wrong(path, value, "must be a list; put it in [ ], or write a line with `- ` for each entry")
        read = [self.read(item, entry, (*path, index)) for index, entry in enumerate(value)]
        return INVALID if any(entry is INVALID for entry in read) else tuple(read)

    def _record(self, strategy: type, value: Any, path: Path, unit: Unit | None) -> Any:
        """Reads a dataclass from a mapping of its keys."""
        if not isinstance(value, dict):
            return self._wrong(path, value, f"must be a mapping; known keys are {_names(strategy)}")
        read, complete = self.fields(strategy, value, path, unit)
        if complete:
            return self._guarded(lambda: strategy(**read), path, strategy)
        # Best effort: a required key may be missing, or a check of the part may fail on the defaults.
        with suppress(Exception):
            self.partial[path] = strategy(**read)
        return INVALID

    def fields(
        self, strategy: type, value: dict[str, Any], path: Path, unit: Unit | None = None
    ) -> tuple[dict[str, Any], bool]:
        """Returns the readable values by key, and whether they are complete; unknown keys do not affect that."""
        keys = {key.name: key for key in keys_of(strategy)}
        for name in value:
            if name not in keys:
                self.problems.unknown_key((*path, name), keys)
        missing = [key for key in keys.values() if key.default is REQUIRED and key.name not in value]
        for key in missing:
            self.problems.missing((*path, key.name), f"add it ({key.doc or 'it has no default'})")
        read = {
            name: self.read(key.annotation, value[name], (*path, name), unit)
            for name, key in keys.items()
            if name in value
        }
        valid = {name: part for name, part in read.items() if part is not INVALID}
        return valid, not missing and len(valid) == len(read)

    def _guarded(self, make: Callable[[], Any], path: Path, strategy: type | None = None) -> Any:
        """Returns the result of `make`; a rule violation raised by the part itself becomes a problem.

        The part words it as `key = value: rule` for one of its keys, or as a rule about the whole part.
        """
        try:
            return make()
        except (UserError, ValueError) as error:
            lines = error.problems if isinstance(error, UserError) else [str(error)]
            self.problems.inside(path, lines, [key.name for key in keys_of(strategy)] if strategy else [])
        return INVALID

    def _leaf(self, annotation: Any, value: Any, path: Path) -> Any:
        """Reads strings, numbers, literals and lists of them."""
        read = parse_if_plain(annotation, value)
        return self._strict(annotation, value, path) if read is UNDECIDED else read

    def _strict(self, annotation: Any, value: Any, path: Path) -> Any:
        # Imported here: pydantic is slow to import, and a valid file does not need it.
        from scenarios.loading.plain_values_strict import read_strictly

        read, complaints = read_strictly(annotation, value)
        for place, part, rule in complaints:
            self.problems.wrong((*path, *place), part, rule)
        return INVALID if complaints else read

    def _wrong(self, path: Path, value: Any, rule: str) -> Any:
        self.problems.wrong(path, value, rule)
        return INVALID


def _kinds(choice: Choice) -> str:
    return f"{choice.key} is one of {enumerated(sorted(choice.table))}"


def _names(strategy: type) -> str:
    return enumerated([key.name for key in keys_of(strategy)])
