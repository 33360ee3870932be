"""Control messages between the proxy and the nodes, and their sizes on the wire.

Control messages run over a node's own authenticated connection to the proxy (assumed, like TLS); payloads travel
between addresses and are really sealed. Sizes follow the wire format of privacy/sealing/control_format.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from privacy.sealing.control_format import KEY_BYTES, assignment_size, control_size

_NUMBER_BYTES = 8


class Peer(NamedTuple):
    """A peer as a member knows it: its address and one-time public key of this round."""

    address: bytes
    public_key: bytes


class Register(NamedTuple):
    """A node's request to take part, with its key for the set-up round, which is found by node and life.

    Attributes:
        keyed: whether it carries a key: without sealing there are none
        life: how often the node had gone down when it registered
    """

    node: int
    keyed: bool = True
    life: int = 0

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return "register"

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("register") + KEY_BYTES * self.keyed


class Invite(NamedTuple):
    """The proxy's invitation to train in a round."""

    round_number: int
    window_s: float

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return "orders"

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("invite")


class Answer(NamedTuple):
    """A client's answer: it joins with a fresh key or declines with a reason, and states its model's round.

    The key is drawn when the proxy hands it on: most of those that answer may not be chosen.

    Attributes:
        keyed, life: as in Register
    """

    round_number: int
    node: int
    declines: str = ""
    keyed: bool = True
    model_round: int = 0
    train_s: float = 0.0
    life: int = 0

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("answer", self.round_number)

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing; a join also carries model round (4) and training time (8)."""
        reason_bytes = control_size("decline") if self.declines else 0
        # A refusal carries the key too: its sender may still hold the current model and serve it.
        return control_size("join", keyed=self.keyed) + 12 + reason_bytes


class Done(NamedTuple):
    """A member's report that its part of a round is done, with its model's round or a skipped aggregation.

    `epoch` names the assignment it refers to, since the round may have been re-planned meanwhile. `has_loss` says that
    it carries the loss that the schedule reads; the value is computed when the proxy reads it.
    """

    round_number: int
    node: int
    model_round: int = -1
    skipped: bool = False
    epoch: int = 0
    has_loss: bool = False

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("done", self.round_number)

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing; a loss takes eight."""
        return control_size("done") + 8 * self.has_loss


class LeaderTimeout(NamedTuple):
    """A member's complaint that the model of this epoch's leader is overdue."""

    round_number: int
    node: int
    epoch: int

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        # A key of its own: the proxy waits for reports, and a complaint wakes that wait without counting as one.
        return ("complaint", self.round_number)

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("fetch")


class LeaderProbe(NamedTuple):
    """The proxy's question whether a leader leads its round under the plan of this epoch.

    The answer is the transport's own acknowledgement, free and instant like all of them: a message would queue behind
    the models on the leader's uplink, and a busy leader would count as lost.
    """

    round_number: int
    epoch: int
    acknowledge: Callable[[], None]

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("probe", self.round_number)

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("close")


class CommitRequest(NamedTuple):
    """A leader's request that its aggregate become the round's model.

    On the wire it has the model's SHA-256. The simulation counts these bytes and computes no hash, because values are
    computed later than events; a leader makes one aggregate per epoch, so node and epoch identify it.
    """

    round_number: int
    node: int
    epoch: int

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("commit", self.round_number)

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("commit")


class CommitReply(NamedTuple):
    """The proxy's answer to a commit request.

    Attributes:
        until_s: the leader may act on a grant until then and asks again afterwards; 0 refuses the request
        acknowledge: the transport's acknowledgement of the receipt, free and instant like all of them; with it the
            commit is final
    """

    round_number: int
    epoch: int
    until_s: float = 0.0
    acknowledge: Callable[[], None] = lambda: None

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return ("verdict", self.round_number)

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("verdict")


class Close(NamedTuple):
    """The proxy's notice that no further message of a round will come, or that a leader is no longer one."""

    round_number: int

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return "orders"

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("close")


class PeerLost(NamedTuple):
    """The proxy's notice that a share partner was lost."""

    round_number: int
    address: bytes

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        # By round: a notice of an earlier round must not exclude a partner of this one.
        return ("gone", self.round_number)

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing."""
        return control_size("close") + len(self.address)


class Assignment(NamedTuple):
    """A member's assignment for one round: its address, and its peers by direction and kind of message.

    Attributes:
        role: `leader`, `member`, or `holder`: a node outside the cohort that serves or receives a model
        barrier_s: the common instant to send at; None means as soon as ready
        known: the number of peers whose addresses and keys it lists, for the size
        edges: the number of edges it lists beyond the member's own, for the size
        epoch: how often the round was re-planned after its leader was lost
        closes_s: the latest closing time of the round, as known when the assignment is handed out
        lasts_s: how long the round may take a member, from the receipt of its assignment
        public_key: the key the member joined with, which its peers seal for; a restart since then draws another
        acknowledge: the transport's acknowledgement of the receipt, free and instant like all of them; reports to the
            proxy when the member's time is up
        weight_total: where updates carry weights, their denominator (members or records); else 0
        mixing: the weight of each peer's vector in the member's average; None means equal ones
        planned_rounds: where the schedule changes them: how many rounds are planned now, from which members know their
            noise; else 0
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
    mixing: Mapping[bytes, float] | None = None
    planned_rounds: float = 0.0

    @property
    def key(self) -> Hashable:
        """The inbox key it is filed under."""
        return "orders"

    @property
    def order(self) -> tuple[int, int]:
        """Which is newer: by round, then epoch, so a re-planned round is newer than its first plan."""
        return self.round_number, self.epoch

    @property
    def fetches(self) -> bool:
        """Whether it only asks to fetch the first model."""
        return bool(self.expect_from.get("bootstrap"))

    def closing(self, closes_s: float) -> Assignment:
        """Returns the same assignment with another closing time."""
        # `_replace` takes six times as long, and every member accepts an assignment in every round.
        place = _CLOSES_S
        return tuple.__new__(Assignment, (*self[:place], closes_s, *self[place + 1 :]))

    @property
    def payload_bytes(self) -> int:
        """Bytes on the wire without framing; a weight total, planned rounds and each weight of a peer take eight."""
        numbers = bool(self.weight_total) + bool(self.planned_rounds) + len(self.mixing or ())
        return assignment_bytes(self.known, self.edges, self.keyed, numbers)


def assignment_bytes(known: int, edges: int, keyed: bool, numbers: int) -> int:
    """Returns the payload bytes of an assignment with this many peers, edges and numbers."""
    return assignment_size(known, edges, keyed) + _NUMBER_BYTES * numbers


_CLOSES_S = Assignment._fields.index("closes_s")

Control = (
    Register
    | Invite
    | Answer
    | Done
    | Assignment
    | LeaderTimeout
    | LeaderProbe
    | CommitRequest
    | CommitReply
    | Close
    | PeerLost
)


def is_urgent(control: Control) -> bool:
    """Whether the receiver handles a control message at its arrival, whatever its process waits for."""
    return isinstance(control, (LeaderTimeout, LeaderProbe, CommitRequest, Close))
