"""The exchange as planned before the run: how much noise each client adds, in how many shares, with which tau."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodes.faults.targets import parse_nodes
from privacy.noise_shares.settings import NoiseShares
from privacy.noise_shares.variance import share_count


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSharePlan:
    """What all participants know of the exchange.

    Attributes:
        clip_norm: the bound on an update; an upload p_k x_k then moves by at most `2 clip_norm p_k`.
        margin_s: how long before the updates' deadline the shares' deadline is.
        noise_std: independent noise that the `privacy` section adds to each client's update, unweighted.
    """

    settings: NoiseShares
    clients: int
    clip_norm: float
    delta: float
    records: NDArray[np.int64]
    margin_s: float
    noise_std: NDArray[np.float64]

    def weight(self, node: int, whole: float) -> float:
        """p_k: this client's part of `whole`, which is members or records."""
        return (1.0 if self.settings.weights == "equal" else float(self.records[node])) / whole

    def sensitivity(self, node: int, whole: float) -> float:
        """How far one upload can move, client level, replace."""
        return 2.0 * self.clip_norm * self.weight(node, whole)

    def sigma(self, node: int, whole: float) -> float:
        """sigma_k."""
        scale = self.settings.per_sensitivity(node, self.delta)
        return self.settings.given_sigma(node) if scale is None else scale * self.sensitivity(node, whole)

    def wanted(self, node: int, whole: float, sharers: int) -> int:
        """v of this client among so many that exchange."""
        return share_count(self.sigma(node, whole) ** 2, self.settings.unit_variance, sharers)

    def group_of(self) -> dict[int, int]:
        """The coalition each client is in, where it is in one."""
        groups = (parse_nodes(group, self.clients, ()).nodes for group in self.settings.coalitions)
        return {node: number for number, nodes in enumerate(groups) for node in nodes}

    def tau(self, count: int, together: bool) -> float:
        """tau on a share of a client with `count` partners, from a member of the same coalition or from another."""
        return self.settings.coalition_tau if together else self.settings.tau_against(self.clients - 1, count)
