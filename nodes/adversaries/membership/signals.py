"""What models show of records: confidences, losses, entropies, gradient norms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from nodes.learning.kernels.generic import layer_columns, unflatten
from nodes.learning.kernels.interface import Kernel

# Keeps the logarithm of a rounded probability finite.
_TINY = 1e-30
# Bounds the memory of per-record gradients, which are [records, parameters].
_GRADIENT_FLOATS = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Records [n, ...] with their labels [n]."""

    records: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, rows: Tensor) -> Examples:
        """Returns some of them."""
        return Examples(self.records[rows], self.labels[rows])


def join_examples(parts: list[Examples]) -> Examples:
    """Returns all examples in order."""
    return Examples(torch.cat([one.records for one in parts]), torch.cat([one.labels for one in parts]))


def log_posteriors(kernel: Kernel, models: Tensor, records: Tensor) -> Tensor:
    """Returns the logarithm of each class' probability, [models, records, classes], in float64."""
    with torch.no_grad():
        return kernel.scores(models, records).double().log_softmax(2)


def true_label(posteriors: Tensor, labels: Tensor) -> Tensor:
    """Returns the log-probability of the true label, minus the cross-entropy, [..., n]."""
    index = labels.expand(posteriors.shape[:-1]).unsqueeze(-1)
    return posteriors.gather(-1, index).squeeze(-1)


def modified_entropy(posteriors: Tensor, labels: Tensor) -> Tensor:
    """Returns `-(1-p_y) log p_y - sum_{i != y} p_i log(1-p_i)` (Song & Mittal 2021); small for members.

    Unlike the entropy it is large for a confident wrong answer.
    """
    p = posteriors.exp()
    of_others = p * (-torch.expm1(posteriors)).clamp(min=_TINY).log()
    p_true = true_label(p, labels)
    return -(1.0 - p_true) * true_label(posteriors, labels) - (of_others.sum(-1) - true_label(of_others, labels))


def largest_posteriors(posteriors: Tensor, count: int = 3) -> Tensor:
    """Returns the largest probabilities in descending order, [..., n, count]."""
    return posteriors.exp().sort(-1, descending=True).values[..., :count]


def layer_gradient_norms(module: nn.Module, model: Tensor, examples: Examples) -> Tensor:
    """Returns the L2 norm of each layer's gradient of each record's loss, [n, layers], in float64."""
    columns = layer_columns(module)
    each = vmap(_record_gradient(module), in_dims=(None, 0, 0))
    at_once = max(1, _GRADIENT_FLOATS // len(model))
    norms: list[Tensor] = []
    for start in range(0, len(examples), at_once):
        part = slice(start, start + at_once)
        gradients = each(model, examples.records[part], examples.labels[part]).detach().double()
        norms.append(torch.stack([torch.linalg.vector_norm(gradients[:, layer], dim=1) for layer in columns], 1))
    return torch.cat(norms)


def _record_gradient(module: nn.Module) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    def loss(model: Tensor, record: Tensor, label: Tensor) -> Tensor:
        scores = functional_call(module, unflatten(module, model), (record[None],))
        return nn.functional.cross_entropy(scores, label[None])

    gradient: Callable[[Tensor, Tensor, Tensor], Tensor] = grad(loss)
    return gradient
