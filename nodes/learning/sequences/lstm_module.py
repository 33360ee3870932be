"""The LSTM as a torch module of plain tensor operations; torch's own cannot be vectorised over models."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LstmModule(nn.Module):
    """Embedding, layers of LSTM cells, and a dense layer on the last hidden state; gates in torch's order (i, f, g, o).

    A layer has one bias: the second one of `torch.nn.LSTM` is redundant.
    """

    def __init__(self, symbols: int, embedding: int, hidden: int, layers: int, classes: int) -> None:
        super().__init__()
        widths = [embedding, *[hidden] * (layers - 1)]
        self.embedding = nn.Embedding(symbols, embedding)
        self.inputs = nn.ModuleList(nn.Linear(width, 4 * hidden) for width in widths)
        self.memory = nn.ModuleList(nn.Linear(hidden, 4 * hidden, bias=False) for _ in widths)
        self.dense = nn.Linear(hidden, classes)
        self._hidden = hidden
        # torch.nn.LSTM begins with this range for all its weights.
        for part in (*self.inputs.parameters(), *self.memory.parameters()):
            nn.init.uniform_(part, -(hidden**-0.5), hidden**-0.5)

    def forward(self, records: Tensor) -> Tensor:
        """Returns the scores of each class for sequences of codes [n, length]."""
        values = self.embedding(records.long())
        for place, (inputs, memory) in enumerate(zip(self.inputs, self.memory, strict=True)):
            # The last layer's earlier outputs are not needed.
            values = self._run(inputs(values), memory, every=place + 1 < len(self.inputs))
        scores: Tensor = self.dense(values)
        return scores

    def _run(self, gates: Tensor, memory: nn.Module, every: bool) -> Tensor:
        """Returns a layer's hidden states after every symbol [n, length, hidden], or after the last [n, hidden]."""
        hidden = gates.new_zeros(len(gates), self._hidden)
        cell, found = hidden, []
        for value in gates.unbind(1):
            taken, kept, new, shown = (value + memory(hidden)).chunk(4, dim=1)
            cell = kept.sigmoid() * cell + taken.sigmoid() * new.tanh()
            hidden = shown.sigmoid() * cell.tanh()
            if every:
                found.append(hidden)
        return torch.stack(found, dim=1) if every else hidden
