"""Runs a result again: its sweep, printed beside measured values, the verdict, and the file that records it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.metrics.comparison import FIGURES, interval
from scenarios.metrics.privacy.privacy_verdict import epsilon_of
from scenarios.reproductions.formulas.table import FORMULAS
from scenarios.reproductions.judging import Measured, judge_parts
from scenarios.reproductions.published_results import find_result, folder_of
from scenarios.reproductions.rule_file import Rule, rules
from scenarios.reproductions.verdict import Verdict, judge
from scenarios.run_folder import atomic_write
from scenarios.run_folder.environment import describe_environment
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import finished_summary
from scenarios.sweeps.grid import Cell, Grid, base_name, expand
from scenarios.sweeps.identity import source_digest
from scenarios.sweeps.run_sweep import SweepOptions, default_folder, run_sweep
from scenarios.sweeps.store import Store

PROBE_ACCURACY = 0.02
"""Accuracy of a probe on another machine may differ by this much in one round."""


def reproduce_formula(name: str) -> dict[str, Any]:
    """Returns the outcome of a result that is a formula."""
    verdict = FORMULAS[name]()
    rule = " ".join((FORMULAS[name].__doc__ or "").split())
    return _outcome(name, verdict, command=f"peerveil reproduce {name}") | {"rule": rule}


def reproduce_sweep(name: str, size: str, seeds: int | None, options: SweepOptions, store: Store) -> dict[str, Any]:
    """Runs the sweep of a result and returns its outcome; finished cells are taken from the store."""
    rule = _rule(name)
    sweep = rule.sweep(size, seeds)
    grid = expand(sweep, data_dir=options.data_dir)
    result = run_sweep(sweep, grid, default_folder(sweep.name), store, options)
    failed = [row for row in result.rows if row["state"] == "failed"]
    if failed:
        raise UserError([f"{name}: a cell failed: {row['message']}" for row in failed[:5]])
    cells = [_measured(cell, store, rule.figure) for cell in grid.cells]

    def cells_of(figure: str | None) -> list[Measured]:
        return cells if figure is None else [_measured(cell, store, figure) for cell in grid.cells]

    verdict = with_formula(name, judge(judge_parts(rule.parts, cells_of), rule.assumed))
    count = len({cell.seed for cell in grid.cells})
    command = f"peerveil reproduce {name} --size {size} --seeds {count}"
    return _outcome(name, verdict, command=command) | {
        "size": size,
        "seeds": count,
        "figure": rule.figure,
        "unsaid": rule.unsaid,
        "values": _values(rule, cells),
        "source": source_digest()[:16],
        "digests": {row["cell"][:16]: row["digest_learning"][:16] for row in result.rows},
        "seconds": round(sum(row["seconds"] or 0.0 for row in result.rows), 1),
        "probe": probe(grid, options.data_dir),
    }


def with_formula(name: str, measured: Verdict) -> Verdict:
    """Adds the statements of the result's formula, if it has one; a refutation by proof outweighs what was measured."""
    if name not in FORMULAS:
        return measured
    proof = FORMULAS[name]()
    parts, readings = (*proof.parts, *measured.parts), (*proof.readings, *measured.readings)
    # A counterexample stands, however the measured parts came out.
    return Verdict("refuted", parts, proof.because, readings) if proof.word == "refuted" else judge(parts, readings)


def probe(grid: Grid, data_dir: Path | None) -> dict[str, Any]:
    """Runs one round of the first cell; its events, and its accuracy, tell whether today's code still does the same."""
    import tempfile

    from scenarios.running.run import run_scenario

    # One round of one cell: enough to notice a change, and cheap enough to ask of every verdict.
    scenario = replace(grid.cells[0].scenario, rounds=1)
    with tempfile.TemporaryDirectory() as folder:
        summary, _ = run_scenario(scenario, Path(folder) / "run", data_dir=data_dir, threads=1)
    return {"events": summary["digest"]["events"], "accuracy": summary["accuracy"]["mean"]}


def is_stale(name: str, data_dir: Path | None = None) -> bool:
    """Recomputes the probe of a recorded verdict; True if today's code gives another."""
    recorded = outcomes()[name]
    if "probe" not in recorded:
        return False
    sweep = rules()[name].sweep(recorded["size"], recorded["seeds"])
    found, then = probe(expand(sweep, data_dir=data_dir), data_dir), recorded["probe"]
    # Events are equal on every machine; accuracy only within a tolerance.
    if found["events"] != then["events"]:
        return True
    if found["accuracy"] is None or then["accuracy"] is None:
        return bool(found["accuracy"] != then["accuracy"])
    return bool(abs(found["accuracy"] - then["accuracy"]) > PROBE_ACCURACY)


def outcomes() -> dict[str, dict[str, Any]]:
    """Returns the recorded outcomes by id."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(_outcome_folder().glob("*/*.json"))
    }


def record(outcome: Mapping[str, Any]) -> None:
    """Keeps an outcome in the package, in the folder of its paper."""
    file = _outcome_folder() / folder_of(outcome["id"]) / f"{outcome['id']}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic_write.write_text(file, to_json(outcome))


def _outcome_folder() -> Path:
    return Path(str(files("scenarios.reproductions"))) / "outcomes"


def _rule(name: str) -> Rule:
    if name not in rules():
        raise UserError(f"{name}: has no rule yet; `peerveil reproduce --list` says what it waits for")
    return rules()[name]


def _outcome(name: str, verdict: Verdict, command: str) -> dict[str, Any]:
    environment = describe_environment(1, {})
    return {
        "id": name,
        "claim": find_result(name).claim,
        "verdict": verdict.word,
        "because": verdict.because,
        "parts": [part.to_json() for part in verdict.parts],
        "assumed": list(verdict.readings),
        "command": command,
        "versions": {name: environment["versions"][name] for name in ("peerveil", "torch", "numpy")},
    }


def _measured(cell: Cell, store: Store, figure: str) -> Measured:
    place = store.find(cell.key)
    summary = finished_summary(place) if place is not None else None
    settings = {"base": base_name(cell.base), **cell.settings}
    return Measured(settings, cell.seed, None if summary is None else figure_value(summary, figure))


def figure_value(summary: Mapping[str, Any], figure: str) -> float | None:
    """Returns a figure of the table, a path into the summary, or a quotient `a / b` of two paths.

    A number in a path is a place in a list, such as `attacks.0.results.0.psnr_db`.
    """
    if "/" in figure:
        over, under = (figure_value(summary, part.strip()) for part in figure.split("/"))
        return None if over is None or not under else over / under
    if figure in FIGURES:
        return FIGURES[figure].of(summary)
    value: Any = summary
    for key in figure.split("."):
        value = _inside(value, key)
    return epsilon_of(value)


def _inside(value: Any, key: str) -> Any:
    if isinstance(value, list):
        return value[int(key)] if key.isdigit() and int(key) < len(value) else None
    return value.get(key) if isinstance(value, Mapping) else None


def _values(rule: Rule, cells: Sequence[Measured]) -> list[dict[str, Any]]:
    """Returns printed beside measured values, one row per combination."""
    groups: dict[str, list[Measured]] = {}
    for cell in cells:
        # Settings may be mappings and lists, which no dict takes as keys.
        groups.setdefault(json.dumps(dict(cell.settings), default=str), []).append(cell)
    rows = []
    for text, members in groups.items():
        found = interval([member.value for member in members])
        printed = next((one["value"] for one in rule.printed if members[0].matches(one["where"])), None)
        rows.append({"settings": json.loads(text), "printed": printed, **found})
    return rows
