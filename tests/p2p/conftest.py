"""The small world that can be computed by hand."""

from __future__ import annotations

from tests.by_hand import dropouts, message_rows, prepare, simulate, spans, story

__all__ = ["dropouts", "message_rows", "prepare", "simulate", "spans", "story"]
