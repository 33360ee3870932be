"""What the proxy and the others say to each other, and how many bytes each saying takes.

Control messages run over a node's own authenticated connection to the proxy (assumed, like TLS); payloads travel
between addresses and are sealed for real. Sizes follow the wire format of privacy/sealing/control_format.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from privacy.sealing.control_format import assignment_size, control_size


class Peer(NamedTuple):
    """The other end as a member knows it: this round's address and one-time public key."""

    address: bytes
    public_key: bytes


class Register(NamedTuple):
    """A node asks to take part; it has drawn an initial address and a key for the set-up round."""

    node: int
    public_key: bytes

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return "register"

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "register"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return False

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("register") + len(self.public_key)


class Invite(NamedTuple):
    """The proxy asks who will train in a round."""

    round_number: int
    window_s: float

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return "orders"

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "orders"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return False

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("invite")


class Answer(NamedTuple):
    """A client joins with a fresh key, or declines with a reason; it tells its model's age and its training time."""

    round_number: int
    node: int
    declines: str = ""
    public_key: bytes = b""
    model_round: int = 0
    train_s: float = 0.0

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("answer", self.round_number)

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "answer"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return False

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing; a join also carries model round (4) and training time (8)."""
        reason_bytes = control_size("decline") if self.declines else 0
        return control_size("join", keyed=bool(self.public_key)) + 12 + reason_bytes


class Done(NamedTuple):
    """A member has finished its part of a round; it tells which model it has, or that its aggregation was skipped.

    The part is that of its last assignment: `epoch` tells which, for a round may have been arranged anew meanwhile.
    """

    round_number: int
    node: int
    model_round: int = -1
    skipped: bool = False
    epoch: int = 0

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("done", self.round_number)

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "done"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return False

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("done")


class LeaderTimeout(NamedTuple):
    """A member has waited too long for the model of the leader it was given in this epoch."""

    round_number: int
    node: int
    epoch: int

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("complaint", self.round_number)

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "other"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return True

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("fetch")


class LeaderProbe(NamedTuple):
    """The proxy asks whether a leader leads its round, as arranged in this epoch.

    The answer is the transport's own acknowledgement, free and instant like all of them: a message would wait behind
    the models on the leader's uplink, and the leader would seem to be gone while it is at its busiest.
    """

    round_number: int
    epoch: int
    acknowledge: Callable[[], None]

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("probe", self.round_number)

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "other"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return True

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("close")


class Close(NamedTuple):
    """The proxy tells members that nothing more will come in a round."""

    round_number: int

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return "orders"

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "orders"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return True

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("close")


class PeerLost(NamedTuple):
    """The proxy tells a member that a peer whose noise share it holds has gone."""

    round_number: int
    address: bytes

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("gone", self.round_number)

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "other"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return False

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("close") + len(self.address)


class Assignment(NamedTuple):
    """What a member is told for one round: its address, and whom it sends to and hears from, by kind of message.

    Attributes:
        role: `leader`, `member`, or `holder`: somebody outside the cohort who serves or gets a model
        barrier_s: the common instant to send at; None means as soon as ready
        known: how many peers' addresses and keys it was given, for the size
        edges: edges of the graph it was told beyond its own
        epoch: how often the round was arranged anew after its leader was lost
        closes_s: when the proxy closes the round at the latest, as far as it knows when it hands this out
        lasts_s: how long the round may take a member, from the receipt of its assignment
        public_key: the key it joined with, which its peers seal for; a node that has restarted since has another
        acknowledge: the transport's acknowledgement of the receipt, free and instant like all of them: tells the proxy
            when the member's time is up
        weight_total: where updates carry their weight, the members or records that they are weighted by; else 0
    """

    round_number: int
    role: str
    address: bytes
    send_to: Mapping[str, Sequence[Peer]]
    expect_from: Mapping[str, Sequence[Peer]]
    barrier_s: float | None = None
    known: int = 0
    edges: int = 0
    keyed: bool = True
    closes_s: float = math.inf
    epoch: int = 0
    weight_total: float = 0.0
    lasts_s: float = 0.0
    acknowledge: Callable[[float], None] | None = None
    public_key: bytes | None = None

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return "orders"

    @property
    def topic(self) -> str:
        """What a process that waits for it waits for."""
        return "orders"

    @property
    def urgent(self) -> bool:
        """Whether its receiver handles it at its arrival, whatever it waits for."""
        return self.epoch > 0

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing; a whole takes eight."""
        return assignment_size(self.known, self.edges, self.keyed) + (8 if self.weight_total else 0)


Control = Register | Invite | Answer | Done | Assignment | LeaderTimeout | LeaderProbe | Close | PeerLost
