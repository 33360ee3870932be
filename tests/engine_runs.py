"""How tests run an engine without a network."""

from __future__ import annotations

from typing import NamedTuple

from p2p.sharing import Engine, Transfer


class Ended(NamedTuple):
    """A transfer that arrived (or, if it was cut, has left its sender) at `time_s`."""

    time_s: float
    transfer: Transfer
    bottleneck: str


def advance(engine: Engine, now_s: float) -> list[Ended]:
    """All that ends up to and including now."""
    ended: list[Ended] = []
    engine.work(lambda: now_s, lambda *what: ended.append(Ended(*what)))
    return ended
