"""Rules about `schedule`: what it reads must exist, and what it changes must be there to be changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodes.protocols.gossip import Gossip
from nodes.schedules.budgets import Budgets, local_multiplier, server_multiplier
from nodes.schedules.discounting import Discounting, PublicLoss
from privacy.calibration.strategies import RigorousCalibration
from scenarios.loading.problems import Path

Finding = tuple[Path, Any, str]
_EXACT = (
    "is exact for rounds that are fixed before the run, and crd changes them; use `calibrate: {kind: wei_cdp, "
    "reading: corrected, unit: client, ...}`, which is proved for its zCDP filter"
)


def schedule_findings(
    schedule: Any, privacy: Any, protocol: Any, noise_shares: Any, learning: str, aggregate: Any
) -> Iterator[Finding]:
    """Yields what does not go together with the schedule."""
    if isinstance(schedule, Discounting):
        yield from _discounting_findings(schedule, privacy, protocol, noise_shares, learning)
    elif isinstance(schedule, Budgets):
        yield from _budget_findings(schedule, privacy, aggregate)


def _budget_findings(schedule: Budgets, privacy: Any, aggregate: Any) -> Iterator[Finding]:
    given = {"local": local_multiplier(privacy), "server": server_multiplier(aggregate)}
    noises = {"local": "clients' noise is not given as a multiple", "server": "`aggregate.noise` has no multiplier"}
    for name, multiplier in given.items():
        budget = getattr(schedule, name)
        if budget is not None and budget.sigma is None and multiplier is None:
            yield ("schedule", name, "sigma"), None, f"is needed: {noises[name]}; add it"
        elif budget is not None and budget.sigma and multiplier and budget.sigma != multiplier:
            rule = f"differs from the multiplier of the noise it is about, which is {multiplier:g}; drop it"
            yield ("schedule", name, "sigma"), budget.sigma, rule


def _discounting_findings(
    schedule: Discounting, privacy: Any, protocol: Any, noise_shares: Any, learning: str
) -> Iterator[Finding]:
    kind: Path = ("schedule", "kind")
    if learning == "none":
        rule = "has no losses, which `schedule: {kind: crd}` reads; use `torch`, or `kind: fixed`"
        yield ("learning",), "none", rule
    if isinstance(schedule.driven_by, PublicLoss) and isinstance(protocol, Gossip):
        rule = "needs one model of the round, and with gossip every member has its own; use `noisy_losses`"
        yield ("schedule", "driven_by"), "public_loss", rule
    if noise_shares is not None:
        yield ("noise_shares",), "noise shares", "are not changed by `schedule: {kind: crd}`; drop one of them"
    if privacy is None or not getattr(privacy.noise_stage, "scales", False):
        rule = "changes the Gaussian noise of clients, and they add none; add `privacy.noise`, or use `kind: fixed`"
        yield kind, "crd", rule
    elif isinstance(privacy.calibration, RigorousCalibration):
        yield ("privacy", "noise", "calibrate"), "rigorous", _EXACT
