"""`peerveil calc`: evaluates one privacy formula, or compares a file of reference cases."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import numpy as np

from p2p.config.errors import UserError
from scenarios.loading.problems import Problems, rule_of, suggestion
from scenarios.run_folder.json_text import to_json


def run(values: argparse.Namespace) -> int:
    """Prints a formula's results, the list of kinds, or the differences from the cases; returns 1 if there are any."""
    if values.list:
        print(_listing(values.json))
        return 0
    if values.cases is not None:
        from scenarios.cli.commands.calc_cases import compare_file

        return compare_file(values.cases, values.json)
    if values.kind is None:
        raise UserError("KIND: required; `peerveil calc --list` shows them, `--cases FILE` compares a file")
    print(to_json(compute(values.kind, _from_words(values.kind, values.inputs))), end="")
    return 0


def compute(kind: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the results of one formula, with `warnings` where inputs leave its proven range.

    Raises:
        UserError: unknown kind or key, missing key, or invalid inputs; all problems at once.
    """
    formula = _formula(kind)
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


def _formula(kind: str) -> Callable[..., dict[str, Any]]:
    from privacy.calc import CALC

    if kind not in CALC:
        raise UserError(f"KIND = {kind}: unknown kind; {suggestion(kind, CALC)}")
    return CALC[kind]


def _listing(as_json: bool) -> str:
    from privacy.calc import CALC

    about = {kind: (inspect.getdoc(formula) or "").splitlines()[0] for kind, formula in CALC.items()}
    if as_json:
        named = {kind: list(inspect.signature(formula).parameters) for kind, formula in CALC.items()}
        return to_json({kind: {"about": about[kind], "inputs": named[kind]} for kind in CALC}).rstrip()
    width = max(map(len, about))
    return "\n".join(f"{kind:<{width}}  {text}" for kind, text in about.items())


def _from_words(kind: str, words: list[str]) -> dict[str, Any]:
    """Parses `key=value` words: values as in a scenario file, or verbatim where the formula takes a string."""
    from scenarios.loading.yaml_text import parse_yaml

    hints = get_type_hints(_formula(kind))
    problems, inputs = Problems(), dict[str, Any]()
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or key in inputs:
            problems.add([f"{word}: {'given twice; keep one' if equals else 'must be key=value'}"])
            continue
        try:
            inputs[key] = text if hints.get(key) is str else parse_yaml(text)
        except ValueError as reason:
            problems.wrong((key,), text, str(reason))
    problems.refuse(f"calc {kind}")
    return inputs


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
