"""The learning of a run: data, models and training, or byte counts alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodes.aggregation.aggregator import Aggregator
from nodes.datasets.dataset import Dataset
from nodes.datasets.preparation import client_records, generator_of, record_counts
from nodes.learning.byte_counts_only import NoLearning
from nodes.learning.carried_memory import MemoryRules
from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.model_kinds.models import ByteCount
from nodes.learning.release_stages import ReleaseStages, make_stages
from nodes.schedules.discounting import loss_bound, public_share
from p2p.config.errors import UserError
from privacy.stages.api import UpdateShape
from privacy.stages.wire import DENSE
from scenarios.composition.record_setup import record_account
from scenarios.composition.run_terms import RunTerms, sends_models, topology_of
from scenarios.schema import Scenario

if TYPE_CHECKING:
    from nodes.learning.generators.cgan import GeneratedRecords
    from nodes.learning.trainer import Learner


def make_learner(
    scenario: Scenario, data_dir: Path | None, threads: int | None, at_once: int | None
) -> tuple[NDArray[np.int64], Learner | None]:
    """Returns the number of records of each client, and the learner; None without learning."""
    if scenario.learning == "none":
        # The same counts as with learning: they set training times, hence events.
        return record_counts(scenario.data, scenario.clients, data_dir, scenario.seed, scenario.reserved), None
    # Imported here: torch takes seconds to load, and runs without learning do not need it.
    try:
        from nodes.learning.private_records.dp_sgd import RecordNoise
        from nodes.learning.trainer import Learner
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UserError(
            "learning = torch: torch is not installed; `pip install torch`, or simulate messages only: `learning: none`"
        ) from None

    dataset, shards = client_records(scenario.data, scenario.clients, data_dir, scenario.seed, scenario.reserved)
    counts = np.array([len(shard) for shard in shards], dtype=np.int64)
    # The noise of DP-SGD does not depend on what happens to updates afterwards.
    settings, account = scenario.training.per_sample, record_account(scenario, counts, None)
    learner = Learner(
        scenario.model,
        dataset,
        shards,
        scenario.training,
        scenario.seed,
        objective=scenario.objective,
        generated=_generate(scenario, dataset, shards, threads),
        record_noise=None if settings is None or account is None else RecordNoise(settings, account.multiplier),
        validation=public_share(scenario.schedule),
        at_once=at_once,
        threads=threads,
    )
    return counts, learner


def _generate(
    scenario: Scenario, dataset: Dataset, shards: list[NDArray[np.int64]], threads: int | None
) -> tuple[GeneratedRecords, float] | None:
    """Returns the records that clients' generators make, and their share in training; None if there are none."""
    settings = generator_of(scenario.data)
    if settings is None:
        return None
    import torch

    from nodes.learning.generators.cgan import generate_records

    bounds = scenario.data.value_range() if hasattr(scenario.data, "value_range") else None
    cores = threads or torch.get_num_threads()
    return generate_records(settings, dataset, shards, bounds, scenario.seed, cores), settings.share


def shape_of(scenario: Scenario, learner: Learner | None) -> UpdateShape:
    """Returns the form of an update."""
    if learner is not None:
        return UpdateShape(learner.dimension, learner.layers)
    form = ((), 0) if isinstance(scenario.model, ByteCount) else scenario.data.form()
    if form is None:
        raise UserError("learning = none: the shape of a `file` data set is not known; use `torch` or another set")
    return update_shape(scenario, form, scenario.model.parameters(*form))


def update_shape(scenario: Scenario, form: tuple[tuple[int, ...], int], dimension: int) -> UpdateShape:
    """Returns the form of an update without training; a module is built only if a stage works layer by layer."""
    stages = () if scenario.privacy is None else scenario.privacy.release_stages
    if not any(getattr(stage, "by_layer", False) for stage in stages):
        return UpdateShape(dimension)
    from nodes.learning.model_kinds.module_contract import layer_sizes

    return UpdateShape(dimension, layer_sizes(scenario.model.build(*form)))


def make_learning(scenario: Scenario, learner: Learner | None, terms: RunTerms) -> DeferredLearning | NoLearning:
    """Returns the models of all nodes, with the stages of a release and the aggregator; or sizes of payloads alone."""
    noise, context = terms.noise, terms.context
    wire = DENSE if noise is None else noise.wire
    memory = memory_rules(scenario, context.shape.dimension)
    if learner is None:
        sends_loss = scenario.aggregate.sends_loss
        return NoLearning(context.shape.dimension, wire, scenario.seed, sends_loss=sends_loss, memory=memory)
    pipeline = ReleaseStages()
    if scenario.privacy is not None:
        pipeline = make_stages(scenario.privacy.release_stages, context, scenario.seed, scenario.training.rate, wire)
    models, bound = sends_models(scenario), loss_bound(scenario.schedule)
    aggregator = Aggregator(settings=scenario.aggregate, clip_norm=1.0 if noise is None else noise.clip_norm)
    return DeferredLearning(
        learner,
        scenario.clients,
        pipeline,
        scenario.seed,
        models,
        loss_bound=bound,
        aggregator=aggregator,
        memory=memory,
    )


def memory_rules(scenario: Scenario, dimension: int) -> MemoryRules:
    """Returns what aggregators remember beside their model, and what of it they hand on."""
    stages = () if scenario.privacy is None else scenario.privacy.release_stages
    masks = [stage.masks_last(dimension) for stage in stages if hasattr(stage, "masks_last")]
    return MemoryRules(
        momentum=scenario.aggregate.momentum > 0.0,
        handed_on=topology_of(scenario) == "pseudo_central",
        mask=next((count for count in masks if count is not None), None),
    )
