"""Expands a sweep into its cells: every base with every combination of its axes and every seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.catalog import catalog_path
from scenarios.loading.load import load_scenario
from scenarios.loading.problems import printable, shorten
from scenarios.loading.writing.dump import dump_keys
from scenarios.schema import Scenario
from scenarios.sweeps.identity import cell_key, cell_keys
from scenarios.sweeps.sweep_file import Axis, Sweep, value_text

MOST_CELLS = 10_000
_MOST_PROBLEMS = 40
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a sweep.

    Attributes:
        key: SHA-256 of all that decides its result
        base: the scenario it varies, as written in the sweep file
        settings: the values of the base's axes, by path
        seed: its seed
        scenario: the resolved scenario
        origin: folder of the base's file, where plug-ins are searched for
    """

    key: str
    base: str
    settings: Mapping[str, Any]
    seed: int
    scenario: Scenario
    origin: Path

    @property
    def label(self) -> str:
        """The cell in words: base, settings and seed."""
        return ", ".join([base_name(self.base), *_words(self.settings), f"seed={self.seed}"])


@dataclass(slots=True)
class Grid:
    """The cells of a sweep, and remarks on axes that a base does not have."""

    cells: list[Cell] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def expand(sweep: Sweep, *, data_dir: Path | None = None, allow_plugins: bool = False, confirmed: bool = False) -> Grid:
    """Returns all cells, first seeds first; raises one `UserError` with the problems of the file and of all cells."""
    # A dictionary as an ordered set: many cells report the same line.
    problems = dict.fromkeys([*sweep.problems, *_equal_names(sweep.bases)])
    too_many = sweep.size() > MOST_CELLS and not confirmed
    if too_many:
        problems[f"{sweep.size()} cells: more than {MOST_CELLS}; add --yes if you mean it"] = None
    grid, loaded = Grid(), 0
    for base in sweep.bases:
        try:
            found = _Base(sweep, base, allow_plugins, data_dir, problems)
            loaded += 1
            groups = found.known_axes(grid.remarks)
            # So many cells take minutes to check; bases and axes are checked all the same.
            grid.cells += [] if too_many else found.cells(groups)
        except UserError as error:
            problems.update(dict.fromkeys(f"bases = {base}: {line}" for line in error.problems))
    problems.update(dict.fromkeys(_unknown_axes(sweep, grid.remarks, loaded)))
    # Two cells with one key would write into one folder.
    problems.update(dict.fromkeys(_collisions(grid.cells)))
    if problems:
        lines = list(problems)
        more = [f"and {len(lines) - _MOST_PROBLEMS} more"] if len(lines) > _MOST_PROBLEMS else []
        raise UserError([printable(line) for line in lines[:_MOST_PROBLEMS] + more], printable(sweep.source))
    # A sweep that is stopped early has then seen every combination.
    grid.cells.sort(key=lambda cell: _seed_place(cell, sweep))
    return grid


def base_name(base: str) -> str:
    """Returns a base's short name: a file's without folder and suffix."""
    return Path(base).stem if base.endswith((".yaml", ".yml")) else base


