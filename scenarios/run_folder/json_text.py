"""JSON output: stable key order, no numpy types, no NaN."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def to_json(content: Mapping[str, Any]) -> str:
    """Returns JSON with keys in the order given; infinity becomes the string `inf`, NaN becomes null."""
    return json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Converts a value to JSON types only."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    # tolist() gives Python scalars, which may still hold NaN or infinity: hence the recursion.
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
