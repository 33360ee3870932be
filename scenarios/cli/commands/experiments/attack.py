"""`peerveil attack KIND RUN...`: what an adversary of a run learns from its observations."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nodes.adversaries.attack_kinds import ATTACKS
from p2p.config.choices import Choice
from p2p.config.errors import UserError
from privacy.attacks.attack import Attack
from scenarios.attacking.attack_run import attack_run
from scenarios.loading.load import parse_scenario
from scenarios.loading.overrides import apply_changes, read_overrides
from scenarios.loading.plugins import Plugins
from scenarios.loading.problems import Problems, suggestion
from scenarios.loading.reader import INVALID, Reader
from scenarios.loading.writing.field_docs import summary_of
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import explaining_damage, open_run


def run(args: argparse.Namespace) -> int:
    """Attacks each run, stores the results in its folder, and prints them."""
    if args.list or args.kind is None:
        print("\n".join(f"{name:<16} {summary_of(strategy)}" for name, strategy in ATTACKS.items()))
        return 0
    if not args.runs:
        raise UserError("RUN: is needed; give folders that `peerveil run` wrote")
    attack = _read_attack(args.kind, args.overrides, args.by)
    found = {str(path): _attack_one(path, attack, args) for path in args.runs}
    if args.json:
        print(to_json(found))
        return 0
    for name, entries in found.items():
        for entry in entries:
            print(f"{name}  {entry['kind']} by {entry['by']}: {entry['headline']}")
    return 0


def _attack_one(path: Path, attack: Attack, args: argparse.Namespace) -> list[dict[str, Any]]:
    text = open_run(path).scenario_text
    source = str(path / "scenario.yaml")
    scenario = parse_scenario(text, source=source, folder=path, allow_plugins=args.allow_plugins)
    with explaining_damage(path):
        summary = attack_run(path, [attack], args.data_dir, scenario)
    names = {name for name, strategy in ATTACKS.items() if isinstance(attack, strategy)}
    return [
        entry for entry in summary["attacks"] if entry["kind"] in names and (not attack.by or entry["by"] == attack.by)
    ]


def _read_attack(kind: str, overrides: list[str], by: str) -> Attack:
    """Reads the attack's options as an entry of `attacks` in a scenario is read."""
    if kind not in ATTACKS:
        raise UserError(f"KIND = {kind}: unknown attack; {suggestion(kind, ATTACKS)}")
    problems = Problems()
    keys: dict[str, Any] = {"kind": kind, "by": by}
    apply_changes(keys, read_overrides(overrides, problems), problems)
    attack = Reader(Path.cwd(), problems, Plugins(False))._choice(Choice(ATTACKS), keys, (), None)
    problems.refuse("attack")
    if attack is INVALID:
        raise UserError("the options cannot be read")
    read: Attack = attack
    return read
