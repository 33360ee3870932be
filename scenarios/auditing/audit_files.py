"""The audit of a run in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import open_run


def add_audit(path: Path, audit: Mapping[str, Any]) -> dict[str, Any]:
    """Adds an audit to the summary of a run, and returns the summary."""
    summary = open_run(path).summary
    if summary is None:
        raise UserError(f"RUN = {path}: the run did not end; go on with it by `peerveil run --resume --out {path}`")
    summary = {**summary, "audit": dict(audit)}
    atomic_write.write_text(path / "summary.json", to_json(summary))
    return summary