class _Base:
    """One base of a sweep, and the axes it has."""

    def __init__(
        self, sweep: Sweep, base: str, allow_plugins: bool, data_dir: Path | None, problems: dict[str, None]
    ) -> None:
        self.sweep, self.base, self.allow_plugins, self.data_dir = sweep, base, allow_plugins, data_dir
        self.problems = problems
        beside = sweep.folder / base
        self.path = beside if beside.is_file() else catalog_path(base)
        self.fixed = dict(sweep.settings)
        self.alone = self._load({})

    def known_axes(self, remarks: list[str]) -> list[list[Axis]]:
        """Returns the groups of axes that this base has; notes those that it does not have."""
        return [kept for group in self.sweep.groups if (kept := self._known(group, remarks))]

    def cells(self, groups: Sequence[Sequence[Axis]]) -> Iterator[Cell]:
        """Yields the cells of this base; notes problems."""
        for combination in itertools.product(*(_points(group) for group in groups)):
            settings = {path: value for point in combination for path, value in point.items()}
            try:
                scenario = self._load(settings)
                keys = cell_keys(scenario, self.data_dir)
            except UserError as error:
                where = ", ".join([base_name(self.base), *_words(settings)])
                self.problems.update(dict.fromkeys(f"{where}: {line}" for line in error.problems))
                continue
            for seed in _seeds(self.sweep, self.alone.seed):
                # Loaded once for all seeds: a seed changes no other key.
                named = replace(scenario, seed=seed, name=self._cell_name(settings))
                yield Cell(cell_key(keys, seed), self.base, settings, seed, named, self.path.parent.absolute())

    def _known(self, group: Sequence[Axis], remarks: list[str]) -> list[Axis]:
        kept = []
        for axis in group:
            why = self._why_absent(axis)
            if why is None:
                kept.append(axis)
            else:
                remarks.append(f"{axis.path}: left out in {self.base}, which does not have it ({why})")
        return kept

    def _why_absent(self, axis: Axis) -> str | None:
        """Returns why the base does not have this key; None if it has.

        A key of the resolved scenario is there, and its problems are problems of the values. Another key may still be
        settable (a section that is off, a short form): the loader decides.
        """
        if _has(dump_keys(self.alone), axis.path.split(".")):
            return None
        reasons = []
        for value in axis.values:
            try:
                self._load({axis.path: value})
            except UserError as error:
                reasons.append(error.problems[0])
            else:
                return None
        return shorten(reasons[0], 160)

    def _load(self, settings: Mapping[str, Any]) -> Scenario:
        chosen = {**self.fixed, **settings}
        # Outer keys first: setting a section after one of its keys would undo the key.
        ordered = sorted(chosen, key=lambda path: (path.count("."), path.rpartition(".")[2] not in ("kind", "name")))
        overrides = [f"{path}={value_text(chosen[path])}" for path in ordered]
        return load_scenario(self.path, overrides, allow_plugins=self.allow_plugins)

    def _cell_name(self, settings: Mapping[str, Any]) -> str:
        """Returns a name that may name a folder; a scenario is refused with a path, or with dots at the end."""
        name = printable(" ".join([self.alone.name, *_words(settings)]))
        return name.replace("/", "-").replace("\\", "-")[:_LONGEST_NAME].strip(" .")


def _words(settings: Mapping[str, Any]) -> list[str]:
    """Returns `epsilon=4` for `privacy.noise.calibrate.epsilon: 4`; the whole path where last parts repeat."""
    lasts = [path.rpartition(".")[2] for path in settings]
    return [
        f"{path if lasts.count(last) > 1 else last}={value_text(value)}"
        for last, (path, value) in zip(lasts, settings.items(), strict=True)
    ]


def _points(group: Sequence[Axis]) -> list[dict[str, Any]]:
    """Returns the settings of a group's steps; steps that became equal, because an axis was left out, count once."""
    points = [{axis.path: axis.values[place] for axis in group} for place in range(len(group[0].values))]
    texts = [value_text(point) for point in points]
    return [point for place, point in enumerate(points) if texts[place] not in texts[:place]]


def _seeds(sweep: Sweep, first: int) -> Sequence[int]:
    return range(first, first + sweep.seeds) if isinstance(sweep.seeds, int) else sweep.seeds


def _seed_place(cell: Cell, sweep: Sweep) -> int:
    return cell.seed if isinstance(sweep.seeds, int) else sweep.seeds.index(cell.seed)


def _has(keys: Any, path: Sequence[str]) -> bool:
    for part in path:
        if isinstance(keys, list) and part.isdecimal() and int(part) < len(keys):
            keys = keys[int(part)]
        elif isinstance(keys, Mapping) and part in keys:
            keys = keys[part]
        else:
            return False
    return True


def _equal_names(bases: Sequence[str]) -> Iterator[str]:
    """Yields bases that would be one base in every table: a base is called there by its file's name alone."""
    names: dict[str, str] = {}
    for base in bases:
        first = names.setdefault(base_name(base), base)
        if first != base:
            yield f"bases = {base}: would be called {base_name(base)} in the table, as {first} is; rename the file"


def _unknown_axes(sweep: Sweep, remarks: Sequence[str], loaded: int) -> Iterator[str]:
    """Yields the axes that no base has, of those bases that could be loaded."""
    for path in sweep.axes:
        reasons = [line for line in remarks if line.startswith(f"{path}: left out")]
        if reasons and len(reasons) == loaded:
            yield f"axes.{path}: no base has it; {reasons[0].partition('(')[2].rstrip(')')}"


def _collisions(cells: Sequence[Cell]) -> Iterator[str]:
    seen: dict[str, Cell] = {}
    for cell in cells:
        first = seen.setdefault(cell.key, cell)
        if first is not cell:
            yield f"{cell.label}: is the same run as {first.label}; keep one of them"
