"""The `adversaries` section: who watches a run, and what of it is kept.

Each observer is a frozen dataclass; `sees` returns what its position shows of some traffic, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Len
from numpy.typing import NDArray

from nodes.adversaries.sightings import Sightings, join, members_of, received_by, sent_by, tapped
from nodes.adversaries.traffic import Traffic
from nodes.faults.targets import Who, parse_nodes
from p2p.config.errors import UserError
from p2p.config.units import Bytes
from p2p.random_streams import stream

_RANGES = re.compile(r"\d{1,9}(-\d{1,9})?(,\s*\d{1,9}(-\d{1,9})?)*")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What the run folder keeps of an observer's vectors; rows are always kept.

    Attributes:
        rounds: all, or rounds such as 1-20,30; the set-up (round 0), whose one vector is the first model, is among them
        limit: most bytes of vectors and snapshots; a round that would exceed it and all later ones are left out
        snapshots: whether the models that the view contains are kept after every kept round
    """

    rounds: str = "all"
    limit: Bytes = 1e9
    snapshots: bool = False

    def __post_init__(self) -> None:
        if self.rounds != "all" and not _RANGES.fullmatch(self.rounds):
            raise UserError(f"rounds = {self.rounds}: must be `all` or rounds such as 1-20,30; write it so")

    def includes(self, round_number: int) -> bool:
        """Returns whether the vectors of a round are asked for."""
        return self.rounds == "all" or any(low <= round_number <= high for low, high in self._ranges())

    def _ranges(self) -> Iterator[tuple[int, int]]:
        for part in self.rounds.split(","):
            low, _, high = part.strip().partition("-")
            yield int(low), int(high or low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knows:
    """What an adversary knows besides its observations.

    Attributes:
        auxiliary: how many of the records that `reserved.auxiliary` keeps out of training it has
        own_records: whether its own nodes' training records are used
        members: how many training records of each victim it knows to be members; these are not scored
        labels: whether it knows the labels of the records that an update was trained on
        batch_size: whether it knows the batch size and the number of epochs
    """

    auxiliary: Annotated[int, Ge(0)] = 0
    own_records: bool = True
    members: Annotated[int, Ge(0)] = 0
    labels: bool = False
    batch_size: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """What all observers have in common.

    Attributes:
        name: name of its files; its kind unless given
        keep: what the run folder keeps of its vectors
        knows: what it knows besides
    """

    kind: ClassVar[str] = ""
    role: ClassVar[str] = ""
    """The protocol's role without which there is no such observer."""
    name: Annotated[str, Len(0, 40)] = ""
    keep: Keep = field(default_factory=Keep)
    knows: Knows = field(default_factory=Knows)

    def __post_init__(self) -> None:
        if self.name and not _FILE_NAME.fullmatch(self.name):
            raise UserError(f"name = {self.name}: names its files; use letters, digits, - _ and .")

    @property
    def called(self) -> str:
        """Its name, or its kind."""
        return self.name or self.kind

    def problems(self, clients: int) -> list[str]:
        """Returns what is wrong with the nodes that it names, as `key = value: rule`."""
        return []

    def nodes(self, clients: int, seed: int) -> tuple[int, ...]:
        """Returns the clients that belong to it."""
        return ()

    def sees(self, traffic: Traffic, nodes: Sequence[int]) -> Sightings:
        """Returns what its position shows of the traffic."""
        mine = np.isin(traffic.columns["destination"], nodes)
        return join([received_by(traffic, mine), sent_by(traffic, nodes)])

    def models_of(self, traffic: Traffic, nodes: Sequence[int]) -> Sequence[int]:
        """Returns the nodes whose models its view contains after the round that has just closed."""
        return nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerObserver(Observer):
    """One honest-but-curious client: what it receives, what it sends, its own models.

    Attributes:
        who: a client's number, or random to draw one
    """

    kind: ClassVar[str] = "peer"
    who: Annotated[int, Ge(0)] | Literal["random"] = "random"

    def problems(self, clients: int) -> list[str]:
        """Returns that there is no such client."""
        return [] if self.who == "random" else list(parse_nodes(self.who, clients, ()).problems)

    def nodes(self, clients: int, seed: int) -> tuple[int, ...]:
        """Returns the client."""
        return _drawn(seed, self.called, clients, 1) if self.who == "random" else (self.who,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalition(Observer):
    """Several clients that pool what they see.

    Attributes:
        who: clients, such as [0, 4] or 0-9
        size: instead of `who`, how many to draw
    """

    kind: ClassVar[str] = "coalition"
    who: Who | None = None
    size: Annotated[int, Ge(1)] | None = None

    def __post_init__(self) -> None:
        # `super()` without arguments does not work in a dataclass with slots, which is a new class.
        Observer.__post_init__(self)
        if (self.who is None) == (self.size is None):
            raise UserError("who: needs exactly one of who and size; give one of them")

    def problems(self, clients: int) -> list[str]:
        """Returns clients that do not exist."""
        if self.size is not None:
            few = f"size = {self.size}: must be <= clients, which is {clients}; lower it"
            return [few] if self.size > clients else []
        return list(parse_nodes(self.who or (), clients, ()).problems)

    def nodes(self, clients: int, seed: int) -> tuple[int, ...]:
        """Returns its members."""
        if self.size is not None:
            return _drawn(seed, self.called, clients, self.size)
        return parse_nodes(self.who or (), clients, ()).nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(Observer):
    """Every leader of the run; together they pool what they received and sent while they led."""

    kind: ClassVar[str] = "leader"
    role: ClassVar[str] = "leader"

    def sees(self, traffic: Traffic, nodes: Sequence[int]) -> Sightings:
        """Returns what reached a node in a round that it led, and what it sent as a leader."""
        columns = traffic.columns
        leads = traffic.leads(columns["round"], columns["destination"])
        return join([received_by(traffic, leads), sent_by(traffic, None)])

    def models_of(self, traffic: Traffic, nodes: Sequence[int]) -> Sequence[int]:
        """Returns the leader whose aggregate became the round's model."""
        return traffic.aggregator


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerObserver(Observer):
    """The server: with `central` it receives all updates, elsewhere it collects the final model."""

    kind: ClassVar[str] = "server"

    def sees(self, traffic: Traffic, nodes: Sequence[int]) -> Sightings:
        """Returns what the server receives and sends."""
        return Observer.sees(self, traffic, (traffic.server,))

    def models_of(self, traffic: Traffic, nodes: Sequence[int]) -> Sequence[int]:
        """Returns the server, if it aggregates."""
        return (traffic.server,) if traffic.server in traffic.aggregator else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Eavesdropper(Observer):
    """Listens to access links: direction, time and size of what passes; contents only if they are not sealed.

    Attributes:
        links: all, or the clients whose links are tapped
    """

    kind: ClassVar[str] = "eavesdropper"
    links: Who = "all"

    def problems(self, clients: int) -> list[str]:
        """Returns clients that do not exist."""
        return list(parse_nodes(self.links, clients, ("all",), "links").problems)

    def nodes(self, clients: int, seed: int) -> tuple[int, ...]:
        """Returns the clients whose links are tapped."""
        return tuple(range(clients)) if self.links == "all" else parse_nodes(self.links, clients, ()).nodes

    def sees(self, traffic: Traffic, nodes: Sequence[int]) -> Sightings:
        """Returns what passes the tapped links."""
        return tapped(traffic, nodes)

    def models_of(self, traffic: Traffic, nodes: Sequence[int]) -> Sequence[int]:
        """Returns nothing: it holds no model."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelObserver(Observer):
    """An outsider who gets models only: every aggregate of a server or leader; in gossip the collected model."""

    kind: ClassVar[str] = "model"

    def sees(self, traffic: Traffic, nodes: Sequence[int]) -> Sightings:
        """Returns the collected model; aggregates are its snapshots."""
        return received_by(traffic, traffic.of_kind("collect"))

    def models_of(self, traffic: Traffic, nodes: Sequence[int]) -> Sequence[int]:
        """Returns the node that holds the round's aggregate."""
        return traffic.aggregator


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyObserver(Observer):
    """The proxy (with its standby): who is who and who trains; with peers also what these see, under true identities.

    Attributes:
        peers: the clients that collude with it; none leaves it alone
    """

    kind: ClassVar[str] = "proxy"
    peers: Who | None = None

    def problems(self, clients: int) -> list[str]:
        """Returns clients that do not exist."""
        return [] if self.peers is None else list(parse_nodes(self.peers, clients, (), "peers").problems)

    def nodes(self, clients: int, seed: int) -> tuple[int, ...]:
        """Returns the clients that collude with it."""
        return () if self.peers is None else parse_nodes(self.peers, clients, ()).nodes

    def sees(self, traffic: Traffic, nodes: Sequence[int]) -> Sightings:
        """Returns control messages and its peers' messages, each with its sender's identity, and the members."""
        own = np.isin(traffic.columns["destination"], [traffic.proxy, traffic.standby, *nodes])
        return join([received_by(traffic, own), sent_by(traffic, nodes), members_of(traffic.cohorts)]).identified()


OBSERVERS: dict[str, type] = {
    one.kind: one
    for one in (PeerObserver, Coalition, Leader, ServerObserver, Eavesdropper, ModelObserver, ProxyObserver)
}
AnyObserver = PeerObserver | Coalition | Leader | ServerObserver | Eavesdropper | ModelObserver | ProxyObserver


def _drawn(seed: int, name: str, clients: int, count: int) -> tuple[int, ...]:
    chosen: NDArray[np.int64] = stream(seed, "observer", name).choice(clients, count, replace=False)
    return tuple(sorted(chosen.tolist()))
