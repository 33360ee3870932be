"""Writes the safetensors format straight from arrays: the library copies every tensor first, which costs more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
"""The format's name of each type of numpy's."""


def header_text(entries: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Returns the beginning of a file: the header's length, and the header itself."""
    text = json.dumps(entries).encode()
    # The format asks for a header that ends on a multiple of eight bytes.
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None) -> None:
    """Writes arrays to a file."""
    # Widest elements first, as the library does, so that every tensor begins at a multiple of its own width.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    entries: dict[str, Mapping[str, Any]] = {} if metadata is None else {"__metadata__": metadata}
    end = 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        entries[name] = {"dtype": NAMES[array.dtype.name], "shape": array.shape, "data_offsets": [begin, end]}
    with path.open("wb") as file:
        file.write(header_text(entries))
        for _, array in ordered:
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            # An array without elements has no memory to view.
            if little.size:
                file.write(little.reshape(-1).view(np.uint8).data)
