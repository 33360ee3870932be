"""From a scenario's stages to the plan of its releases: who declares what, in the order of the list."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2p.config.errors import UserError
from privacy.calibration.noise_plan import NO_FORMULA, NoisePlan, PlanContext
from privacy.settings import Privacy
from privacy.stages.api import Declared, Stage
from privacy.stages.order import ANY_SHAPE, final_bounds

NOTHING_ADDED = "no noise is added, so nothing is claimed"
NO_NOISE = "no accounted noise: rigorous epsilon is infinite"


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A stage with what it declared for this run."""

    stage: Stage
    declared: Declared


def plan_noise(privacy: Privacy, context: PlanContext) -> NoisePlan:
    """Returns what the stages of a run declare about its releases.

    Raises:
        UserError: the settings contradict each other; lists all problems.
    """
    problems = privacy.problems()
    if problems:
        raise UserError(problems)
    stages = plan_stages(privacy.release_stages, replace(context, budget=privacy.resolved_budget()))
    return _plan(stages[-1].declared if stages else _nothing(context), context)


def plan_stages(stages: Sequence[Stage], context: PlanContext) -> list[PlannedStage]:
    """Returns each stage with what is known of a release after it."""
    planned: list[PlannedStage] = []
    known = _nothing(context)
    for stage in stages:
        known = stage.declare(known, context)
        planned.append(PlannedStage(stage, known))
    return planned


def unaccounted_stages(stages: Sequence[Stage]) -> Iterator[tuple[int, str]]:
    """Yields (place, sentences) of what stages release uncharged or read of private data, in a run of any size."""
    before: tuple[str, ...] = ()
    for place, planned in enumerate(plan_stages(stages, _some_run(stages))):
        now = (*planned.declared.reads, *planned.declared.unaccounted)
        # Each stage repeats what those before declared; only what it adds is its own.
        if new := [sentence for sentence in now if sentence not in before]:
            yield place, ", and ".join(new)
        before = now


def first_not_linear(stages: Sequence[Stage]) -> int | None:
    """Returns the place of the first stage after which a sum hides no release in the noise of others, if there is one.

    In a run of any size.
    """
    planned = plan_stages(stages, _some_run(stages))
    return next((place for place, each in enumerate(planned) if not each.declared.linear), None)


def _some_run(stages: Sequence[Stage]) -> PlanContext:
    # Bounds may be given client by client: the run must have as many.
    clients = max(2, len(final_bounds(stages).l2))
    return PlanContext(
        clients=clients,
        train_per_round=2,
        exchange_with=None,
        rounds=1,
        records=np.ones(clients, dtype=np.int64),
        topology="central",
        shape=ANY_SHAPE,
    )


def _nothing(context: PlanContext) -> Declared:
    """Returns what is known of an update that no stage has touched."""
    return Declared(std=np.zeros(context.clients), kept=context.shape.dimension, layers=context.shape.layers)


def _plan(known: Declared, context: PlanContext) -> NoisePlan:
    # Stages come first: these sentences say what all of them together leave open.
    notes = list(known.notes)
    if not known.noised:
        notes.append(NO_NOISE)
    bound = known.bounds.largest.l2
    if math.isinf(bound):
        why = "are clipped by private bounds" if known.bounds.private else "are not clipped"
        notes.append(f"updates {why}: sensitivity and rigorous epsilon are infinite")
    return NoisePlan(
        noise_std=known.std,
        clip_norm=bound,
        # A client that is replaced moves its update from one point of the ball to any other.
        sensitivity=2.0 * bound,
        own_sensitivity=None if known.bounds.equal else 2.0 * np.broadcast_to(known.bounds.l2, context.clients),
        published=known.published,
        unpublished=known.unpublished or (NO_FORMULA if known.noised else NOTHING_ADDED),
        view_share=known.view_share,
        notes=tuple(notes),
        losses=known.losses,
        coordinate_std=known.coordinate_std,
        unaccounted=(*known.reads, *known.unaccounted),
        wire=known.wire,
        kept=known.kept,
        linear=known.linear,
    )
