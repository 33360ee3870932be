"""`peerveil audit SCENARIO...`: lower bounds on epsilon per view, beside what is proved and what is published."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from privacy.audits.settings import Audit
from scenarios.auditing.audit_files import add_audit
from scenarios.auditing.audit_scenario import audit_scenario
from scenarios.cli.console import make_console, print_rows
from scenarios.loading.load import load_scenario, parse_scenario
from scenarios.loading.problems import printable
from scenarios.metrics.headline.measured_rows import audited_views
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import open_run
from scenarios.schema import Scenario


def audit_command(args: argparse.Namespace) -> int:
    """Audits scenarios, or the scenarios of runs, whose summaries the result is added to; 1 if a proof is refuted."""
    found = {ref: _audit_one(ref, args) for ref in args.scenarios}
    if args.json:
        print(to_json(next(iter(found.values())) if len(found) == 1 else found))
    else:
        console = make_console(None)
        for ref, audit in found.items():
            console.print(printable(f"{ref}: {audit['cost']}"))
            print_rows(console, list(_rows(audit)))
    return int(any(view["proof_refuted"] for audit in found.values() for view in audit["views"].values()))


def _audit_one(ref: str, args: argparse.Namespace) -> dict[str, Any]:
    run = Path(ref) if (Path(ref) / "scenario.yaml").is_file() else None
    scenario = _scenario(ref, run, args)
    wanted = {key: getattr(args, key) for key in ("canaries", "runs", "others", "neighbours")}
    given = {key: value for key, value in wanted.items() if value is not None}
    audit = audit_scenario(scenario, replace(scenario.audit or Audit(), **given), args.data_dir, args.threads)
    if run is not None:
        add_audit(run, audit)
    return audit


def _scenario(ref: str, run: Path | None, args: argparse.Namespace) -> Scenario:
    if run is None:
        return load_scenario(ref, args.overrides, args.seed, args.allow_plugins)
    text = open_run(run).scenario_text
    return parse_scenario(text, str(run / "scenario.yaml"), run, args.overrides, args.allow_plugins)


def _rows(audit: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for label, text in audited_views(audit):
        yield "", label, text
    yield "", "confidence", f"{audit['confidence']:g} that no lower bound is wrong; delta {audit['delta']:g}"
