"""What is wrong with a list of stages, found before a run: order, bounds, and each stage's own rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from privacy.mechanisms.scales import out_of_range
from privacy.stages.api import Bounds, Released, Stage, Update, UpdateShape

# Large enough that no bound of a stage degenerates; only whether bounds are finite matters here.
ANY_SHAPE = UpdateShape(1000, (500, 500))


def stage_problems(stages: Sequence[Stage], path: str = "update") -> Iterator[str]:
    """Yields `path = value: rule; cure` for every stage that cannot stand where it stands."""
    known: type = Update
    bounds, noise = Bounds(), ""
    for index, stage in enumerate(stages):
        place = f"{path}.{index}"
        # A misplaced stage says nothing about bounds that would help, so its other rules are left out.
        if known not in stage.takes:
            yield f"{place} = {kind_of(stage)}: {_misplaced(stage, noise)}"
        else:
            for key, value, rule in stage.problems(bounds):
                yield f"{place}.{key} = {value}: {rule}" if key else f"{place} = {value}: {rule}"
            bounds = stage.bounds(bounds, ANY_SHAPE)
        # Only the first noise counts as such; a later one has been refused above.
        if stage.gives is Released and known is Update:
            known, noise = Released, f"{place} ({kind_of(stage)})"
        yield from out_of_range(_scales(stage, place))


def final_bounds(stages: Sequence[Stage]) -> Bounds:
    """Returns the bounds after all stages, for some shape: finite where the stages bound anything."""
    bounds = Bounds()
    for stage in stages:
        bounds = stage.bounds(bounds, ANY_SHAPE)
    return bounds


def kind_of(stage: object) -> str:
    """Returns the stage's name in scenarios, or that of a plug-in."""
    from privacy.stages.table import STAGES

    return next((kind for kind, stage_type in STAGES.items() if type(stage) is stage_type), type(stage).__qualname__)


def _misplaced(stage: Stage, noise: str) -> str:
    if Update not in stage.takes:
        return "works on what has noise already; put a noise stage before it"
    if stage.gives is Released:
        return f"a second noise after that of {noise}, which nothing accounts for together; keep one of them"
    return f"needs the update without noise, which {noise} has covered; put it before that stage"


def _scales(stage: object, place: str) -> Iterator[tuple[str, float | None]]:
    for field in dataclasses.fields(stage) if dataclasses.is_dataclass(stage) else ():
        value = getattr(stage, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            # Whole numbers are counts such as levels, which have rules of their own.
            if isinstance(one, float):
                yield f"{place}.{field.name}", one
