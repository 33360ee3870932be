"""Rules about `aggregate`: what needs one aggregator for all rounds, and what else of a scenario it goes with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from nodes.aggregation.settings import Aggregate, AggregateNoise
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from scenarios.loading.problems import Path

Finding = tuple[Path, Any, str]
_GOSSIP = "is the memory of one aggregator, and with gossip every member averages other updates"
_KEPT = (
    "leaves momentum without the leader's noise, and leaders hand momentum on with the model, so that the next one "
    "would see it bare; use `before_momentum`, `momentum: 0` or `protocol.kind: central`"
)


def aggregate_findings(aggregate: Aggregate, protocol: Any, privacy: Any, noise_shares: Any) -> Iterator[Finding]:
    """Yields what does not go together with the section."""
    if aggregate == Aggregate():
        return
    if isinstance(protocol, Gossip):
        yield from _gossip_findings(aggregate, protocol)
    if isinstance(protocol, RotatingLeader) and aggregate.noise_after_momentum:
        yield ("aggregate", "noise", "when"), "after_momentum", _KEPT
    if aggregate.noise is not None:
        yield from _noise_findings(aggregate.noise, privacy)
    if noise_shares is not None and aggregate.noise is not None:
        rule = "and noise shares are two noises on one sum, of which only one is meant; drop one of them"
        yield ("aggregate", "noise"), "noise", rule
    if noise_shares is not None and aggregate.weights != "uniform":
        rule = "would weigh updates twice, since those with noise shares carry weights; use `noise_shares.weights`"
        yield ("aggregate", "weights"), aggregate.weights, rule


def _noise_findings(noise: AggregateNoise, privacy: Any) -> Iterator[Finding]:
    stages = () if privacy is None else privacy.release_stages
    to_median = any(getattr(stage, "clips_to_median", False) for stage in stages)
    if noise.by_median and not to_median:
        rule = "is the median norm that a stage `clip_cohort_median` clips to; add that stage, or use `scale: bound`"
        yield ("aggregate", "noise", "scale"), "cohort_median", rule
    elif not noise.by_median and math.isinf(math.inf if privacy is None else privacy.clip_norm):
        cure = "; add `privacy.clip: {kind: flat, norm: 1.0}`"
        cure = "; put `{kind: clip}` before it, or set `scale: cohort_median`" if to_median else cure
        yield ("aggregate", "noise"), "noise", f"hides nothing of updates without a bound{cure}"


def _gossip_findings(aggregate: Aggregate, protocol: Gossip) -> Iterator[Finding]:
    if aggregate.momentum > 0.0:
        rule = f"{_GOSSIP}; set it to 0, use `training.momentum`, or another protocol"
        yield ("aggregate", "momentum"), aggregate.momentum, rule
    if protocol.exchange == "model":
        rule = "averages models, so there is no step to change; drop `aggregate`, or set `exchange: update`"
        yield ("protocol", "exchange"), "model", rule
    if protocol.mixing == "metropolis" and aggregate.weights != "uniform":
        rule = "and `protocol.mixing: metropolis` are two weights for one update; drop one of them"
        yield ("aggregate", "weights"), aggregate.weights, rule
