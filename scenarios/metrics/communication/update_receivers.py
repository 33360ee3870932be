"""Who gets users' updates: how many nodes each update reaches, and the node that gets most of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.roles import Roles, leaders


@dataclass(frozen=True, slots=True)
class UpdateReceivers:
    """Who must be trusted with updates in one run.

    Attributes:
        each: how many nodes one update reaches in its round (median over updates).
        most_share: share of all updates that the best informed node got.
        most: that node.
        role: what receivers are: `server`, `leader` or `peer`.
    """

    each: float
    most_share: float
    most: int
    role: str

    def words(self) -> str:
        """Returns the receivers as the end of a sentence."""
        share = f"{self.most_share:.0%}"
        if self.role == "server":
            return (
                "the server, which gets every update" if share == "100%" else f"the server, which gets {share} of all"
            )
        if self.role == "leader":
            return f"each round's leader, a member that gets all its updates (client {self.most} got {share} of all)"
        count = "one gets" if self.each == 1 else f"{self.each:.3g} get"
        return f"the peers they send to ({count} each update; client {self.most} got {share} of all)"


def update_receivers(log: Log, roles: Roles) -> UpdateReceivers | None:
    """Returns who got the updates of a run, late and refused ones too; None if no update arrived."""
    messages = log.messages
    arrived = np.isin(messages["outcome"], (records.OUTCOME["delivered"], records.OUTCOME["rejected"]))
    rows = arrived & (messages["kind"] == records.KIND["update"]) & (messages["receiver"] == messages["destination"])
    if not rows.any():
        return None
    columns = [messages[name][rows].astype(np.int64) for name in ("origin", "round", "destination")]
    # Updates are counted once for each receiver, however often they were sent to it.
    seen = np.unique(np.stack(columns, axis=1), axis=0)
    updates, reached = np.unique(seen[:, :2], axis=0, return_counts=True)
    nodes, got = np.unique(seen[:, 2], return_counts=True)
    most = int(nodes[got.argmax()])
    by_server = roles.role(most) == "server"
    role = "server" if by_server else "leader" if leaders(log) else "peer"
    return UpdateReceivers(float(np.median(reached)), float(got.max() / len(updates)), most, role)
