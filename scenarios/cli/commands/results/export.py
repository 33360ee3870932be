"""`peerveil export RUN-or-SWEEP... --to tensorboard|mlflow|csv`: hands finished runs to other programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from scenarios.export.exported_run import ExportedRun, collect
from scenarios.run_folder.json_text import to_json

EXPORTERS = {
    "tensorboard": "tensorboard_events:export_tensorboard",
    "mlflow": "mlflow_runs:export_mlflow",
    "csv": "csv_files:export_csv",
}
"""Where each is found; imported only when asked for, trackers are heavy."""


def run(args: argparse.Namespace) -> int:
    """Exports all runs and says where they are."""
    module, _, function = EXPORTERS[args.to].partition(":")
    export: Callable[[Sequence[ExportedRun], Path], dict[str, Any]]
    export = getattr(import_module(f"scenarios.export.{module}"), function)
    result = export(collect(args.runs), args.out or Path("export") / args.to)
    if args.json:
        print(to_json(result))
    else:
        print(f"{result['written']} of {result['runs']} runs written to {result['out']}")
    return 0
