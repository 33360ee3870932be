"""Digits, and gradients of a few of them."""

from __future__ import annotations

from tests.nodes.adversaries.victims import digits, ten_digits

__all__ = ["digits", "ten_digits"]
