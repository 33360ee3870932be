"""Embeds data in a page: JSON that cannot close its script element, columns as little-endian base64."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.run_folder.json_text import plain

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(content: Mapping[str, Any]) -> str:
    """Returns JSON for a `<script type="application/json">`, with every HTML-significant character escaped."""
    text = json.dumps(plain(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char, escape in _UNSAFE.items():
        text = text.replace(char, escape)
    # A lone surrogate in a scenario's text cannot be encoded; it becomes a question mark.
    return text.encode("utf-8", "replace").decode()


def script_source(source: str) -> str:
    """Returns JavaScript for a `<script>`, with `</script` and `<!--` escaped and LF line ends."""
    # HTML parsers turn CRLF into LF, and the policy's hash is over the parsed text.
    return source.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def csp_hash(source: str) -> str:
    """Returns the content security policy's source expression for this script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def packed(values: NDArray[Any]) -> dict[str, str]:
    """Encodes a column as `{type, data}`: integers in the smallest type that holds them, floats as float32."""
    column = np.asarray(values)
    kind = "f4" if column.dtype.kind == "f" else _smallest(column)
    return {"type": kind, "data": base64.b64encode(column.astype(f"<{kind}").tobytes()).decode()}


def _smallest(column: NDArray[Any]) -> str:
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    kinds = ("i1", "i2", "i4") if low < 0 else ("u1", "u2", "u4")
    for kind in kinds:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return kind
    # JavaScript has no plain 64-bit integer arrays; doubles are exact up to 2^53.
    return "f8"
