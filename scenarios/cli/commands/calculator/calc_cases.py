"""Compares reference cases with the calculator: fields that differ by more than their tolerance."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.cli.commands.calculator.calc_inputs import compute
from scenarios.run_folder.json_text import plain, to_json

_INFORMATIVE = "monte_carlo"
"""Prefix of expected fields that are sampled, and so are not compared."""
_DEFAULT_REL = 1e-6


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one case that differs from its expected value."""

    case: str
    field: str
    expected: Any
    got: Any
    allowed: str


def compare_file(path: Path, as_json: bool) -> int:
    """Prints the differences; returns 1 if there are any, otherwise 0."""
    cases = read_cases(path)
    found = [difference for case in cases for difference in compare_case(case)]
    if as_json:
        rows = [{name: getattr(one, name) for name in Difference.__slots__} for one in found]
        print(to_json({"cases": len(cases), "differences": rows}), end="")
    else:
        print("\n".join([*_table(found), f"{len(cases)} cases, {len({one.case for one in found})} differ"]))
    return 1 if found else 0


def read_cases(path: Path) -> list[dict[str, Any]]:
    """Reads the cases of a file `{"cases": [{id, kind, inputs, expected, tolerance}]}`.

    Raises:
        UserError: the file cannot be read, is not JSON, or has another form.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--cases = {path}: cannot be read ({error.strerror}); give a JSON file") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"--cases = {path}: is not JSON ({error}); give a JSON file of cases") from error
    cases = content.get("cases") if isinstance(content, dict) else content
    if not isinstance(cases, list) or not all(_is_case(case) for case in cases):
        form = '{"cases": [{"id": ..., "kind": ..., "inputs": {...}, "expected": {...}, "tolerance": {...}}]}'
        raise UserError(f"--cases = {path}: must have the form {form}")
    return cases


def compare_case(case: Mapping[str, Any]) -> Iterator[Difference]:
    """Yields the fields of one case that differ; refused inputs and missing fields count as differences."""
    name = str(case.get("id", case["kind"]))
    try:
        got = plain(compute(case["kind"], case["inputs"]))
    except UserError as error:
        yield Difference(name, "inputs", "numbers", "; ".join(error.problems), "")
        return
    for field, expected in case["expected"].items():
        if field.startswith(_INFORMATIVE):
            continue
        tolerance = Tolerance.of(field, case.get("tolerance", {}))
        if field not in got or not tolerance.admits(expected, got[field]):
            yield Difference(name, field, expected, got.get(field), str(tolerance))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed deviation of a number: the larger of `rel` times its value and `absolute`.

    Integers must be equal unless the tolerance is named for their field.
    """

    rel: float
    absolute: float
    named: bool

    @classmethod
    def of(cls, field: str, tolerance: Mapping[str, float]) -> Tolerance:
        """Returns the field's own tolerance if it has one, otherwise the general one."""
        keys = (f"{field}_rel", f"{field}_abs")
        if any(key in tolerance for key in keys):
            return cls(tolerance.get(keys[0], 0.0), tolerance.get(keys[1], 0.0), named=True)
        # A file that gives `abs` alone means no relative tolerance.
        general = "rel" in tolerance or "abs" in tolerance
        return cls(tolerance.get("rel", 0.0 if general else _DEFAULT_REL), tolerance.get("abs", 0.0), named=False)

    def admits(self, expected: Any, got: Any) -> bool:
        """Returns whether `got` matches `expected`: lists entry by entry; integers, booleans and text exactly."""
        if isinstance(expected, list):
            return (
                isinstance(got, list)
                and len(expected) == len(got)
                and all(self.admits(one, other) for one, other in zip(expected, got, strict=True))
            )
        # Types must match too: true is not 1, and `inf` is text in both.
        if not _is_number(expected) or not _is_number(got):
            return type(expected) is type(got) and bool(expected == got)
        if isinstance(expected, int) and not self.named:
            return bool(expected == got)
        return math.isclose(expected, got, rel_tol=0.0, abs_tol=max(self.absolute, self.rel * abs(expected)))

    def __str__(self) -> str:
        parts = [f"rel {self.rel:g}"] if self.rel else []
        return " or ".join([*parts, f"abs {self.absolute:g}"] if self.absolute or not parts else parts)


def _is_case(case: Any) -> bool:
    return (
        isinstance(case, dict)
        and isinstance(case.get("kind"), str)
        and isinstance(case.get("inputs"), dict)
        and isinstance(case.get("expected"), dict)
        and isinstance(case.get("tolerance", {}), dict)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _table(found: list[Difference]) -> list[str]:
    """Returns the differences as aligned lines; none if there are no differences."""
    if not found:
        return []
    rows = [("case", "field", "expected", "got", "allowed")]
    rows += [(one.case, one.field, _cell(one.expected), _cell(one.got), one.allowed) for one in found]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
