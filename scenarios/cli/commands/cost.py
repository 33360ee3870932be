"""`peerveil cost RUN`: bytes and seconds of a round by cause, nodes on its critical path, and the cost of dropouts."""

from __future__ import annotations

import argparse
from typing import Any

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.cli.commands.cost_table import print_cost
from scenarios.metrics.cost import cost_by_cause
from scenarios.metrics.headline import TRANSPORT_ASSUMED
from scenarios.metrics.roles import Roles
from scenarios.run_folder.arrow_tables import measured_from
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import Run, open_run


def run(args: argparse.Namespace) -> int:
    """Prints the cost of a run and returns the exit code."""
    found = cost_of(open_run(args.run), args.measure_from)
    if args.json:
        print(to_json(found), end="")
    else:
        print_cost(found)
    return 0


def cost_of(run: Run, first_round: int | None = None) -> dict[str, Any]:
    """Returns the cost of a run as plain data; rounds before `first_round` are left out."""
    log, roles = _measured(run.log, first_round), _roles(run)
    # Runs without a summary are read as if the transport was assumed, the default.
    routing = (run.summary or {}).get("anonymity", {}).get("routing", "assumed")
    return {
        "scenario": (run.summary or run.scenario).get("scenario", run.scenario.get("name", run.path.name)),
        "seed": (run.summary or run.scenario).get("seed"),
        "complete": run.summary is not None,
        **cost_by_cause(log, roles),
        "transport": TRANSPORT_ASSUMED if routing == "assumed" else "bytes counted on every hop",
    }


def _measured(log: Log, first_round: int | None) -> Log:
    # Without a warm-up the log is used as it is, without a copy.
    if first_round is None:
        return log
    kept = measured_from(log, first_round)
    if not kept.rounds:
        numbers = [record["round"] for record in log.rounds]
        have = f"has rounds {numbers[0]} to {numbers[-1]}; choose one of them" if numbers else "has no whole round"
        raise UserError(f"--measure-from = {first_round}: the run {have}")
    return kept


def _roles(run: Run) -> Roles:
    nodes = (run.summary or {}).get("nodes") or run.scenario
    if not isinstance(nodes.get("clients"), int):
        raise UserError(f"RUN = {run.path}: says nowhere how many clients it had; run the scenario again")
    return Roles.from_json(nodes)
