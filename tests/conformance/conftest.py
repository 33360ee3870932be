"""The small world that can be computed by hand."""

from __future__ import annotations

from tests.by_hand import book_rows, dropouts, prepare, simulate, spans, story

__all__ = ["book_rows", "dropouts", "prepare", "simulate", "spans", "story"]
