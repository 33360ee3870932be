"""A sheet of generated records as a PNG picture: a row for each class, a column for each of some clients."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scenarios.run_folder import atomic_write

NAME = "generated.png"
MOST_CLIENTS, MOST_CLASSES = 12, 20
_GAP, _LEAST_SIDE = 1, 24


def write_sheet(
    folder: Path, records: NDArray[np.float32], labels: NDArray[np.int64], shards: Sequence[NDArray[np.int64]]
) -> bool:
    """Writes the sheet, unless records are no images; returns whether it did."""
    if records.ndim != 4 or records.shape[1] not in (1, 3):
        return False
    sheet = draw_sheet(records, labels, shards)
    atomic_write.write_with(folder / NAME, lambda temporary: temporary.write_bytes(png(sheet)))
    return True


def draw_sheet(
    records: NDArray[np.float32], labels: NDArray[np.int64], shards: Sequence[NDArray[np.int64]]
) -> NDArray[np.uint8]:
    """Returns the pixels [height, width, 1 or 3]; a client that made no record of a class leaves its place grey."""
    classes = np.unique(labels)[:MOST_CLASSES]
    low, high = float(records.min()), float(records.max())
    scaled = ((records - low) * (255.0 / max(high - low, 1e-12))).round().astype(np.uint8).transpose(0, 2, 3, 1)
    height, width, channels = scaled.shape[1:]
    columns = shards[:MOST_CLIENTS]
    sheet = np.full((len(classes) * (height + _GAP), len(columns) * (width + _GAP), channels), 128, dtype=np.uint8)
    for row, label in enumerate(classes):
        for column, own in enumerate(columns):
            found = own[labels[own] == label]
            if len(found):
                top, left = row * (height + _GAP), column * (width + _GAP)
                sheet[top : top + height, left : left + width] = scaled[found[0]]
    # Small images are enlarged, so that a page shows them sharply.
    times = max(1, -(-_LEAST_SIDE // height))
    return sheet.repeat(times, axis=0).repeat(times, axis=1)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Returns pixels [height, width, 1 or 3] as a PNG file."""
    height, width, channels = pixels.shape
    # Bit depth 8; colour type 0 is grey, 2 is colour. Every line begins with filter 0.
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
