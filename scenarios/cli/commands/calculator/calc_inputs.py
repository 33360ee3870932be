"""A privacy formula by its name: finds it, converts its inputs, and computes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import numpy as np

from p2p.config.errors import UserError
from scenarios.loading.problems import Problems, rule_of, suggestion


def compute(kind: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the results of one formula, with `warnings` where inputs leave its proven range.

    Raises:
        UserError: unknown kind or key, missing key, or invalid inputs; all problems at once.
    """
    formula = formula_of(kind)
    checked = _checked(kind, formula, inputs)
    try:
        # Extreme inputs overflow to infinity, which is the correct result.
        with np.errstate(all="ignore"):
            return formula(**checked)
    except UserError as error:
        raise UserError(error.problems, f"calc {kind}") from error
    except (ArithmeticError, ValueError, MemoryError) as error:
        raise UserError(
            f"these inputs are beyond what can be computed ({type(error).__name__}); use less extreme ones",
            f"calc {kind}",
        ) from error


def formula_of(kind: str) -> Callable[..., dict[str, Any]]:
    """Returns the formula of a kind; raises UserError if there is none."""
    from privacy.calc import CALC

    if kind not in CALC:
        raise UserError(f"KIND = {kind}: unknown kind; {suggestion(kind, CALC)}")
    return CALC[kind]


def _checked(kind: str, formula: Callable[..., Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the inputs to the formula's types; raises UserError with all problems."""
    hints = get_type_hints(formula, include_extras=True)
    parameters = inspect.signature(formula).parameters
    problems = Problems()
    # Unknown and missing keys are reported together, before any value is converted.
    for key in inputs:
        if key not in parameters:
            problems.unknown_key((key,), parameters)
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in inputs:
            problems.missing((name,), f"add `{name}=...`")
    known = {name: value for name, value in inputs.items() if name in parameters}
    checked = {name: _typed(hints[name], value, name, problems) for name, value in known.items()}
    problems.refuse(f"calc {kind}")
    return checked


def _typed(hint: Any, value: Any, name: str, problems: Problems) -> Any:
    """Validates one input strictly with pydantic, except that 50.0 counts as an integer."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic_core import to_json as dump

    adapter = TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))
    # Validated as JSON, because strict mode accepts a list for a tuple only there.
    try:
        return adapter.validate_json(dump(_whole(value), inf_nan_mode="constants"))
    except ValidationError as error:
        rules = dict.fromkeys(rule_of(dict(one)) for one in error.errors() if one["type"] != "none_required")
        problems.wrong((name,), value, " or ".join(rules))
        return None


def _whole(value: Any) -> Any:
    """Turns floats without a fraction into integers, so that either may be written for the other."""
    if isinstance(value, list):
        return [_whole(part) for part in value]
    if isinstance(value, dict):
        return {key: _whole(part) for key, part in value.items()}
    # Beyond 2^53 a float may not equal the integer that was written.
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
