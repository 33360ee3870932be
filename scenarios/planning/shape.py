"""How large a problem is, without learning anything: records, their shape, and the model's numbers."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodes.partition import Iid
from p2p.errors import UserError
from scenarios.schema import Scenario


class Shape(NamedTuple):
    """Training records, the shape of one, classes, and the parameters of the model."""

    records: int
    record: tuple[int, ...]
    classes: int
    dimension: int

    @property
    def data_bytes(self) -> int:
        """The training records as float32."""
        return 4 * self.records * prod(self.record)

    def per_client(self, clients: int) -> NDArray[np.int64]:
        """Records of each client if all have the same."""
        return np.full(clients, max(1, self.records // clients), dtype=np.int64)


def shape_of(scenario: Scenario, data_dir: Path | None = None) -> Shape:
    """What the scenario's data and model state; a file is read for it.

    Raises:
        UserError: a model of somebody else does not say how many parameters it has.
    """
    records, form = scenario.data.records(), scenario.data.form()
    if records is None or form is None:
        from nodes.datasets import resolve_data_dir

        loaded = scenario.data.load(resolve_data_dir(data_dir), scenario.seed)
        records, form = len(loaded.train_y), (tuple(loaded.train_x.shape[1:]), loaded.classes)
    if not hasattr(scenario.model, "parameters"):
        name = type(scenario.model).__qualname__
        raise UserError(f"model.kind = {name}: does not say how many numbers it has; add parameters(shape, classes)")
    return Shape(records, form[0], form[1], scenario.model.parameters(*form))


def is_equal_split(scenario: Scenario) -> bool:
    """Whether all clients hold the same number of records, give or take one."""
    return isinstance(scenario.data.split, Iid)
