"""Measures everything that has a goal and prints it beside the goal.

    python -m benchmarks [--only NAME]... [--quick] [--largest N] [--json FILE]

Only a full run changes docs/performance.md and its picture.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

from benchmarks.figures import Effort, Figure, markdown, put_into, to_json
from benchmarks.jobs import JOBS, find_job
from benchmarks.jobs.peers import scaling, timeouts_per_s
from benchmarks.scaling_plot import draw_scaling

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = Path("bench.json")


def main(arguments: list[str] | None = None) -> int:
    """Returns how many goals were missed, 0 in quick mode."""
    options = _parse(arguments)
    effort = Effort(options.quick, options.largest)
    figures: list[Figure] = []
    for name in options.only or JOBS:
        found = find_job(name)(effort)
        figures += found
        for figure in found:
            print(*figure.row(), sep=" | ", flush=True)
    facts = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "quick": options.quick,
        "simpy_timeouts_per_s": round(timeouts_per_s(1000)),
    }
    options.json.write_text(to_json(figures, facts), encoding="utf-8")
    if not options.only and not options.quick:
        put_into(DOCS / "performance.md", markdown(figures, facts))
        draw_scaling(scaling(effort), DOCS / "pictures" / "scaling.png")
    missed = [figure.job for figure in figures if not figure.met]
    print(f"{len(figures) - len(missed)} of {len(figures)} goals met; all figures in {options.json}")
    return 0 if options.quick else len(missed)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(JOBS), help="this job (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="small sizes, once each: shows that it works")
    parser.add_argument("--largest", type=int, default=100_000, help="most peers to simulate (1000000 takes long)")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
