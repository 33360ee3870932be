"""What text is a number: the floats of YAML 1.2's core schema."""

from __future__ import annotations

import re

FLOAT = re.compile(
    r"^(?:[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
