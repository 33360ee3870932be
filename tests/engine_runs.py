"""How tests run an engine without a network."""

from __future__ import annotations

from p2p.sharing import Ended, Engine


def advance(engine: Engine, now_s: float) -> list[Ended]:
    """All that ends up to and including now."""
    return [ended for instant in iter(lambda: engine.take(now_s), []) for ended in instant]
