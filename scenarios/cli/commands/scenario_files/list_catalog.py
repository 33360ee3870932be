"""`peerveil list`: shows the catalog, each scenario with its question; or device presets and availability traces."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nodes.faults.trace_models import TRACES
from p2p.links.device_presets import PRESETS
from scenarios.loading.catalog import catalog
from scenarios.loading.yaml_text import parse_yaml

Row = Mapping[str, Any]
_DEVICES_IN_A_SCENARIO = """\
network:
  devices:
    - {name: phones, share: 0.7, preset: phone_4g}
    - {name: homes, share: 0.3, preset: home_cable, uplink: 15 Mbit/s}    # a key of its own goes before the preset's
  energy: {}                                                              # the presets' rates"""
_TRACES_IN_A_SCENARIO = "availability: {kind: day, trace: phones_charging, start: 20 h}"


def list_command(args: argparse.Namespace) -> int:
    """Prints the name and description of every entry."""
    # Options after an absent word leave argparse without its default.
    what = getattr(args, "what", None) or "scenarios"
    if what == "devices":
        rows = [{"name": name, **asdict(preset)} for name, preset in PRESETS.items()]
        return _print(args.json, rows, _device_text, _DEVICES_IN_A_SCENARIO)
    if what == "traces":
        rows = [{"name": name, **asdict(trace)} for name, trace in TRACES.items()]
        return _print(args.json, rows, _trace_text, _TRACES_IN_A_SCENARIO)
    questions = [{"name": name, "question": _question(path)} for name, path in catalog().items()]
    return _print(args.json, questions, lambda row: str(row["question"]))


def _print(as_json: bool, rows: Sequence[Row], text: Callable[[Row], str], use: str = "") -> int:
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    width = max(len(str(row["name"])) for row in rows)
    hang = " " * (width + 2)
    for row in rows:
        for number, line in enumerate(text(row).split("\n")):
            start = f"{row['name']:<{width}}  " if number == 0 else hang
            print(textwrap.fill(line, width=100, initial_indent=start, subsequent_indent=hang))
    if use:
        print(f"\nIn a scenario:\n{use}")
    return 0


def _device_text(row: Row) -> str:
    links = f"{row['up_mbit']:g} Mbit/s up, {row['down_mbit']:g} down (sigma {row['link_sigma']:g})"
    speed = f"{row['speed']:g} samples/s (sigma {row['speed_sigma']:g})"
    micro = [f"{row[key] * 1e6:.3g} uJ" for key in ("per_byte_sent", "per_byte_received")]
    energy = f"{micro[0]} a byte sent, {micro[1]} received, {row['per_sample'] * 1e3:g} mJ a sample"
    return f"{links}; {speed}; {energy}\n{row['source']}"


def _trace_text(row: Row) -> str:
    return f"{row['what']}\n{row['source']}"


def _question(path: Path) -> str:
    # Parsed as plain YAML: loading every scenario would be slow.
    return str(parse_yaml(path.read_text(encoding="utf-8")).get("question", ""))
