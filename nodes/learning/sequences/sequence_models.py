"""Models of sequences of symbols, which predict the class of a sequence, such as its next symbol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from nodes.learning.model_kinds.models import Width
from p2p.config.errors import UserError

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Lstm:
    """Long short-term memory: symbols are embedded, read one after the other, and the last state is classified.

    Zhang et al. 2024 use embedding 8, two layers and hidden 256 on 80 characters.

    Attributes:
        embedding: numbers per symbol
        hidden: units of each layer
        layers: layers of memory cells
        symbols: distinct symbols, coded 0, 1, ...; by default as many as classes, as where the next one is predicted
    """

    embedding: Width = 8
    hidden: Width = 64
    layers: Annotated[int, Ge(1)] = 1
    symbols: Annotated[int, Ge(2)] | None = None

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Returns a module whose layers are plain tensor operations, so that stacks of models can be trained."""
        from nodes.learning.sequences.lstm_module import LstmModule

        self._check(shape)
        return LstmModule(self.symbols or classes, self.embedding, self.hidden, self.layers, classes)

    def parameters(self, shape: tuple[int, ...], classes: int) -> int:
        """Returns the number of parameters."""
        self._check(shape)
        inputs = [self.embedding, *[self.hidden] * (self.layers - 1)]
        cells = sum(4 * self.hidden * (width + self.hidden + 1) for width in inputs)
        return (self.symbols or classes) * self.embedding + cells + (self.hidden + 1) * classes

    def check_records(self, records: NDArray[np.float32], classes: int) -> None:
        """Raises UserError unless records are codes of symbols."""
        most = self.symbols or classes
        codes = records.astype(np.int64)
        if len(records) and (not np.array_equal(codes, records) or codes.min() < 0 or codes.max() >= most):
            raise UserError(
                f"model.kind = lstm: reads symbols, coded as whole numbers from 0 to {most - 1}; the data has others. "
                "Use data of symbols such as `shakespeare`, or `mlp`"
            )

    def _check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 1:
            raise UserError(
                f"model.kind = lstm: needs sequences, records of shape [length], not {list(shape)}; use mlp"
            )


SEQUENCE_MODELS: dict[str, type] = {"lstm": Lstm}
