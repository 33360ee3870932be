"""`peerveil attack KIND RUN...`: what an adversary of a run learns from its observations."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nodes.adversaries.attack_kinds import ATTACKS
from p2p.config.choices import Choice
from p2p.config.errors import UserError
from privacy.attacks.attack import Attack
from scenarios.attacking.attack_run import attack_run, options_of
from scenarios.attacking.repeated_runs import judge_together
from scenarios.loading.load import parse_scenario
from scenarios.loading.overrides import apply_changes, read_overrides
from scenarios.loading.plugins import Plugins
from scenarios.loading.problems import Problems, suggestion
from scenarios.loading.reader import INVALID, Reader
from scenarios.loading.writing.field_docs import summary_of
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import explaining_damage, open_run
from scenarios.schema import Scenario


def run(args: argparse.Namespace) -> int:
    """Attacks each run, stores the results in its folder, and prints them."""
    if args.list or args.kind is None:
        print("\n".join(f"{name:<16} {summary_of(strategy)}" for name, strategy in ATTACKS.items()))
        return 0
    if not args.runs:
        raise UserError("RUN: is needed; give folders that `peerveil run` wrote")
    attack = _read_attack(args.kind, args.overrides, args.by)
    scenarios = {path: _scenario_of(path, args.allow_plugins) for path in args.runs}
    for path, scenario in scenarios.items():
        with explaining_damage(path):
            attack_run(path, [attack], args.data_dir, scenario)
    pools, why_not = (
        judge_together(scenarios, args.kind, options_of(attack), attack.by) if len(scenarios) > 1 else ([], "")
    )
    found = {str(path): _entries(path, args.kind, attack.by) for path in scenarios}
    if args.json:
        print(to_json(found))
        return 0
    for name, entries in found.items():
        for entry in entries:
            print(f"{name}  {entry['kind']} by {entry['by']}: {entry['headline']}")
    for pool in pools:
        print(f"{args.kind} by {pool['by']}: {pool['headline']}")
    if why_not:
        print(f"not judged together: {why_not}")
    return 0


def _scenario_of(path: Path, allow_plugins: bool) -> Scenario:
    text = open_run(path).scenario_text
    return parse_scenario(text, source=str(path / "scenario.yaml"), folder=path, allow_plugins=allow_plugins)


def _entries(path: Path, kind: str, by: str) -> list[dict[str, Any]]:
    """Returns the results of this kind of attack that a run has."""
    entries = (open_run(path).summary or {}).get("attacks", [])
    return [entry for entry in entries if entry["kind"] == kind and by in ("", entry["by"])]


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
