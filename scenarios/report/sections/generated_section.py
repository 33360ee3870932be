"""The section on generated records: how good they are, what failed, and pictures of some."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from scenarios.metrics.headline.generated_rows import generated_rows
from scenarios.report import html
from scenarios.report.data.run_data import RunData
from scenarios.run_folder.sample_sheet import NAME

_MOST_BYTES = 4 << 20
_PNG = b"\x89PNG\r\n\x1a\n"


def generated_section(run_data: RunData) -> str:
    """Returns the section; empty for runs without generated records."""
    entry = run_data.summary.get("generated")
    if not isinstance(entry, Mapping):
        return ""
    return html.section("generated", "Generated records", html.facts(_rows(entry)), _picture(run_data))


def _rows(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    # A summary of another version may lack figures.
    try:
        return list(generated_rows(entry))
    except (KeyError, TypeError, ValueError):
        return []


def _picture(run_data: RunData) -> str:
    path = run_data.run.path / NAME
    try:
        content = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""
    except OSError:
        content = b""
    # Only what is a picture goes into the page.
    if not content.startswith(_PNG):
        return ""
    about = "Generated records before training: a row for each class, a column for each of the first clients."
    encoded = base64.b64encode(content).decode("ascii")
    return (
        f'<figure><img src="data:image/png;base64,{encoded}" alt="{html.text(about)}" '
        f'style="image-rendering: pixelated; max-width: 100%"><figcaption>{html.text(about)}</figcaption></figure>'
    )
