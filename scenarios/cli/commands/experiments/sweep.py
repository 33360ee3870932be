"""`peerveil sweep SWEEP.yaml`: runs a grid of scenarios; says what it will cost, where it stands, what came out."""

from __future__ import annotations

import argparse

from scenarios.sweeps.executors import check_pool, warm_up


def run(args: argparse.Namespace) -> int:
    """Starts the process that imports torch for all workers, and meanwhile reads the sweep and runs it."""
    check_pool(args.on)
    if args.on == "processes" and not args.dry_run and not args.status:
        warm_up()
    # Imported here, while the other process imports torch: workers wait for that, so it comes first.
    from scenarios.cli.commands.experiments import sweep_cells

    return sweep_cells.run(args)
