"""`peerveil schema`: the JSON Schema of a scenario, for editors that complete and check while typing."""

from __future__ import annotations

import argparse
import json

from scenarios.jsonschema import scenario_schema


def schema_command(args: argparse.Namespace) -> int:
    """Prints the schema."""
    print(json.dumps(scenario_schema(), indent=2, ensure_ascii=False))
    return 0
