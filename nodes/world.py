"""What every node of a run shares: clock, network, log, sealing and the proxy's table of addresses."""

from __future__ import annotations

from dataclasses import dataclass

from nodes.aggregation.settings import Weights
from nodes.messaging.sent_payloads import SentPayloads
from nodes.phase_hooks import PhaseHooks
from p2p.clock import Clock
from p2p.log.log import Log
from p2p.transport.network import Network
from privacy.anonymity.pseudonyms import Pseudonyms
from privacy.anonymity.settings import Sealed
from privacy.sealing.sealers import Sealer


@dataclass(frozen=True, slots=True)
class World:
    """What every process shares. `router` is the proxy's address table: only it turns addresses into nodes."""

    clock: Clock
    network: Network
    log: Log
    seed: int
    sealed: Sealed
    sealer: Sealer
    router: Pseudonyms
    phase_hooks: PhaseHooks
    proxy: int
    standby: int
    server: int
    reported_loss: str = ""
    """The loss that the schedule reads and that nodes report with their part: public_loss, noisy_losses, or none."""
    weights: Weights = "uniform"
    """How aggregators weigh updates."""
    first_incarnation: int = 0
    """Where endpoints begin to count their lives: a resumed run starts beyond those of the run it goes on with."""
    sent_payloads: SentPayloads | None = None
    """What nodes put into messages, for observers; None in a run without adversaries."""
