"""Reads a sweep file: which scenarios, which axes, which seeds. All problems are reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.mappings import parse_mapping
from scenarios.loading.problems import Problems, printable
from scenarios.loading.writing.dump import to_flow
from scenarios.loading.yaml_text import MOST_CHARACTERS

KEYS = ("name", "question", "bases", "settings", "axes", "zip", "seeds")
MOST_VALUES = 100_000
_RANGE_KEYS = ("from", "to", "step")


@dataclass(frozen=True, slots=True)
class Axis:
    """A key of the scenario, such as `privacy.noise.sigma`, and the values it takes."""

    path: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A grid of runs.

    Attributes:
        name: name of the sweep and its folder
        question: the question the sweep answers
        bases: scenarios, by catalog name or by path relative to the sweep file
        settings: keys that are set in every cell
        groups: axes; those of one group move together, those of different groups are combined in all ways
        seeds: number of seeds, counted up from each base's own, or the seeds themselves
        folder: where the sweep file is
        source: what problems are told about, the file's name
        problems: what is wrong with the file itself; `expand` tells it together with the problems of the cells
    """

    name: str
    question: str
    bases: tuple[str, ...]
    settings: Mapping[str, Any]
    groups: tuple[tuple[Axis, ...], ...]
    seeds: int | tuple[int, ...]
    folder: Path
    source: str = "sweep"
    problems: tuple[str, ...] = ()

    @property
    def axes(self) -> list[str]:
        """The paths of all axes, in the order of the file."""
        return [axis.path for group in self.groups for axis in group]

    def size(self) -> int:
        """Returns the number of cells if every base has every axis."""
        count = len(self.bases) * (self.seeds if isinstance(self.seeds, int) else len(self.seeds))
        for group in self.groups:
            count *= len(group[0].values)
        return count


def load_sweep(path: Path) -> Sweep:
    """Reads a sweep file; raises a `UserError` if there is none, or what is there has no keys."""
    try:
        with path.open("rb") as file:
            # As many bytes as the longest accepted text can have, and one to see that there are more.
            text = file.read(4 * MOST_CHARACTERS + 1).decode("utf-8-sig")
    except OSError as error:
        raise UserError(printable(f"{path}: cannot be read ({error.strerror or error}); give a sweep file")) from error
    except UnicodeDecodeError as error:
        raise UserError(printable(f"{path}: is not UTF-8 text; save it as UTF-8")) from error
    return parse_sweep(text, str(path), path.parent)


def parse_sweep(text: str, source: str = "sweep", folder: Path | None = None) -> Sweep:
    """Parses a sweep; bases are searched for in `folder` and in the catalog.

    Axes that are wrong in themselves are left out and told in `problems`, so that the rest can be checked too.
    """
    data = parse_mapping(text, source)
    problems = Problems()
    for key in data:
        if key not in KEYS:
            problems.unknown_key((key,), KEYS)
    settings = _settings(data.get("settings"), problems)
    groups = tuple(_groups(data, problems))
    sweep = Sweep(
        name=_name(data.get("name"), problems),
        question=str(data.get("question") or ""),
        bases=_bases(data.get("bases"), problems),
        settings=settings,
        groups=tuple(_allowed(groups, settings, problems)),
        seeds=_seeds(data.get("seeds", 1), problems),
        folder=folder or Path.cwd(),
        source=source,
    )
    return replace(sweep, problems=tuple(problems.lines))


def value_text(value: Any) -> str:
    """Returns a value as it would be written in a scenario file, on one line."""
    return to_flow(value)


def _name(value: Any, problems: Problems) -> str:
    if value is None:
        problems.missing(("name",), "the sweep's folder is called by it")
    elif not isinstance(value, str) or not 1 <= len(value) <= 80:
        problems.wrong(("name",), value, "must be text of 1 to 80 characters")
    return str(value)


def _bases(value: Any, problems: Problems) -> tuple[str, ...]:
    if value is None:
        problems.missing(("bases",), "name one or several scenarios, such as `[leader-plain]`")
        return ()
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(each, str) and each for each in listed):
        problems.wrong(("bases",), value, "must be a list of scenarios: files, or names that `peerveil list` shows")
        return ()
    for base in sorted({each for each in listed if listed.count(each) > 1}):
        problems.wrong(("bases",), base, "stands there twice; keep one")
    return tuple(dict.fromkeys(listed))


def _settings(value: Any, problems: Problems) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.wrong(("settings",), value, "must be a mapping of keys to values, such as `{rounds: 5}`")
        return {}
    return value


