"""`peerveil runs [FOLDER]`: a table of all runs of a folder; `peerveil serve [FOLDER]`: the same as a page."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from p2p.config.errors import UserError
from scenarios.cli.console import make_console
from scenarios.loading.problems import printable, suggestion
from scenarios.metrics.headline.number_format import accuracy_text, bytes_text, epsilon_text, seconds_text
from scenarios.serving.run_index import RunEntry, find_runs

SORTS: dict[str, Callable[[RunEntry], Any]] = {
    "changed": lambda run: -run.changed,
    "name": lambda run: (run.scenario, run.seed or 0),
    "accuracy": lambda run: -(run.accuracy if run.accuracy is not None else -math.inf),
    "time": lambda run: run.simulated_s if run.simulated_s is not None else math.inf,
    "bytes": lambda run: run.bytes if run.bytes is not None else math.inf,
    "epsilon": lambda run: math.inf if run.epsilon in (None, "inf") else float(run.epsilon),
}
_FIELDS = ("scenario", "seed", "protocol", "state", "place")


def run(args: argparse.Namespace) -> int:
    """Prints the runs of a folder."""
    entries = [entry for _, entry in find_runs(args.folder).values()]
    for condition in args.where:
        entries = [entry for entry in entries if _holds(condition, entry)]
    entries.sort(key=SORTS[args.sort])
    if args.reverse:
        entries.reverse()
    if args.json:
        print(json.dumps([entry.to_json() for entry in entries], indent=2, ensure_ascii=False))
        return 0
    if not entries:
        print(f"no runs in {args.folder}{' that match' if args.where else ''}")
        return 0
    _print(entries)
    return 0


def _holds(condition: str, entry: RunEntry) -> bool:
    """Returns whether `protocol=gossip` holds, or, without `=`, whether the text is part of any field."""
    name, equals, value = condition.partition("=")
    if not equals:
        return any(condition.lower() in str(getattr(entry, field)).lower() for field in _FIELDS)
    if name not in _FIELDS:
        raise UserError(f"--where = {condition}: unknown field; {suggestion(name, _FIELDS)}")
    return str(getattr(entry, name)) == value


def _print(entries: Sequence[RunEntry]) -> None:
    """Prints each run under the folder that other commands take: in one line, or in two where names are long."""
    names = ["run", *(printable(_called(entry)) for entry in entries)]
    head = ("state", "accuracy", "time", "bytes", "epsilon", "warnings")
    cells = [head, *(_figures(entry) for entry in entries)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    longest = max(map(len, names))
    if longest + 4 + max(map(len, lines)) <= make_console(None).width:
        for name, line in zip(names, lines, strict=True):
            print(f"  {name:<{longest}}  {line}")
        return
    print(f"    {lines[0]}")
    for name, line in zip(names[1:], lines[1:], strict=True):
        print(f"  {name}\n    {line}")


def _figures(entry: RunEntry) -> tuple[str, ...]:
    return (
        f"{entry.state} {entry.rounds}/{entry.planned if entry.planned is not None else '?'}",
        accuracy_text(entry.accuracy),
        seconds_text(entry.simulated_s),
        bytes_text(entry.bytes),
        epsilon_text(entry.epsilon),
        str(entry.trouble or ""),
    )


def _called(entry: RunEntry) -> str:
    """Returns the folder, and what its name does not say: scenario with seed, and protocol."""
    place = entry.place.lower()
    known = {entry.scenario: f"{entry.scenario}-{entry.seed}", entry.protocol: entry.protocol}
    silent = [text for word, text in known.items() if word and word.lower() not in place]
    return f"{entry.place} ({', '.join(silent)})" if silent else entry.place


def serve(args: argparse.Namespace) -> int:
    """Serves the page until Ctrl-C."""
    from scenarios.serving.loopback import LOOPBACK, make_server
    from scenarios.serving.site import Site

    find_runs(args.folder)
    try:
        server = make_server(Site(args.folder).respond, args.port)
    except OSError as error:
        raise UserError(f"--port = {args.port}: cannot be used ({error.strerror}); choose another one") from error
    notice = f"all runs of {args.folder} at http://{LOOPBACK}:{server.server_port}/ (this machine only); Ctrl-C ends it"
    print(printable(notice), file=sys.stderr, flush=True)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0
