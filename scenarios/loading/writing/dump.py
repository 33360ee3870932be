"""Writes a Scenario as YAML with every default explicit; loading the text gives an equal Scenario."""

from __future__ import annotations

from types import NoneType
from typing import Any

import yaml

from p2p.config.choices import Choice
from p2p.config.distributions import Constant, Drawn, InUnitOfField
from p2p.config.units import Unit, format_quantity
from scenarios.loading.number_text import FLOAT
from scenarios.loading.writing.field_docs import accepts_none, bare, is_structured, item_type, keys_of, marker, members


def dump_keys(record: Any, unit: Unit | None = None, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns the keys of a strategy's dataclass with plain values; quantities are in the unit of their field."""
    strategy: type = type(record)
    return {
        key.name: dump_value(key.annotation, getattr(record, key.name), unit)
        for key in keys_of(strategy)
        if key.name not in leave_out
    }


def dump_value(annotation: Any, value: Any, unit: Unit | None = None) -> Any:
    """Returns a value of that type as written in a scenario file."""
    if value is None:
        return "none" if accepts_none(annotation) else None
    # The order of the tests matters: a union may contain a choice, and a choice is also a structured type.
    if len(members(annotation)) > 1:
        return dump_value(_member(annotation, value), value, unit)
    if choice := marker(annotation, Choice):
        return _chosen(choice, value, unit)
    if drawn := marker(annotation, Drawn):
        return _distribution(drawn, value)
    item = item_type(annotation)
    if item is not None:
        return [dump_value(item, entry, unit) for entry in value]
    if is_structured(annotation):
        return dump_keys(value, unit)
    return _scalar(annotation, value, unit)


def kind_of(choice: Choice, value: Any) -> str:
    """Returns the table's name for the value's class, or `module:Class` for a plug-in."""
    for kind, strategy in choice.table.items():
        # Not isinstance: a plug-in may subclass a built-in strategy.
        if type(value) is strategy:
            return kind
    return f"{type(value).__module__}:{type(value).__qualname__}"


def to_yaml(data: dict[str, Any]) -> str:
    """Returns block-style YAML with keys in the order given."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def to_flow(value: Any) -> str:
    """Returns one line of YAML that can follow a key."""
    # Dumped as a one-element list and unwrapped: a bare scalar would get a document end marker.
    text: str = yaml.dump(
        [value], Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=True, width=10_000
    )
    return text.strip()[1:-1]


def _chosen(choice: Choice, value: Any, unit: Unit | None) -> Any:
    keys = dump_keys(value, unit)
    kind = kind_of(choice, value)
    # The bare name if there is nothing else to say.
    return {choice.key: kind, **keys} if keys else kind


def _distribution(drawn: Drawn, value: Any) -> Any:
    if isinstance(value, Constant):
        return format_quantity(value.value, drawn.base)
    return _chosen(Choice(drawn.table), value, drawn)


def _scalar(annotation: Any, value: Any, unit: Unit | None) -> Any:
    # Parameters of a distribution are in the unit of the field that holds it.
    own = marker(annotation, Unit)
    if marker(annotation, InUnitOfField):
        own = unit
    return format_quantity(float(value), own.base) if own is not None and own.base else value


def _member(annotation: Any, value: Any) -> Any:
    """Returns the union member a value belongs to; a quantity with a unit wins over a plain number."""
    options = [option for option in members(annotation) if option is not NoneType]
    fitting = [option for option in options if _fits(option, value)]
    # A plug-in's own class fits no annotation; the first member then formats it.
    return (fitting or options)[0]


def _fits(option: Any, value: Any) -> bool:
    if is_structured(option):
        return not isinstance(value, bool | int | float | str | tuple | list)
    if marker(option, Unit):
        return isinstance(value, float)
    plain = bare(option)
    return isinstance(plain, type) and isinstance(value, plain)


class _Dumper(yaml.SafeDumper):
    """Quotes strings that our reader would parse as another type (and `no`, `off` for other readers)."""


def _tuple(dumper: yaml.SafeDumper, data: tuple[Any, ...]) -> yaml.Node:
    return dumper.represent_list(data)


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    # Plain and single-quoted styles fold exotic line ends to spaces; double quotes escape them.
    style = None if data.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(tuple, _tuple)
_Dumper.add_representer(str, _text)
# PyYAML writes YAML 1.1, where the text 1e-5 needs no quotes.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))
