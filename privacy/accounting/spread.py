"""How what a client sends spreads under a protocol: what a protocol declares and the accountant reads.

A module of its own: protocols are loaded for every scenario, the accountant only when something is simulated.
"""

from __future__ import annotations

from typing import Literal

Spread = Literal["to_all", "by_path"]
"""Where what a client sends may end up: in aggregates that everyone sees, or wherever a path leads."""
