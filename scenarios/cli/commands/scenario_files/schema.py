"""`peerveil schema`: prints the JSON Schema of a scenario, for completion and checks in editors."""

from __future__ import annotations

import argparse
import json

from scenarios.loading.writing.json_schema import scenario_schema


def schema_command(args: argparse.Namespace) -> int:
    """Prints the schema."""
    print(json.dumps(scenario_schema(), indent=2, ensure_ascii=False))
    return 0
