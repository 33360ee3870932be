"""Exports runs to MLflow: parameters, headline figures, series over rounds. A run that is there is left alone."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.export.exported_run import ExportedRun

_TAG = "peerveil.key"
_LONGEST_VALUE = 500
_AT_ONCE = 100
"""Limits of MLflow's interface: length of a parameter, and parameters per call."""


def export_mlflow(runs: Sequence[ExportedRun], out: Path) -> dict[str, Any]:
    """Writes to MLFLOW_TRACKING_URI if it is set, else to files below `out`."""
    # Files suffice for one user and need no database; newer versions ask for this word.
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    try:
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise UserError("--to = mlflow: is not installed; `pip install peerveil[mlflow]`") from error
    where = os.environ.get("MLFLOW_TRACKING_URI") or out.absolute().as_uri()
    client = MlflowClient(tracking_uri=where)
    experiment = client.get_experiment_by_name("peerveil")
    number = experiment.experiment_id if experiment is not None else client.create_experiment("peerveil")
    written = 0
    for run in runs:
        if client.search_runs([number], f"tags.`{_TAG}` = '{run.key}' and attributes.status = 'FINISHED'"):
            continue
        _write(client, number, run)
        written += 1
    return {"runs": len(runs), "written": written, "out": where}


def _write(client: Any, experiment: str, run: ExportedRun) -> None:
    from mlflow.entities import Metric, Param

    tags = {_TAG: run.key, "mlflow.runName": run.name, "peerveil.folder": str(run.run.path)}
    made = client.create_run(experiment, tags=tags, start_time=0)
    params = [Param(_allowed(key), value[:_LONGEST_VALUE]) for key, value in (run.settings | run.axes).items()]
    for start in range(0, len(params), _AT_ONCE):
        client.log_batch(made.info.run_id, params=params[start : start + _AT_ONCE])
    # Simulated milliseconds as time stamps: two exports are equal.
    metrics = [Metric(name, value, round(at_s * 1000), step) for name, step, at_s, value in run.series()]
    # MLflow has no infinite numbers in all its stores; an infinite epsilon is a tag.
    metrics += [Metric(name, value, 0, 0) for name, value in run.figures.items() if math.isfinite(value)]
    for start in range(0, len(metrics), _AT_ONCE):
        client.log_batch(made.info.run_id, metrics=metrics[start : start + _AT_ONCE])
    for name, value in run.figures.items():
        if math.isinf(value):
            client.set_tag(made.info.run_id, f"peerveil.{name}", "inf")
    # Last: an export that was cut off leaves a run that is not finished, and is written again.
    client.set_terminated(made.info.run_id, "FINISHED", end_time=0)


def _allowed(key: str) -> str:
    return "".join(char if char.isalnum() or char in "_-. /" else "_" for char in key)
