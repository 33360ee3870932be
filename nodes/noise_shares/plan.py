"""The plan of the exchange before the run: noise, number of shares, and tau of each client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodes.faults.targets import parse_nodes
from privacy.noise_shares.settings import NoiseShares
from privacy.noise_shares.variance import share_count


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSharePlan:
    """The parameters of the exchange that all participants know.

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

    def weight(self, node: int, weight_total: float) -> float:
        """Returns p_k, the client's part of `weight_total`, which counts members or records."""
        return (1.0 if self.settings.weights == "equal" else float(self.records[node])) / weight_total

    def sensitivity(self, node: int, weight_total: float) -> float:
        """Returns the sensitivity of one upload: client level, replace-one."""
        return 2.0 * self.clip_norm * self.weight(node, weight_total)

    def sigma(self, node: int, weight_total: float) -> float:
        """Returns sigma_k, the standard deviation of the client's shares together."""
        # None means that the scenario gives sigma_k itself, which then does not follow the weight.
        scale = self.settings.per_sensitivity(node, self.delta)
        return self.settings.given_sigma(node) if scale is None else scale * self.sensitivity(node, weight_total)

    def wanted(self, node: int, weight_total: float, sharers: int) -> int:
        """Returns v, the client's number of shares among `sharers` that exchange."""
        # The number is rounded, and the variance of each share is chosen afterwards so that the total is exact.
        return share_count(self.sigma(node, weight_total) ** 2, self.settings.unit_variance, sharers)

    def group_of(self) -> dict[int, int]:
        """Returns the coalition of each client that is in one."""
        groups = (parse_nodes(group, self.clients, ()).nodes for group in self.settings.coalitions)
        return {node: number for number, nodes in enumerate(groups) for node in nodes}

    def tau(self, count: int, together: bool) -> float:
        """Returns tau on a share received by a client with `count` partners; `together` means within one coalition."""
        # Members of a coalition trust each other, so less of their shares needs to stay in the sum.
        return self.settings.coalition_tau if together else self.settings.tau_against(self.clients - 1, count)
