"""`peerveil list`: shows the catalog, each scenario with its question."""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path

from scenarios.loading.catalog import catalog
from scenarios.loading.yaml_text import parse_yaml


def list_command(args: argparse.Namespace) -> int:
    """Prints the name and question of every scenario in the catalog."""
    questions = {name: _question(path) for name, path in catalog().items()}
    if args.json:
        rows = [{"name": name, "question": question} for name, question in questions.items()]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    width = max(len(name) for name in questions)
    for name, question in questions.items():
        hang = " " * (width + 2)
        print(textwrap.fill(f"{name:<{width}}  {question}", width=100, subsequent_indent=hang))
    return 0


def _question(path: Path) -> str:
    # Parsed as plain YAML: loading every scenario would be slow.
    return str(parse_yaml(path.read_text(encoding="utf-8")).get("question", ""))
