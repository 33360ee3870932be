"""The JSON Schema for editors."""

from __future__ import annotations

import re
from typing import Any

import pytest

from p2p.config.distributions import DISTRIBUTIONS
from scenarios.loading.catalog import catalog
from scenarios.loading.writing.field_docs import keys_of
from scenarios.loading.writing.json_schema import scenario_schema
from scenarios.loading.yaml_text import parse_yaml
from scenarios.schema import Scenario


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """A reading of the few words the schema uses, enough to try the catalog on it."""
    if "anyOf" in schema:
        return any(accepts(option, value) for option in schema["anyOf"])
    if "const" in schema:
        return bool(schema["const"] == value)
    if "enum" in schema:
        return value in schema["enum"]
    kinds = schema.get("type", [])
    return any(_has_type(schema, value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _has_type(schema: dict[str, Any], value: Any, kind: str) -> bool:
    if kind == "object":
        keys = schema.get("properties", {})
        return (
            isinstance(value, dict)
            and set(schema.get("required", [])) <= value.keys()
            and all(accepts(keys[key], item) for key, item in value.items() if key in keys)
            and (value.keys() <= keys.keys() or schema.get("additionalProperties", True) is not False)
        )
    if kind == "array":
        return isinstance(value, list) and all(accepts(schema.get("items", {"type": "string"}), one) for one in value)
    if kind == "string" and "pattern" in schema:
        return isinstance(value, str) and re.match(schema["pattern"], value) is not None
    names: dict[str, Any] = {"string": str, "integer": int, "number": int | float, "boolean": bool, "null": type(None)}
    return isinstance(value, names[kind])


def test_every_section_is_described() -> None:
    """Each key of a scenario with half a line, the required ones marked."""
    schema = scenario_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert list(schema["properties"]) == [key.name for key in keys_of(Scenario)]
    assert all(section["description"] for section in schema["properties"].values())
    assert schema["required"] == ["name", "rounds", "clients", "data", "model", "protocol"]
    assert schema["additionalProperties"] is False


def test_kinds_are_enumerated() -> None:
    """Editors can complete them."""
    uplink = scenario_schema()["properties"]["network"]["properties"]["uplink"]
    kinds = [option["properties"]["kind"].get("const") for option in uplink["anyOf"] if "properties" in option]
    assert kinds[: len(DISTRIBUTIONS)] == list(DISTRIBUTIONS)


@pytest.mark.parametrize("name", sorted(catalog()))
def test_the_catalog_fits_the_schema(name: str) -> None:
    """What the loader takes, the schema takes."""
    assert accepts(scenario_schema(), parse_yaml(catalog()[name].read_text()))


def test_a_wrong_scenario_does_not_fit() -> None:
    """Unknown keys and unknown kinds are marked in the editor too."""
    good = parse_yaml(catalog()["tiny"].read_text())
    assert not accepts(scenario_schema(), good | {"rouns": 3})
    assert not accepts(scenario_schema(), good | {"model": {"kind": "mpl"}})
    assert accepts(scenario_schema(), good | {"model": {"kind": "my_models:Net"}})
    assert accepts(scenario_schema(), good | {"model": "my_models:Net"})
