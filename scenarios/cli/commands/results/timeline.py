"""`peerveil timeline RUN`: draws rounds as svg, png, pdf or html, or writes a trace for Perfetto."""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from scenarios.cli.console import print_notes
from scenarios.plots.figure import COLUMN_WIDTHS_IN, PICTURES, check_ending, save
from scenarios.report.data.node_sample import active_nodes
from scenarios.report.data.run_data import RunData, read_run_data
from scenarios.report.page import picture_page
from scenarios.run_folder import atomic_write
from scenarios.run_folder.reader import explaining_damage

_MOST_ROUNDS_DRAWN = 10


def run(args: argparse.Namespace) -> int:
    """Writes the timeline and prints its path."""
    ending = check_ending(args.out, (*PICTURES, ".html", ".json", ".gz"))
    with explaining_damage(args.run):
        _draw(args, ending)
    print(f"timeline in {args.out}")
    return 0


def _draw(args: argparse.Namespace, ending: str) -> None:
    run_data = read_run_data(args.run)
    print_notes(args.run, run_data.notes)
    known = sorted({int(record["round"]) for record in run_data.log.rounds})
    if not known:
        raise UserError(f"RUN = {args.run}: has no whole round to draw; run the scenario again")
    rounds = parse_numbers("--rounds", args.rounds, known)
    nodes = None
    if args.nodes is not None:
        nodes = np.array(parse_numbers("--nodes", args.nodes, active_nodes(run_data.log).tolist()), dtype=np.int64)
    width_in = COLUMN_WIDTHS_IN.get(args.columns, 9.0)
    _write(run_data, args.out, ending, rounds, nodes, args.rounds is not None, args.all, width_in)


def _write(
    run_data: RunData,
    out: Path,
    ending: str,
    rounds: list[int],
    nodes: NDArray[np.int64] | None,
    chosen: bool,
    everything: bool,
    width_in: float,
) -> None:
    if ending in {".json", ".gz"}:
        _write_trace(run_data, out, rounds if chosen else None, nodes, everything)
        return
    # A picture of all rounds would be unreadable; a trace can be zoomed.
    drawn = rounds if chosen else rounds[:1]
    if ending == ".html":
        atomic_write.write_text(out, picture_page(run_data, "timeline", drawn[0]))
        return
    from scenarios.plots.timeline import draw_timeline

    if len(drawn) > _MOST_ROUNDS_DRAWN:
        print(f"the first {_MOST_ROUNDS_DRAWN} of {len(drawn)} rounds are drawn; json holds all", file=sys.stderr)
    save(draw_timeline(run_data, drawn[:_MOST_ROUNDS_DRAWN], nodes, width_in), out)


def _write_trace(
    run_data: RunData, out: Path, rounds: list[int] | None, nodes: NDArray[np.int64] | None, everything: bool
) -> None:
    from scenarios.plots.trace.chrome_trace import MOST_EVENTS, MOST_TRACKS, chrome_trace, trace_text

    limits = (None, None) if everything else (MOST_TRACKS, MOST_EVENTS)
    trace = chrome_trace(run_data, rounds=rounds, nodes=nodes, most_tracks=limits[0], most_events=limits[1])
    for note in trace["otherData"]["notes"]:
        print(note, file=sys.stderr)
    content = trace_text(trace).encode()
    # No time stamp in the archive: equal runs give equal files.
    packed = gzip.compress(content, mtime=0) if out.suffix.lower() == ".gz" else content
    atomic_write.write_with(out, lambda path: path.write_bytes(packed))


def parse_numbers(option: str, text: str | None, known: list[int]) -> list[int]:
    """Parses `0-9,12` into the matching `known` numbers; None selects all, no match is a `UserError`."""
    if text is None:
        return known
    wanted: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        # The length limit keeps int() away from absurdly long digit strings.
        if not low.isdecimal() or (dash and not high.isdecimal()) or len(part) > 20:
            raise UserError(f"{option} = {text}: must be numbers and ranges such as 0-9,12")
        wanted |= {number for number in known if int(low) <= number <= int(high or low)}
    if not wanted:
        raise UserError(f"{option} = {text}: the run has {known[0]} to {known[-1]}; choose some of them")
    return sorted(wanted)
