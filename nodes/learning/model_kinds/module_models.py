"""A torch module class as a model: its constructor's arguments are the scenario's keys.

`shape` and `classes` are not keys: a constructor that has them is given the shape of a record and the number of
classes. Only scenarios with a module of their own import this file, since it imports torch.
"""

from __future__ import annotations

import dataclasses
import inspect
from functools import cache
from typing import Any, ClassVar, get_type_hints

import torch
from torch import nn

from nodes.learning.model_kinds.module_contract import check_module

FROM_DATA = ("shape", "classes")


class _ModuleModel:
    """A model that is built by calling a module's class."""

    __slots__ = ()
    module_class: ClassVar[type[nn.Module]]

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns a new module with the scenario's arguments."""
        given: dict[str, Any] = {"shape": shape, "classes": classes}
        wanted = {name: given[name] for name in _arguments(self.module_class) if name in FROM_DATA}
        keys: Any = self
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(keys)}
        return self.module_class(**own, **wanted)

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters of a module that fits the data; raises UserError if it does not."""
        # Building draws initial weights from torch's global generator, which the fork restores.
        with torch.random.fork_rng(devices=[]):
            module = self.build(shape, classes)
        check_module(module, torch.zeros(2, *shape), classes)
        return sum(part.numel() for part in module.parameters())


@cache
def model_class(module_class: type[nn.Module]) -> type:
    """Returns the model whose keys are the arguments of a module's constructor; the same one for the same class."""
    hints = get_type_hints(module_class.__init__, include_extras=True)
    fields = [
        _field(name, hints.get(name), parameter.default)
        for name, parameter in _arguments(module_class).items()
        if name not in FROM_DATA
    ]
    made = dataclasses.make_dataclass(
        module_class.__name__, fields, bases=(_ModuleModel,), frozen=True, kw_only=True,
        namespace={"__doc__": inspect.getdoc(module_class), "module_class": module_class},
    )  # fmt: skip
    # A scenario is written with the name of the user's class.
    made.__module__, made.__qualname__ = module_class.__module__, module_class.__qualname__
    return made


def _arguments(module_class: type[nn.Module]) -> dict[str, inspect.Parameter]:
    """Returns the named arguments of the constructor, without `self`."""
    listed = list(inspect.signature(module_class.__init__).parameters.values())[1:]
    return {one.name: one for one in listed if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}


def _field(name: str, hint: Any, default: Any) -> tuple[str, Any, Any]:
    """Returns a dataclass field; without an annotation, a key has the type of its default, or any plain type."""
    known = default is not inspect.Parameter.empty and default is not None
    annotation = hint or (type(default) if known else bool | int | float | str | None)
    if default is inspect.Parameter.empty:
        return name, annotation, dataclasses.field()
    # Lists as defaults are shared by all calls in Python; a dataclass refuses them, so each gets a copy.
    if isinstance(default, list | dict | set):
        return name, annotation, dataclasses.field(default_factory=default.copy)
    return name, annotation, dataclasses.field(default=default)
