"""`peerveil cost RUN`: bytes and seconds of a round by cause, nodes on its critical path, and the cost of dropouts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.cli.console import make_console, print_rows
from scenarios.loading.problems import printable
from scenarios.metrics.communication.cost import cost_by_cause
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.diagnosis import diagnose, findings_text
from scenarios.metrics.headline.headline import TRANSPORT_ASSUMED
from scenarios.metrics.headline.number_format import bytes_text, count_text, seconds_text, share_text
from scenarios.report.data.timeline_data import reason_words
from scenarios.run_folder.arrow_tables import measured_from
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import StoredRun, explaining_damage, open_run

Row = tuple[str, ...]
_SHOWN = 5
_WHAT = {"resend": "lost and sent again", "wait": "waiting (deadline, window, timer)", "train": "training"}


def run(args: argparse.Namespace) -> int:
    """Prints the cost of a run and returns the exit code."""
    with explaining_damage(args.run):
        found = cost_of(open_run(args.run), args.measure_from)
        if args.json:
            print(to_json(found), end="")
        else:
            print_cost(found)
    return 0


def cost_of(run: StoredRun, first_round: int | None = None) -> dict[str, Any]:
    """Returns the cost of a run as plain data; rounds before `first_round` are left out."""
    log, roles = _measured(run.log, first_round), _roles(run)
    # Runs without a summary are read as if the transport was assumed, the default.
    routing = (run.summary or {}).get("anonymity", {}).get("routing", "assumed")
    return {
        "scenario": (run.summary or run.scenario).get("scenario", run.scenario.get("name", run.path.name)),
        "seed": (run.summary or run.scenario).get("seed"),
        "complete": run.summary is not None,
        # That of the whole run: a killed run has none yet, and one of another version may lack it.
        "diagnosis": (run.summary or {}).get("diagnosis") or [one.to_json() for one in diagnose(log, roles, None)],
        "crashes": any(fault.get("kind") == "crash" for fault in run.scenario.get("faults") or ()),
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


def _roles(run: StoredRun) -> Roles:
    nodes = (run.summary or {}).get("nodes") or run.scenario
    if not isinstance(nodes.get("clients"), int):
        raise UserError(f"RUN = {run.path}: says nowhere how many clients it had; run the scenario again")
    return Roles.from_json(nodes)


def print_cost(found: Mapping[str, Any], file: TextIO | None = None) -> None:
    """Prints bytes, seconds, links and dropouts, each in a few lines."""
    console = make_console(file)
    count = len(found["rounds"])
    state = "" if found["complete"] else " (the run was killed; this is what it had written)"
    console.print(
        printable(f"{found['scenario']}, seed {found['seed']}: {count} round{'' if count == 1 else 's'}{state}")
    )
    for finding in findings_text(found["diagnosis"]):
        print_rows(console, [("", "diagnosis", finding)])
    for title, rows in _sections(found):
        console.print(f"\n{title}")
        print_rows(console, [("", *row) for row in rows])
    if found["transport"] == TRANSPORT_ASSUMED:
        console.print(f"\n{TRANSPORT_ASSUMED}")


def _sections(found: Mapping[str, Any]) -> Iterator[tuple[str, list[Row]]]:
    sizes, seconds = found["bytes"], found["seconds"]
    wasted = share_text(sizes["wasted"] / sizes["sent"] if sizes["sent"] else None)
    total = f"{bytes_text(sizes['sent'])} sent, {wasted} wasted, {bytes_text(sizes['goodput_bytes_per_s'])}/s goodput"
    yield f"Bytes: {total}", _kind_rows(found)
    yield "Bytes by role", _role_rows(found)
    per_round = seconds_text(seconds["per_round_s"])
    yield f"Seconds: {per_round} a round, {seconds_text(seconds['stalled_s'])} stalled in total", _second_rows(seconds)
    if seconds["who"]:
        yield "On the critical path", _who_rows(found)
    yield "Links", [(found["links"]["sentence"],)]
    if found["dropouts"]:
        yield (
            f"Dropouts: {len(found['dropouts'])}, the costliest first",
            _dropout_rows(found["dropouts"], found["crashes"]),
        )


def _kind_rows(found: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = [("kind", "messages", "bytes", "a round", "share", "wasted")]
    for kind, cost in found["by_kind"].items():
        sums = (bytes_text(cost["sent"]), bytes_text(cost["per_round"]), share_text(cost["share"]))
        rows.append((kind, count_text(cost["messages"]), *sums, bytes_text(cost["wasted"])))
    return rows


def _role_rows(found: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = [("role", "sent", "received", "most of it")]
    for role, cost in found["by_role"].items():
        sent, received = sum(cost["sent"].values()), sum(cost["received"].values())
        both = {
            kind: cost["sent"].get(kind, 0) + cost["received"].get(kind, 0) for way in cost.values() for kind in way
        }
        rows.append((role, bytes_text(sent), bytes_text(received), max(both, key=lambda kind: both[kind], default="-")))
    return rows


def _second_rows(seconds: Mapping[str, Any]) -> list[Row]:
    return [
        (_WHAT.get(what, f"{what} under way"), seconds_text(cost["per_round_s"]), share_text(cost["share"]))
        for what, cost in seconds["by_what"].items()
    ]


def _who_rows(found: Mapping[str, Any]) -> list[Row]:
    count = len(found["rounds"])
    return [
        (
            f"{cost['role']} {cost['node']}",
            f"{cost['rounds']} of {count} rounds",
            seconds_text(cost["seconds"]),
            f"mostly {_WHAT.get(cost['mostly'], cost['mostly'])}",
        )
        for cost in found["seconds"]["who"][:_SHOWN]
    ]


def _dropout_rows(dropouts: list[dict[str, Any]], crashes: bool) -> list[Row]:
    rows: list[Row] = [("round", "client", "reason", "updates lost", "wasted", "stalled")]
    costliest = sorted(dropouts, key=lambda cost: (-cost["stalled_s"], -cost["wasted_bytes"], -cost["lost_updates"]))
    for cost in costliest[:_SHOWN]:
        prices = (count_text(cost["lost_updates"]), bytes_text(cost["wasted_bytes"]), seconds_text(cost["stalled_s"]))
        rows.append((str(cost["round"]), str(cost["node"]), reason_words(cost["reason"], crashes), *prices))
    if len(dropouts) > _SHOWN:
        rows.append((f"and {len(dropouts) - _SHOWN} more", "", "", "", "", ""))
    return rows
