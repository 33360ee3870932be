"""Chart data on adversaries: the audit's bounds per view, and the results of attacks."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.config.errors import UserError
from scenarios.attacking.result_files import StoredResult, read_result
from scenarios.metrics.view_labels import AUDITED_VIEWS
from scenarios.report.run_data import RunData

MOST_PICTURES = 400
_ENLARGED = 3


def adversary_data(run_data: RunData) -> dict[str, Any]:
    """Returns all data on adversaries of a page; damaged results are left out with a note."""
    attacks: list[dict[str, Any]] = []
    notes: list[str] = []
    for entry in run_data.summary.get("attacks") or []:
        try:
            attacks.append(_attack(entry, read_result(run_data.run.path, str(entry["file"])), len(attacks)))
        except UserError as error:
            notes.append(str(error))
    return {"sandwich": _sandwich(run_data.summary.get("audit") or {}), "attacks": attacks, "notes": notes}


def _sandwich(audit: dict[str, Any]) -> list[dict[str, Any]]:
    views = audit.get("views") or {}
    return [
        {
            "view": label,
            "measured": views[name]["epsilon"],
            **{key: views[name][key] for key in ("by", "ceiling", "proved", "how", "published", "estimate")},
            **{key: bool(views[name][key]) for key in ("proof_refuted", "published_refuted")},
        }
        for name, label in AUDITED_VIEWS.items()
        if name in views
    ]


def _attack(entry: dict[str, Any], result: StoredResult, number: int) -> dict[str, Any]:
    curves = [{**curve, "id": f"attack-{number}-{place}"} for place, curve in enumerate(result.curves)]
    grids = [{**grid, "pictures": _pictures(images)} for grid, images in zip(result.grids, result.images, strict=True)]
    return {"kind": entry["kind"], "by": entry["by"], "headline": result.headline, "curves": curves, "grids": grids}


def _pictures(images: NDArray[np.float32]) -> list[list[str]]:
    """Returns each picture as a PNG data address, by row."""
    most = max(1, MOST_PICTURES // max(len(images), 1))
    return [[_png(image) for image in row[:most]] for row in images]


def _png(image: NDArray[np.float32]) -> str:
    values = (np.clip(np.nan_to_num(image), 0.0, 1.0) * 255).round().astype(np.uint8)
    if values.ndim == 2:
        values = np.repeat(values[:, :, None], 3, axis=2)
    values = values.repeat(_ENLARGED, axis=0).repeat(_ENLARGED, axis=1)
    height, width = values.shape[:2]
    # Each line begins with a byte that names its filter; 0 is none.
    lines = b"".join(b"\0" + values[row].tobytes() for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
