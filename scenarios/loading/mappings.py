"""Reads a YAML text that must be a mapping: scenario files and sweep files alike."""

from __future__ import annotations

from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.problems import printable
from scenarios.loading.yaml_text import parse_yaml


def parse_mapping(text: str, source: str) -> dict[str, Any]:
    """Returns the keys and values of a YAML text; `source` names it in errors."""
    try:
        data = parse_yaml(text)
    except ValueError as reason:
        raise UserError(printable(str(reason)), printable(source)) from reason
    if not isinstance(data, dict):
        raise UserError("must be a mapping of keys to values; start with `name: ...`", printable(source))
    return data
