"""What a position shows of some traffic, as columns.

True origins are carried along for scoring. They are kept apart from the observations (`truth` in the run folder), and
attacks do not get them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nodes.messaging.sent_payloads import Sent
from p2p.log.records import NO_NODE
from privacy.attacks.observation_columns import IN, MEMBER, OUT, UNKNOWN

if TYPE_CHECKING:
    from nodes.adversaries.traffic import Members, Traffic

Column = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Rows that an observer saw; see `privacy/attacks/observation_columns.py` for the columns.

    Attributes:
        origin: the true sender, for scoring
        payloads: what each row carried, if the observer can read it
        addresses: pseudonyms of senders where no payload tells them
    """

    round: Column
    at_s: Column
    by: Column
    direction: Column
    kind: Column
    size_bytes: Column
    other: Column
    identity: Column
    origin: Column
    payloads: Sequence[Sent | None]
    addresses: Sequence[bytes]

    def identified(self) -> Sightings:
        """Returns the rows with their senders' true identities, for one who holds the proxy's table."""
        return replace(self, identity=self.origin)


def received_by(traffic: Traffic, mine: NDArray[np.bool_]) -> Sightings:
    """Returns the messages among `mine` that reached their destination, with their contents."""
    rows = np.flatnonzero(mine & traffic.arrived())
    columns = {name: column[rows] for name, column in traffic.columns.items()}
    payloads = [traffic.payload_of(row) for row in rows.tolist()]
    return _sightings(
        round=columns["round"],
        at_s=columns["arrived_s"],
        by=columns["destination"],
        direction=np.full(len(rows), IN),
        kind=columns["kind"],
        size_bytes=columns["size_bytes"],
        origin=columns["origin"],
        payloads=payloads,
    )


def sent_by(traffic: Traffic, nodes: Sequence[int] | None) -> Sightings:
    """Returns what these nodes handed over, once for all receivers; None: what leaders of the round handed over."""
    own = [sent for sent in traffic.new if _is_own(sent, traffic, nodes)]
    return _sightings(
        round=np.array([sent.round_number for sent in own], dtype=np.int64),
        at_s=np.array([sent.at_s for sent in own], dtype=np.float64),
        by=np.array([sent.origin for sent in own], dtype=np.int64),
        direction=np.full(len(own), OUT),
        kind=np.array([sent.kind for sent in own], dtype=np.int64),
        size_bytes=np.full(len(own), UNKNOWN),
        origin=np.array([sent.origin for sent in own], dtype=np.int64),
        payloads=own,
    )


def _is_own(sent: Sent, traffic: Traffic, nodes: Sequence[int] | None) -> bool:
    return (sent.round_number, sent.origin) in traffic.leaders if nodes is None else sent.origin in nodes


def tapped(traffic: Traffic, nodes: Sequence[int]) -> Sightings:
    """Returns what passes the access links of nodes: no kind, no pseudonym, no round.

    A row's time is the instant at which its last byte passed the link. The other end is known where relays are the
    other ends of links; an assumed anonymous transport hides it. Contents are readable if they are not sealed.
    """
    columns = traffic.columns
    up = np.flatnonzero(np.isin(columns["sender"], nodes) & (columns["left_bytes"] > 0))
    arrived = np.isfinite(columns["arrived_s"])
    down = np.flatnonzero(np.isin(columns["receiver"], nodes) & arrived)
    rows = np.concatenate([up, down])
    ends = [columns["sender"][up], columns["receiver"][down]], [columns["receiver"][up], columns["sender"][down]]
    left_s = np.where(np.isnan(columns["left_s"][up]), columns["sent_s"][up], columns["left_s"][up])
    hidden = np.full(len(rows), UNKNOWN)
    return _sightings(
        round=hidden,
        at_s=np.concatenate([left_s, columns["arrived_s"][down]]),
        by=np.concatenate(ends[0]),
        direction=np.concatenate([np.full(len(up), OUT), np.full(len(down), IN)]),
        kind=hidden,
        size_bytes=np.concatenate([columns["left_bytes"][up], columns["size_bytes"][down]]),
        other=np.concatenate(ends[1]) if traffic.relayed else hidden,
        origin=columns["origin"][rows],
        payloads=[traffic.payload_of(row) for row in rows.tolist()] if traffic.in_the_clear else [None] * len(rows),
        # Payloads in the clear are read; the headers that name pseudonyms belong to the assumed transport.
        addresses=[b""] * len(rows),
    )


def members_of(cohorts: Iterable[Members]) -> Sightings:
    """Returns one row for each member of a cohort: its address of the round."""
    rows = [
        (cohort.round_number, cohort.start_s, node, address)
        for cohort in cohorts
        for node, address in sorted(cohort.addresses.items())
    ]
    return _sightings(
        round=np.array([row[0] for row in rows], dtype=np.int64),
        at_s=np.array([row[1] for row in rows], dtype=np.float64),
        by=np.full(len(rows), UNKNOWN),
        direction=np.full(len(rows), OUT),
        kind=np.full(len(rows), MEMBER),
        size_bytes=np.full(len(rows), UNKNOWN),
        origin=np.array([row[2] for row in rows], dtype=np.int64),
        payloads=[None] * len(rows),
        addresses=[row[3] for row in rows],
    )


def join(parts: Sequence[Sightings]) -> Sightings:
    """Returns all rows, in order of time; simultaneous ones stay in the order of the parts."""
    order = np.argsort(np.concatenate([part.at_s for part in parts]), kind="stable")
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("round", "at_s", "by", "direction", "kind", "size_bytes", "other", "identity", "origin")
    }
    payloads = [payload for part in parts for payload in part.payloads]
    addresses = [address for part in parts for address in part.addresses]
    return Sightings(**columns, payloads=[payloads[row] for row in order], addresses=[addresses[row] for row in order])


def _sightings(
    *, payloads: Sequence[Sent | None], addresses: Sequence[bytes] | None = None, **columns: Column
) -> Sightings:
    count = len(payloads)
    if addresses is None:
        addresses = [b"" if sent is None else sent.address for sent in payloads]
    unknown = np.full(count, NO_NODE)
    return Sightings(**({"other": unknown, "identity": unknown} | columns), payloads=payloads, addresses=addresses)
