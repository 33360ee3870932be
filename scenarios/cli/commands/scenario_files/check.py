"""`peerveil check`: validates scenarios and reports all their problems."""

from __future__ import annotations

import argparse
import json

from p2p.config.errors import UserError
from scenarios.loading.checks.implausible import implausible_settings
from scenarios.loading.load import load_scenario
from scenarios.loading.problems import printable
from scenarios.schema import Scenario


def check_command(args: argparse.Namespace) -> int:
    """Prints each valid scenario; raises the problems of all files as one error (exit code 2)."""
    outcomes = [(ref, _outcome(ref, args)) for ref in args.scenarios]
    failures = [outcome for _, outcome in outcomes if isinstance(outcome, UserError)]
    if args.json:
        print(json.dumps([_as_json(ref, outcome) for ref, outcome in outcomes], indent=2))
        return 2 if failures else 0
    for _, outcome in outcomes:
        if isinstance(outcome, Scenario):
            print(f"{outcome.name}: ok\n  {printable(outcome.question) or '(asks no question)'}")
            for warning in implausible_settings(outcome):
                print(printable(f"  warning: {warning}"))
    # Raised after the valid ones are printed, so that both are seen.
    if failures:
        raise UserError([str(failure) for failure in failures])
    return 0


def _outcome(ref: str, args: argparse.Namespace) -> Scenario | UserError:
    try:
        return load_scenario(ref, args.overrides, args.seed, args.allow_plugins)
    except UserError as error:
        return error


def _as_json(ref: str, outcome: Scenario | UserError) -> dict[str, object]:
    if isinstance(outcome, UserError):
        return {"scenario": ref, "ok": False, "problems": outcome.problems}
    found = {"scenario": ref, "ok": True, "name": outcome.name, "question": outcome.question, "problems": []}
    return found | {"warnings": implausible_settings(outcome)}