def _groups(data: Mapping[str, Any], problems: Problems) -> Iterator[tuple[Axis, ...]]:
    axes = data.get("axes")
    if axes is not None and not isinstance(axes, dict):
        problems.wrong(("axes",), axes, "must be a mapping of keys to lists of values")
        axes = None
    for path, values in (axes or {}).items():
        found = _values(("axes", path), values, problems)
        _refuse_repeated(f"axes.{path}", [value_text(each) for each in found], problems)
        if found:
            yield (Axis(path, _different(found)),)
    groups = data.get("zip")
    if groups is not None and not (isinstance(groups, list) and all(isinstance(one, dict) and one for one in groups)):
        problems.wrong(("zip",), groups, "must be a list of mappings of keys to lists of values")
        groups = None
    for number, group in enumerate(groups or []):
        together = [(path, _values(("zip", number, path), values, problems)) for path, values in group.items()]
        if len({len(values) for _, values in together}) > 1:
            counts = ", ".join(f"{path} has {len(values)}" for path, values in together)
            problems.add([f"zip.{number}: axes that move together need equally many values: {counts}"])
            continue
        # Values may repeat along one axis; what moves together must differ somewhere.
        rows = zip(*(values for _, values in together), strict=True)
        _refuse_repeated(f"zip.{number}", [", ".join(map(value_text, row)) for row in rows], problems)
        if together[0][1]:
            yield tuple(Axis(path, tuple(values)) for path, values in together)


def _values(path: tuple[str | int, ...], value: Any, problems: Problems) -> list[Any]:
    if isinstance(value, dict) and set(value) <= set(_RANGE_KEYS) and "from" in value:
        return _range(path, value, problems)
    if not isinstance(value, list):
        problems.wrong(path, value, "must be a list of values, or `{from: .., to: .., step: ..}`")
        return []
    if not value:
        problems.wrong(path, value, "is empty; list at least one value, or leave the axis out")
        return []
    return value


def _different(values: Sequence[Any]) -> tuple[Any, ...]:
    # By text, since 1 and 1.0 are equal in Python and different in a scenario, and lists cannot be hashed.
    return tuple({value_text(value): value for value in values}.values())


def _refuse_repeated(where: str, texts: Sequence[str], problems: Problems) -> None:
    for text in _repeated(texts):
        problems.add([f"{where} = {text}: stands there twice; keep one"])


def _range(path: tuple[str | int, ...], value: Mapping[str, Any], problems: Problems) -> list[Any]:
    numbers = [value.get(key) for key in _RANGE_KEYS]
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers):
        problems.wrong(path, dict(value), "needs the numbers `from`, `to` and `step`")
        return []
    start, stop, step = numbers
    if not (step > 0 and stop >= start):  # type: ignore[operator]
        problems.wrong(path, dict(value), "needs step > 0 and to >= from")
        return []
    # Rounded: 0.1 + 2 * 0.1 must be 0.3, and `to` itself must not be lost to rounding.
    count = int((stop - start) / step + 1e-9) + 1  # type: ignore[operator]
    if count > MOST_VALUES:
        problems.wrong(path, dict(value), f"has {count} values; at most {MOST_VALUES} are allowed")
        return []
    whole = all(isinstance(each, int) for each in numbers)
    steps = (start + place * step for place in range(count))  # type: ignore[operator]
    return [each if whole else round(each, 12) for each in steps]


def _seeds(value: Any, problems: Problems) -> int | tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_VALUES:
        return value
    if isinstance(value, list) and value and all(_is_seed(each) for each in value) and len(set(value)) == len(value):
        return tuple(value)
    problems.wrong(("seeds",), value, "must be a number of seeds >= 1, or a list of different seeds")
    return 1


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _allowed(
    groups: Sequence[tuple[Axis, ...]], settings: Mapping[str, Any], problems: Problems
) -> Iterator[tuple[Axis, ...]]:
    """Yields the groups without axes that are set in two places, or that no cell may have."""
    named = [*(axis.path for group in groups for axis in group), *settings]
    # Left out altogether: which of the two places was meant is not known.
    wrong = set(_repeated(named))
    problems.add(f"{path}: is set in two places; keep one of axes, zip and settings" for path in _repeated(named))
    for path in named:
        if path in ("seed", "name", "question"):
            cure = "use `seeds`" if path == "seed" else "a cell is called by its settings"
            problems.add([f"axes.{path}: cannot be an axis or a setting; {cure}"])
            wrong.add(path)
    yield from (group for group in groups if not any(axis.path in wrong for axis in group))


def _repeated(names: Sequence[str]) -> Iterable[str]:
    return dict.fromkeys(name for name in names if names.count(name) > 1)
