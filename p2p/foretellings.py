"""Which arithmetic foretells messages for which engine."""

from __future__ import annotations

from p2p.engines import FifoEngine, IdealEngine
from p2p.fair_engine import FairEngine
from p2p.fair_foretelling import FairForetelling
from p2p.foretelling import Foretelling
from p2p.links import Links
from p2p.queue_foretelling import FifoForetelling, IdealForetelling
from p2p.sharing import Engine

_FORETELLINGS: dict[type, type[Foretelling]] = {
    FairEngine: FairForetelling,
    FifoEngine: FifoForetelling,
    IdealEngine: IdealForetelling,
}


def foretelling_of(engine: Engine, links: Links) -> Foretelling | None:
    """What foretells messages as an engine would carry them; None for a plug-in's, or for rates on a grid."""
    made = _FORETELLINGS.get(type(engine))
    on_grid = isinstance(engine, FairEngine) and engine.on_grid
    return None if made is None or on_grid else made(links)
