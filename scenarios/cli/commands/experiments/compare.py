"""`peerveil compare SCENARIO --protocols a,b,c`: runs a few alternatives and ends with which to take for what."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.cli.commands.experiments.run import INTERRUPTED
from scenarios.cli.console import make_console, print_rows
from scenarios.loading.checks.implausible import implausible_settings
from scenarios.loading.load import load_scenario
from scenarios.loading.plugins import blaming_plugins
from scenarios.loading.problems import printable
from scenarios.metrics.communication.update_receivers import UpdateReceivers, update_receivers
from scenarios.metrics.decision import Decision, decide
from scenarios.metrics.diagnosis import findings_text
from scenarios.metrics.headline.headline import TRANSPORT_ASSUMED
from scenarios.report.data.run_data import read_run_data
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.writer import check_out
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario

_MOST = 8
_DEFAULT_PEERS = 10


def run(args: argparse.Namespace) -> int:
    """Runs every alternative on every seed and prints the decision."""
    key, values = _axis(args)
    alternatives = _load(args, key, values)
    out = args.out or _free_folder(alternatives)
    check_out(out)
    summaries: dict[str, list[dict[str, Any]]] = {}
    receivers: dict[str, UpdateReceivers | None] = {}
    for label, scenario in alternatives.items():
        for step in range(args.seeds):
            seeded = replace(scenario, seed=scenario.seed + step)
            folder = out / _slug(label) if args.seeds == 1 else out / f"{_slug(label)}-{seeded.seed}"
            with blaming_plugins(seeded.plugins):
                summary, _ = run_scenario(seeded, folder, data_dir=args.data_dir, threads=args.threads, quiet=args.json)
            summaries.setdefault(label, []).append(summary)
            if summary["stopped_because"] == "interrupted":
                print(f"interrupted; what was done is in {out}", file=sys.stderr)
                return INTERRUPTED
            # Who gets updates depends on the protocol, not on the seed: the first run tells.
            if label not in receivers:
                receivers[label] = _receivers(folder)
    decision = decide(summaries, receivers)
    if args.json:
        print(to_json(_as_json(key, summaries, decision)))
    else:
        _print(decision, summaries, out)
    return 0


def _receivers(folder: Path) -> UpdateReceivers | None:
    """Returns who got the updates of a run: whom its users must trust."""
    data = read_run_data(folder)
    return update_receivers(data.log, data.roles)


def _axis(args: argparse.Namespace) -> tuple[str, list[str]]:
    """Returns the key that varies and its values."""
    given = [*([f"protocol.kind={args.protocols}"] if args.protocols else []), *args.over]
    if len(given) != 1:
        raise UserError("compare: needs one axis; give --protocols gossip,central or --over network.loss=0,0.05")
    key, equals, text = given[0].partition("=")
    values = split_values(text)
    said = f"--protocols = {args.protocols}" if args.protocols else f"--over = {given[0]}"
    if args.protocols and len(values) < 2:
        raise UserError(f"{said}: must be two protocols or more, such as gossip,rotating_leader,central")
    if not equals or not key.strip() or len(values) < 2:
        raise UserError(f"{said}: must be a key with two values or more, such as network.loss=0,0.05")
    if len(values) > _MOST or len(set(values)) < len(values):
        raise UserError(f"{said}: must have at most {_MOST} different values; a sweep takes more")
    return key.strip(), values


def split_values(text: str) -> list[str]:
    """Splits at commas outside of brackets: `{kind: gossip, exchange_with: 5},central` has two parts."""
    parts, depth, last = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            parts.append(text[last:place])
            last = place + 1
    return [part.strip() for part in [*parts, text[last:]] if part.strip()]


def _load(args: argparse.Namespace, key: str, values: Sequence[str]) -> dict[str, Scenario]:
    """Loads every alternative; the problems of all are reported at once."""
    # The scenario itself must be valid before alternatives of it are: its errors would be told for each of them.
    base = load_scenario(args.scenario, args.overrides, args.seed, args.allow_plugins)
    problems: list[str] = []
    loaded: dict[str, Scenario] = {}
    for value in values:
        changes = [*args.overrides, f"{key}={value}", *_completed(base, key, value, args.overrides)]
        try:
            loaded[value] = load_scenario(args.scenario, changes, args.seed, args.allow_plugins)
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError(problems)
    for warning in dict.fromkeys(text for scenario in loaded.values() for text in implausible_settings(scenario)):
        print(printable(f"warning: {warning}"), file=sys.stderr)
    return loaded


def _completed(base: Scenario, key: str, value: str, overrides: Sequence[str]) -> list[str]:
    """Returns the keys that gossip needs where the scenario is of another protocol, and says which were taken."""
    given = any(text.startswith(("protocol.exchange_with", "protocol.mer", "protocol.graph")) for text in overrides)
    if key != "protocol.kind" or value != "gossip" or hasattr(base.protocol, "exchange_with") or given:
        return []
    peers = max(1, min(_DEFAULT_PEERS, base.protocol.cohort_size - 1))
    print(
        f"gossip: each member exchanges with {peers} others; --set protocol.exchange_with=N changes it", file=sys.stderr
    )
    return [f"protocol.exchange_with={peers}"]


def _free_folder(alternatives: dict[str, Scenario]) -> Path:
    first = next(iter(alternatives.values()))
    path, number = Path("runs") / f"compare-{first.name}-{first.seed}", 1
    while path.exists():
        number += 1
        path = Path("runs") / f"compare-{first.name}-{first.seed}-{number}"
    return path


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", label).strip("._") or "value"


def _print(decision: Decision, summaries: dict[str, list[dict[str, Any]]], out: Path) -> None:
    console = make_console(None)
    print_rows(console, [("", "", *map(printable, decision.names)), *(("", *row) for row in decision.rows)])
    for name, runs in summaries.items():
        for finding in findings_text(runs[0].get("diagnosis") or ()):
            print_rows(console, [("", printable(name), printable(finding))])
    if any(runs[0]["headline"].get("transport") == TRANSPORT_ASSUMED for runs in summaries.values()):
        console.print(TRANSPORT_ASSUMED)
    console.print(f"results in {out}; `peerveil report {out}/*` draws them side by side\n")
    if decision.trust:
        console.print(printable(decision.trust))
    console.print(printable(decision.take))
    console.print(printable(decision.because))


def _as_json(key: str, summaries: dict[str, list[dict[str, Any]]], decision: Decision) -> dict[str, Any]:
    return {
        "axis": key,
        "alternatives": list(summaries),
        "rows": [list(row) for row in decision.rows],
        "trust": decision.trust,
        "decision": [decision.take, decision.because],
        "runs": {name: runs if len(runs) > 1 else runs[0] for name, runs in summaries.items()},
    }
