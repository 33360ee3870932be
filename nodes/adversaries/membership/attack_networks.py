"""Classifiers of "member" and "non-member" by features, trained on records whose membership the adversary knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from nodes.adversaries.small_networks import train_network

HIDDEN = (32,)
STEPS = 300
# Known records are few; without it the network would learn them by heart.
WEIGHT_DECAY = 1e-2

Classifier = Callable[[Tensor], Tensor]


def fit(inside: Tensor, outside: Tensor, rng: np.random.Generator) -> Classifier:
    """Returns a function from features [n, f] to log-odds of membership [n], from known features of both kinds."""
    count = max(len(inside), len(outside))
    # Both kinds equally often, as a coin makes them; else a network would say what there is more of.
    inside, outside = (_repeated(known, count) for known in (inside, outside))
    features = torch.cat([inside, outside]).double()
    centre, scale = features.mean(0), features.std(0, correction=0)
    # A constant feature says nothing; it must not be divided by its zero deviation.
    scale = torch.where(scale > 1e-9, scale, torch.ones_like(scale))

    def standardised(values: Tensor) -> Tensor:
        return ((values.double() - centre) / scale).float()

    is_member = torch.cat([torch.ones(len(inside)), torch.zeros(len(outside))]).long()
    network = train_network(HIDDEN, standardised(features), is_member, 2, STEPS, rng, WEIGHT_DECAY)

    def log_odds(values: Tensor) -> Tensor:
        with torch.no_grad():
            scores: Tensor = network(standardised(values)).double()
        return scores[:, 1] - scores[:, 0]

    return log_odds


def _repeated(rows: Tensor, count: int) -> Tensor:
    return rows[torch.arange(count) % len(rows)]
