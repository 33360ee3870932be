"""A network of a few nodes that take every message, for tests of the network alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest

from p2p.clock import Clock
from p2p.config.distributions import Constant, Distribution, Exponential
from p2p.links.link_table import Links
from p2p.links.settings import NetworkSettings, Retransmit
from p2p.log.log import Log
from p2p.log.records import KINDS
from p2p.transport.core.layout import FIRST_TOPIC
from p2p.transport.inbox import Inbox
from p2p.transport.messages import Batch, Delivery, Message
from p2p.transport.network import Network
from p2p.transport.relays import Relays
from p2p.transport.sharing import SHARINGS

LAYER_BYTES = 100

Rows = Callable[..., list[dict[str, Any]]]
EACH_SHARING = pytest.mark.parametrize("sharing", sorted(SHARINGS))


def nodes(*chosen: int) -> Any:
    """A mask over four nodes."""
    return np.isin(np.arange(4), chosen)


class SmallNetwork:
    """Nodes at 1 kB/s and 0.1 s from each other, unless told otherwise; relays at 2 kB/s come after them.

    Without a session a data message is handed over on arrival: `got` lists (time, node, message). With one it goes to
    the node's inbox under the key (kind, round); contents that begin with "bad" are refused there.
    """

    def __init__(
        self,
        nodes: int = 4,
        *,
        up: Sequence[float] | float = 1000.0,
        down: Sequence[float] | float = 1000.0,
        latency_s: float | Distribution = 0.1,
        sharing: str = "ideal",
        grid_s: float | None = None,
        loss: float = 0.0,
        tries: int = 3,
        timeout_s: float = 2.0,
        receiver_offline: Literal["send", "fail_fast"] = "send",
        jitter_s: float = 0.0,
        relays: int = 0,
        hops: int = 2,
        seed: int = 1,
    ) -> None:
        rate = Constant(value=1000.0)
        latency = Constant(value=latency_s) if isinstance(latency_s, float) else latency_s
        settings = NetworkSettings(uplink=rate, downlink=rate, latency=latency)
        self.clock, self.log = Clock(), Log()
        self.links = Links(settings, seed, nodes, nodes + relays)
        self.links.up[:nodes], self.links.down[:nodes] = up, down
        self.relays = Relays(seed, tuple(range(nodes, nodes + relays)), hops, LAYER_BYTES) if relays else None
        self.links.up[nodes:] = self.links.down[nodes:] = 2000.0
        options: dict[str, Any] = {"grid": grid_s} if grid_s else {}
        self.network = Network(
            self.clock,
            self.links,
            SHARINGS[sharing](**options),
            self.log,
            seed,
            Retransmit(tries=tries, timeout=timeout_s, receiver_offline=receiver_offline),
            rounds=10,
            loss=loss,
            jitter=Exponential(mean=jitter_s) if jitter_s else None,
            relays=self.relays,
            alter=lambda content, rng: f"{content}, damaged",
        )
        self.got: list[tuple[float, int, Message]] = []
        self.opened: list[list[str]] = []
        self.inboxes = [Inbox(self.network, node, self._opener(node)) for node in range(nodes)]
        for node, inbox in enumerate(self.inboxes):
            self.network.attach(node, self._take, inbox)

    def _take(self, message: Message) -> str | None:
        self.got.append((round(self.clock.now, 9), message.receiver, message))
        return ""

    def _opener(self, node: int) -> Any:
        def open_deliveries(deliveries: Sequence[Delivery]) -> None:
            texts = [str(self.network.contents.as_arrived(delivery)) for delivery in deliveries]
            self.opened.append(texts)
            for delivery, text in zip(deliveries, texts, strict=True):
                if text.startswith("bad"):
                    self.network.refuse(delivery.row, "replay")
                else:
                    kind = KINDS[delivery.topic] if delivery.topic < FIRST_TOPIC else "control"
                    self.inboxes[node].put((kind, delivery.round_number), text)

        return open_deliveries

    def send(
        self,
        sender: int,
        receivers: Sequence[int],
        size_bytes: int | Sequence[int] = 500,
        *,
        texts: Sequence[str] | None = None,
        kind: str = "update",
        round_number: int = 1,
        **more: Any,
    ) -> None:
        """Hands over messages; each says for whom it is, unless `texts` are given. 82 bytes are overhead."""
        contents = texts or [f"for {receiver}" for receiver in receivers]
        sizes = size_bytes if isinstance(size_bytes, int) else np.array(size_bytes, dtype=np.int64)
        overheads = 82 if isinstance(size_bytes, int) else np.full(len(size_bytes), 82, dtype=np.int64)
        self.network.send(Batch(sender, receivers, kind, round_number, sizes, overheads, contents, **more))

    def arrivals(self) -> list[tuple[float, int, str]]:
        """What was handed over on arrival: time, node, content."""
        return [(time_s, node, message.content) for time_s, node, message in self.got]
