"""Rules about a rigorous budget: it can limit only what is charged, so nothing may leave beside that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodes.aggregation.settings import Aggregate
from nodes.schedules.discounting import Discounting
from privacy.settings import Privacy
from privacy.stages.order import kind_of, stage_problems
from privacy.stages.release_plan import unaccounted_stages
from scenarios.loading.problems import Path

Finding = tuple[Path, Any, str]
_MEANINGLESS = "beside `privacy.budget.by: rigorous` this leaves uncharged, so that the budget would limit nothing:"
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
