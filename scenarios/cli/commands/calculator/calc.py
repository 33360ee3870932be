"""`peerveil calc`: evaluates one privacy formula, or compares a file of reference cases."""

from __future__ import annotations

import argparse
import inspect
from typing import Any, get_type_hints

from p2p.config.errors import UserError
from scenarios.cli.commands.calculator.calc_cases import compare_file
from scenarios.cli.commands.calculator.calc_inputs import compute, formula_of
from scenarios.loading.problems import Problems
from scenarios.run_folder.json_text import to_json


def run(values: argparse.Namespace) -> int:
    """Prints a formula's results, the list of kinds, or the differences from the cases; returns 1 if there are any."""
    if values.list:
        print(_listing(values.json))
        return 0
    if values.cases is not None:
        return compare_file(values.cases, values.json)
    if values.kind is None:
        raise UserError("KIND: required; `peerveil calc --list` shows them, `--cases FILE` compares a file")
    print(to_json(compute(values.kind, _from_words(values.kind, values.inputs))), end="")
    return 0


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

    hints = get_type_hints(formula_of(kind))
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
