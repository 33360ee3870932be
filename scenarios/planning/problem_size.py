"""Problem size without training: records, their shape, and the model's parameter count."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import NamedTuple

from p2p.config.errors import UserError
from scenarios.schema import Scenario


class ProblemSize(NamedTuple):
    """Number of training records, shape of one record, number of classes, and model parameters."""

    records: int
    record: tuple[int, ...]
    classes: int
    dimension: int

    @property
    def data_bytes(self) -> int:
        """Size of the training records as float32."""
        return 4 * self.records * prod(self.record)


def shape_of(scenario: Scenario, data_dir: Path | None = None) -> ProblemSize:
    """Returns the size declared by the scenario's data and model; a data file is read to find out.

    Raises:
        UserError: a plug-in model lacks a `parameters` method.
    """
    records, form = scenario.data.records(), scenario.data.form()
    if records is None or form is None:
        # Only file data sets need loading; the built-in ones declare their sizes.
        from nodes.datasets.registry import resolve_data_dir

        loaded = scenario.data.load(resolve_data_dir(data_dir), scenario.seed)
        records, form = len(loaded.train_y), (tuple(loaded.train_x.shape[1:]), loaded.classes)
    if not hasattr(scenario.model, "parameters"):
        name = type(scenario.model).__qualname__
        raise UserError(f"model.kind = {name}: does not say how many numbers it has; add parameters(shape, classes)")
    return ProblemSize(records, form[0], form[1], scenario.model.parameters(*form))
