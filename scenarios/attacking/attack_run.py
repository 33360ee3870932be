"""Carries out attacks on a run folder and stores their results in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nodes.adversaries.attack_kinds import ATTACKS
from p2p.config.choices import Choice
from p2p.config.errors import UserError
from privacy.attacks.attack import Attack
from privacy.attacks.observations import Position
from scenarios.attacking.positions import chosen
from scenarios.attacking.repeated_runs import comparisons_of
from scenarios.attacking.result_files import write_result
from scenarios.attacking.views import AttackedRun
from scenarios.loading.load import parse_scenario
from scenarios.loading.writing.dump import dump_keys, kind_of
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.observation_files import FOLDER
from scenarios.run_folder.reader import open_run
from scenarios.schema import Scenario

Entry = dict[str, Any]


def attack_run(
    path: Path, attacks: Sequence[Attack], data_dir: Path | None = None, scenario: Scenario | None = None
) -> dict[str, Any]:
    """Carries out attacks on a run and returns its summary, to whose `attacks` their results are added."""
    run = open_run(path)
    if run.summary is None:
        raise UserError(f"RUN = {path}: the run did not end; go on with it by `peerveil run --resume --out {path}`")
    known = scenario or parse_scenario(run.scenario_text, source=str(path / "scenario.yaml"), folder=path)
    attacked = AttackedRun(path, known, run.summary, data_dir)
    entries: list[Entry] = list(run.summary.get("attacks", []))
    for attack in attacks:
        able, problems = chosen(attack, attacked.positions)
        if known.adversaries and not attacked.positions:
            problems = [f"the files of its observers are gone from {FOLDER}/; run the scenario again"]
        if problems:
            raise UserError([_about(path, problem) for problem in problems])
        for problem in _carry_out_by_all(attacked, attack, able, entries):
            print(_about(path, problem), file=sys.stderr)
    summary = {**run.summary, "attacks": entries}
    atomic_write.write_text(path / "summary.json", to_json(summary))
    return summary


def _carry_out_by_all(
    attacked: AttackedRun, attack: Attack, able: Sequence[Position], entries: list[Entry]
) -> list[str]:
    """Adds the results of all positions; returns why some have none, in this run.

    Raises:
        UserError: none has a result. What a position can do in general is known before; what it got is not.
    """
    problems: list[str] = []
    added = 0
    for position in able:
        try:
            _replace(entries, _carry_out(attacked, attack, position, entries))
            added += 1
        except UserError as error:
            problems += [f"{position.name}: {problem}" for problem in error.problems]
    if not added:
        raise UserError([_about(attacked.path, problem) for problem in problems])
    return problems


def _about(path: Path, problem: str) -> str:
    return f"RUN = {path}: {problem}"


def _carry_out(attacked: AttackedRun, attack: Attack, position: Position, entries: Sequence[Entry]) -> Entry:
    head = {"kind": kind_of(Choice(ATTACKS), attack), "by": position.name, "options": options_of(attack)}
    stem = _stem(head, entries)
    # Carrying out the same attack again tries nothing new.
    tried = sum(comparisons_of(entry) for entry in entries if not _same(entry, head))
    guess = attack.guess(attacked.view(position))
    result = attack.score(guess, attacked.truth(position, tried))
    write_result(attacked.path, stem, result)
    # What several runs said together stays: their coins are the same as before.
    before = next((entry for entry in entries if _same(entry, head)), {})
    kept = {key: before[key] for key in ("together",) if key in before}
    return {**head, "file": stem, "headline": result.headline, **result.figures, **kept}


def options_of(attack: Attack) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(to_json(dump_keys(attack)))
    plain.pop("by", None)
    return plain


def _stem(head: Entry, entries: Sequence[Entry]) -> str:
    """Returns the file name of a result: that of the same attack with the same options, or a free one."""
    same = next((entry["file"] for entry in entries if _same(entry, head)), None)
    if same is not None:
        return str(same)
    plain, taken = f"{head['kind']}-{head['by']}".replace(":", "."), {entry["file"] for entry in entries}
    names = (plain if number == 1 else f"{plain}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _replace(entries: list[Entry], new: Entry) -> None:
    """Puts a result in the place of the same attack's earlier one, or at the end."""
    for place, entry in enumerate(entries):
        if _same(entry, new):
            entries[place] = new
            return
    entries.append(new)


def _same(one: Entry, other: Entry) -> bool:
    return all(one.get(key) == other.get(key) for key in ("kind", "by", "options"))
