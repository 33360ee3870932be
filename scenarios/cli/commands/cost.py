"""`peerveil cost RUN`: bytes and seconds of a round by cause, nodes on its critical path, and the cost of dropouts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from p2p.config.errors import UserError
from p2p.log import records
from p2p.log.log import Log
from scenarios.cli.commands.cost_table import print_cost
from scenarios.metrics.cost import by_kind, by_role, bytes_by_bottleneck, dropout_costs
from scenarios.metrics.critical_path import CriticalStep, critical_paths
from scenarios.metrics.headline import TRANSPORT_ASSUMED
from scenarios.metrics.roles import Roles
from scenarios.metrics.traffic import books, late, stalled_s
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
    counts, sizes = books(log.messages)
    # Runs without a summary are read as if the transport was assumed, the default.
    routing = (run.summary or {}).get("anonymity", {}).get("routing", "assumed")
    return {
        "scenario": (run.summary or run.scenario).get("scenario", run.scenario.get("name", run.path.name)),
        "seed": (run.summary or run.scenario).get("seed"),
        "complete": run.summary is not None,
        "rounds": [record["round"] for record in log.rounds],
        "messages": counts,
        "bytes": sizes | {"goodput_bytes_per_s": _goodput(log)},
        "by_kind": by_kind(log),
        "by_role": by_role(log, roles),
        "seconds": _seconds(log, roles),
        "links": bytes_by_bottleneck(log),
        "dropouts": dropout_costs(log),
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


def _goodput(log: Log) -> float | None:
    """Returns used data bytes, without sealing overhead, per simulated second of the rounds."""
    duration_s = sum(record["end_s"] - record["start_s"] for record in log.rounds)
    messages = log.messages
    delivered = messages["outcome"] == records.OUTCOME["delivered"]
    useful = delivered & (messages["kind"] != records.KIND["control"]) & ~late(messages)
    payload_bytes = (messages["size_bytes"] - messages["overhead_bytes"])[useful].sum()
    return float(payload_bytes / duration_s) if duration_s > 0 else None


def _seconds(log: Log, roles: Roles) -> dict[str, Any]:
    paths = list(critical_paths(log, roles.node("proxy")))
    duration_s = sum(record["end_s"] - record["start_s"] for record, _ in paths)
    steps = [step for _, path in paths for step in path]
    return {
        "per_round_s": duration_s / len(paths) if paths else None,
        "stalled_s": stalled_s(log),
        "by_what": _by_what(steps, len(paths), duration_s),
        "who": _who([path for _, path in paths], roles),
        "paths": [{"round": record["round"], "steps": [_plain(step) for step in path]} for record, path in paths],
    }


def _by_what(steps: Sequence[CriticalStep], rounds: int, duration_s: float) -> dict[str, dict[str, float]]:
    """Returns the seconds of the critical paths by type of step, largest first."""
    sums: dict[str, float] = {}
    for step in steps:
        sums[step.what] = sums.get(step.what, 0.0) + step.duration_s
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    return {what: {"per_round_s": sum_s / rounds, "share": sum_s / duration_s} for what, sum_s in ordered if sum_s}


def _who(paths: Sequence[Sequence[CriticalStep]], roles: Roles) -> list[dict[str, Any]]:
    """Returns nodes by their seconds on critical paths, longest first, with the longest type of step at each."""
    nodes: dict[int, dict[str, float]] = {}
    rounds: dict[int, set[int]] = {}
    for number, path in enumerate(paths):
        for step in path:
            sums = nodes.setdefault(step.blamed, {})
            sums[step.what] = sums.get(step.what, 0.0) + step.duration_s
            rounds.setdefault(step.blamed, set()).add(number)
    entries: list[dict[str, Any]] = []
    for node, by_what in nodes.items():
        # On a tie the step that came first.
        mostly = max(by_what, key=by_what.__getitem__)
        at = {"node": node, "role": roles.role(node), "rounds": len(rounds[node])}
        entries.append(at | {"seconds": sum(by_what.values()), "mostly": mostly})
    return sorted(entries, key=lambda entry: (-entry["seconds"], entry["node"]))


def _plain(step: CriticalStep) -> dict[str, Any]:
    entry = {"what": step.what, "node": step.node, "start_s": step.start_s, "end_s": step.end_s}
    return entry if step.receiver is None else entry | {"receiver": step.receiver, "held_back_by": step.held_back_by}
