"""Small pictures as PNG, for pages that load nothing."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_GREY, _COLOUR = 0, 2


def data_url(image: NDArray[np.float32]) -> str:
    """Returns an image [height, width] or [height, width, 3] with values in [0, 1] as a `data:` address."""
    return f"data:image/png;base64,{base64.b64encode(encode(image)).decode()}"


def encode(image: NDArray[np.float32]) -> bytes:
    """Returns the bytes of a PNG file: 8 bits a sample, no filter; values that are not finite are black."""
    values = np.nan_to_num(np.asarray(image, dtype=np.float64), nan=0.0, posinf=1.0, neginf=0.0)
    samples = np.rint(values.clip(0.0, 1.0) * 255.0).astype(np.uint8)
    height, width = samples.shape[:2]
    # Every line begins with the number of its filter.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), samples.reshape(height, -1)], axis=1)
    kind = _COLOUR if samples.ndim == 3 else _GREY
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
