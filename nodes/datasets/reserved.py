"""The `reserved` section: records kept out of training so that attacks can be scored.

It is part of the world, watched or not: a run with the same section learns the same under any observation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from nodes.datasets.dataset import Dataset, Ints
from nodes.faults.targets import Who, parse_nodes
from p2p.config.errors import UserError
from p2p.random_streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """Records that no client trains on, drawn from the seed.

    Attributes:
        auxiliary: records set aside before the split, which adversaries may know (`knows.auxiliary`)
        victims: clients of whose records a coin keeps half out of training: members and non-members of one distribution
    """

    auxiliary: Annotated[int, Ge(0)] = 0
    victims: Who | None = None

    def problems(self, clients: int) -> list[str]:
        """Returns clients that do not exist."""
        return [] if self.victims is None else list(parse_nodes(self.victims, clients, (), "victims").problems)

    def victim_nodes(self, clients: int) -> tuple[int, ...]:
        """Returns the victims' numbers."""
        return () if self.victims is None else parse_nodes(self.victims, clients, ()).nodes


NOTHING_RESERVED = Reserved()


@dataclass(frozen=True, slots=True)
class ReservedRecords:
    """What was kept out: places in the training set.

    Attributes:
        kept_out: by victim
    """

    auxiliary: Ints
    kept_out: dict[int, Ints] = field(default_factory=dict)


def split_records(
    data: Any, loaded: Dataset, clients: int, seed: int, reserved: Reserved
) -> tuple[list[Ints], ReservedRecords]:
    """Splits a loaded data set among clients, without the reserved records."""
    if loaded.per_client is not None and (reserved.auxiliary or reserved.victims is not None):
        raise UserError(
            "reserved: records of no client have no means of their own; use another `data.standardise` than per_client"
        )
    aside = _set_aside(len(loaded.train_y), reserved.auxiliary, seed)
    left = np.setdiff1d(np.arange(len(loaded.train_y)), aside)
    owners = None if loaded.client is None else loaded.client[left]
    # The split sees only what is left and numbers that from 0; `left` gives the places in the whole set.
    shards = [left[shard] for shard in data.split.split(loaded.train_y[left], clients, stream(seed, "split"), owners)]
    kept_out = {}
    for node in reserved.victim_nodes(clients):
        shards[node], kept_out[node] = _toss(shards[node], stream(seed, "reserved", "members", node))
    return shards, ReservedRecords(aside, kept_out)


def _toss(records: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Returns members and non-members: records are paired at random, and a coin picks the member of each pair."""
    # In pairs, so that counts, and with them training times, do not tell how the coins fell.
    order = rng.permutation(records)
    pairs = order[: len(order) // 2 * 2].reshape(-1, 2)
    coins = rng.integers(0, 2, len(pairs))
    rows = np.arange(len(pairs))
    # Of an odd number the last one is a member: a client trains on at least one record.
    return np.sort(np.append(pairs[rows, coins], order[2 * len(pairs) :])), np.sort(pairs[rows, 1 - coins])


def _set_aside(records: int, count: int, seed: int) -> Ints:
    if count >= records:
        raise UserError(f"reserved.auxiliary = {count}: the training set has {records} records; reserve fewer")
    drawn: Ints = stream(seed, "reserved", "auxiliary").permutation(records)[:count]
    return np.sort(drawn)
