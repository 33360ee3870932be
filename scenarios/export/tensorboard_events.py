"""Exports runs as TensorBoard event files: series over rounds, headline figures, settings as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.export.exported_run import ExportedRun


def export_tensorboard(runs: Sequence[ExportedRun], out: Path) -> dict[str, Any]:
    """Writes one folder with one event file per run; earlier event files of the same run are replaced."""
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise UserError("--to = tensorboard: is not installed; `pip install peerveil[tensorboard]`") from error
    for run in runs:
        folder = out / run.name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        writer = EventFileWriter(str(folder))
        for event in _events(run):
            writer.add_event(event)
        writer.close()
    return {"runs": len(runs), "written": len(runs), "out": str(out)}


def _events(run: ExportedRun) -> list[Any]:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    def scalar(name: str, value: float, step: int, at_s: float) -> Any:
        # The clock is the simulated one: with wall times two exports would differ.
        return Event(wall_time=at_s, step=step, summary=Summary(value=[Summary.Value(tag=name, simple_value=value)]))

    found = [scalar(f"rounds/{name}", value, step, at_s) for name, step, at_s, value in run.series()]
    last = run.rounds[-1] if run.rounds else {"round": 0, "end_s": 0.0}
    end = (int(last["round"]), float(last["end_s"]))
    return found + [scalar(f"headline/{name}", value, *end) for name, value in run.figures.items()]
