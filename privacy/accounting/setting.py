"""What the accountant knows before the first round, and what it adds up."""

from __future__ import annotations

from dataclasses import dataclass

from privacy.accounting.content_log import Floats
from privacy.accounting.curves.loss_events import LossEvent
from privacy.accounting.spread import Spread

_MOST_PAIRS = 2000**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the accountant knows before the first round.

    Attributes:
        clients: true ids 0..clients-1.
        spread: how contents spread under the protocol.
        delta: failure probability of all figures.
        rounds: the most rounds that the run may have.
        colluders: nodes that pool what they see; a colluding server is named by its node id.
        server: the node that receives updates and is no client; None if there is none.
        random_factors: whether shares are taken with random factors (tau > 0).
        if_infinite: what to say where the noise does not suffice.
        losses: the distinct privacy losses of releases whose noise is not Gaussian; empty if all are Gaussian.
        only_bounds: why what views see tells less than the releases that are counted for it; empty if it tells as much.
        preset_rho: where noise or rounds depend on earlier outputs, the budget of the zCDP filter that bounds what any
            client spends; none if all is fixed before the first round.
        preset_reports: the part of it that is set aside for what leaves beside the releases and is no content here.
    """

    clients: int
    spread: Spread
    delta: float
    rounds: int
    colluders: tuple[int, ...] = ()
    server: int | None = None
    random_factors: bool = False
    if_infinite: str = "an update was left without noise that its receiver does not know"
    losses: tuple[LossEvent, ...] = ()
    only_bounds: str = ""
    preset_rho: float | None = None
    preset_reports: float = 0.0

    @property
    def followed(self) -> bool:
        """Whether every pair of clients is followed; larger runs get the local view for their peers."""
        return self.clients**2 <= _MOST_PAIRS

    @property
    def tail(self) -> float:
        """The part of delta that covers too small factors on shares, over all rounds."""
        return self.delta / 2.0 if self.random_factors and self.spread == "to_all" else 0.0


@dataclass(frozen=True, slots=True)
class Learned:
    """mu^2 about each client so far: of each peer (a row), of coalition and server, and of the outsider."""

    peers: Floats
    coalition: Floats
    server: Floats
    model: Floats
