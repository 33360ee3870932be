"""Rules about a rigorous budget: it can limit only what is charged, so nothing may leave beside that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodes.aggregation.settings import Aggregate
from nodes.protocols.gossip import Gossip
from nodes.schedules.discounting import Discounting
from privacy.calibration.strategies import RigorousCalibration
from privacy.settings import Privacy
from privacy.stages.order import final_bounds, kind_of, stage_problems
from privacy.stages.release_plan import first_not_linear, unaccounted_stages
from scenarios.loading.problems import Path

Finding = tuple[Path, Any, str]
_MEANINGLESS = "beside `privacy.budget.by: rigorous` this leaves uncharged, so that the budget would limit nothing:"
_NOT_HIDDEN = "leaves a client in a mean with less of the others' noise than `view: model` is calibrated for"
_LOCAL = "set `view: local` where the noise is calibrated"
_BY = "or set `privacy.budget: {by: none}` (`published` where a paper's formula applies)"


def budget_findings(privacy: Privacy | None, aggregate: Aggregate, schedule: Any) -> Iterator[Finding]:
    """Yields what leaves uncharged although a budget counts rigorously."""
    # A list that cannot work is told about by its own rules; stages would declare nonsense.
    if privacy is None or privacy.resolved_budget().by != "rigorous" or any(stage_problems(privacy.stages)):
        return
    for index, sentences in unaccounted_stages(privacy.stages):
        kind = kind_of(privacy.stages[index])
        yield ("update", index), kind, f"{_MEANINGLESS} {sentences}; drop or replace the stage, {_BY}"
    for sentence in aggregate.unaccounted():
        yield ("aggregate", "weights"), aggregate.weights, f"{_MEANINGLESS} {sentence}; use `records`, {_BY}"
    for sentence in schedule.unaccounted() if isinstance(schedule, Discounting) else ():
        yield ("schedule", "rounding"), schedule.rounding, f"{_MEANINGLESS} {sentence}; use `floor`, {_BY}"


def model_view_findings(
    privacy: Privacy | None, protocol: Any, aggregate: Aggregate, noise_shares: Any
) -> Iterator[Finding]:
    """Yields what makes noise that is calibrated for observers of means too small for them."""
    calibration = None if privacy is None else privacy.calibration
    if privacy is None or not isinstance(calibration, RigorousCalibration) or calibration.view != "model":
        return
    # In gossip it is calibrated like `local`; a list that cannot work is told about by its own rules.
    if isinstance(protocol, Gossip) or any(stage_problems(privacy.stages)):
        return
    place = first_not_linear(privacy.stages)
    if place is not None:
        yield ("update", place), kind_of(privacy.stages[place]), f"{_NOT_HIDDEN}; drop the stage, or {_LOCAL}"
    if not final_bounds(privacy.release_stages).equal:
        yield ("update",), "a list of bounds", f"{_NOT_HIDDEN}; give one bound for all clients, or {_LOCAL}"
    if aggregate.weights != "uniform":
        yield ("aggregate", "weights"), aggregate.weights, f"{_NOT_HIDDEN}; use `uniform`, or {_LOCAL}"
    if noise_shares is not None and noise_shares.weights != "equal":
        yield ("noise_shares", "weights"), noise_shares.weights, f"{_NOT_HIDDEN}; use `equal`, or {_LOCAL}"
