"""What `import peerveil` offers: exactly the documented names, each with types and an example that runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import peerveil

NAMES = sorted(peerveil.__all__)


def test_star_gives_exactly_the_documented_names() -> None:
    """Nothing else is public, and nothing documented is missing."""
    given: dict[str, object] = {}
    exec("from peerveil import *", given)  # noqa: S102
    del given["__builtins__"]
    assert sorted(given) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_name_says_what_it_is(name: str) -> None:
    """A docstring for each name and each public member, and annotations for every argument."""
    thing = getattr(peerveil, name)
    members = [thing, *(value for key, value in vars(thing).items() if not key.startswith("_") and _is_code(value))]
    for member in members if inspect.isclass(thing) and name != "UserError" else [thing]:
        assert inspect.getdoc(member), member
        for function in (member.func if hasattr(member, "func") else member,):
            if inspect.isfunction(function):
                missing = set(inspect.signature(function).parameters) - {"self"} - set(function.__annotations__)
                assert not missing, (function, missing)


def _is_code(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, property) or hasattr(value, "func")


@pytest.mark.slow
@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(peerveil.__path__)] + [""])
def test_the_examples_run(name: str) -> None:
    """The docstrings' examples give what they show."""
    module = importlib.import_module(f"peerveil.{name}".rstrip("."))
    assert doctest.testmod(module).failed == 0


def test_every_function_and_class_has_an_example() -> None:
    """An example per name; the error is shown where it is raised."""
    finder = doctest.DocTestFinder(recurse=False)
    without = [name for name in NAMES if not any(test.examples for test in finder.find(getattr(peerveil, name), name))]
    assert without == ["UserError"]


@pytest.mark.slow
def test_importing_costs_no_heavy_import() -> None:
    """torch, pandas and pyarrow are loaded by what needs them."""
    code = "import sys, peerveil; print(*sorted({'torch', 'pandas', 'pyarrow', 'numpy', 'simpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
