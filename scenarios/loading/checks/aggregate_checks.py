"""Rules about `aggregate`: what needs one aggregator for all rounds, and what else of a scenario it goes with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from nodes.aggregation.settings import Aggregate
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from scenarios.loading.problems import Path

Finding = tuple[Path, Any, str]
_ONE_PLACE = {
    Gossip: "is the memory of one aggregator, and with gossip every member averages other updates",
    RotatingLeader: "is the memory of one aggregator, and leaders change: none has the means of all rounds",
}


def aggregate_findings(aggregate: Aggregate, protocol: Any, privacy: Any, noise_shares: Any) -> Iterator[Finding]:
    """Yields what does not go together with the section."""
    if aggregate == Aggregate():
        return
    why = next((why for kind, why in _ONE_PLACE.items() if isinstance(protocol, kind)), None)
    if aggregate.momentum > 0.0 and why is not None:
        rule = f"{why}; set it to 0, use `training.momentum`, or `protocol.kind: central`"
        yield ("aggregate", "momentum"), aggregate.momentum, rule
    if isinstance(protocol, Gossip):
        yield from _gossip_findings(aggregate, protocol)
    clip_norm = math.inf if privacy is None else privacy.clip_norm
    if aggregate.noise is not None and math.isinf(clip_norm):
        rule = "hides nothing of updates without a bound; add `privacy.clip: {kind: flat, norm: 1.0}`"
        yield ("aggregate", "noise"), "noise", rule
    if noise_shares is not None and aggregate.noise is not None:
        rule = "and noise shares are two noises on one sum, of which only one is meant; drop one of them"
        yield ("aggregate", "noise"), "noise", rule
    if noise_shares is not None and aggregate.weights != "uniform":
        rule = "would weigh updates twice, since those with noise shares carry weights; use `noise_shares.weights`"
        yield ("aggregate", "weights"), aggregate.weights, rule


def _gossip_findings(aggregate: Aggregate, protocol: Gossip) -> Iterator[Finding]:
    if protocol.exchange == "model":
        rule = "averages models, so there is no step to change; drop `aggregate`, or set `exchange: update`"
        yield ("protocol", "exchange"), "model", rule
    if protocol.mixing == "metropolis" and aggregate.weights != "uniform":
        rule = "and `protocol.mixing: metropolis` are two weights for one update; drop one of them"
        yield ("aggregate", "weights"), aggregate.weights, rule
