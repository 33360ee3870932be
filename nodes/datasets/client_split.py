"""Partitions of the training records among clients.

A split draws only from the given generator, assigns every client at least one record, and assigns no record to two
clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import NDArray

from p2p.config.errors import UserError

Ints = NDArray[np.int64]


class DataSplit(Protocol):
    """Assigns records to clients."""

    def needs(self, clients: int) -> int:
        """Returns the least number of records that suffices for this many clients."""

    def split(self, labels: Ints, clients: int, rng: np.random.Generator, client_column: Ints | None) -> list[Ints]:
        """Returns the sorted record indices of each client; raises UserError if there are too few records."""

    def sizes(self, class_counts: Ints, clients: int, rng: np.random.Generator) -> Ints:
        """Returns the lengths that `split` gives with an equal generator; labels matter by their counts only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iid:
    """Shuffled and divided evenly: every client's records follow the overall distribution.

    Attributes:
        records: records per client; none assigns all records, in parts that differ by at most one
    """

    records: Annotated[int, Ge(1)] | None = None

    def needs(self, clients: int) -> int:
        """Returns one record, or `records`, for each client."""
        return clients * (self.records or 1)

    def split(self, labels: Ints, clients: int, rng: np.random.Generator, client_column: Ints | None) -> list[Ints]:
        """Divides a random order evenly."""
        sizes = self.sizes(np.array([len(labels)]), clients, rng)
        order = rng.permutation(len(labels))
        return [np.sort(part) for part in np.split(order[: sizes.sum()], np.cumsum(sizes)[:-1])]

    def sizes(self, class_counts: Ints, clients: int, rng: np.random.Generator) -> Ints:
        """Returns equal sizes, up to one; draws nothing."""
        records = int(class_counts.sum())
        _require(records, self.needs(clients), "data.split = iid", f"{clients} clients")
        return _even_parts(records if self.records is None else clients * self.records, clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Sorted by label, cut into `clients * classes_per_client` shards, assigned at random (McMahan et al., 2017).

    The papers' 200 shards correspond to 100 clients with two each.

    Attributes:
        classes_per_client: shards each client gets, so it sees about that many classes
    """

    classes_per_client: Annotated[int, Ge(1)] = 2

    def needs(self, clients: int) -> int:
        """Returns one record for each shard."""
        return clients * self.classes_per_client

    def split(self, labels: Ints, clients: int, rng: np.random.Generator, client_column: Ints | None) -> list[Ints]:
        """Assigns every record; shard sizes differ by at most one."""
        by_label = np.argsort(labels, kind="stable")  # ties in record order, so equal on every machine
        sizes, assigned = self._assign(len(labels), clients, rng)
        pieces = np.split(by_label, np.cumsum(sizes)[:-1])
        return [np.sort(np.concatenate([pieces[piece] for piece in own])) for own in assigned]

    def sizes(self, class_counts: Ints, clients: int, rng: np.random.Generator) -> Ints:
        """Returns the sizes of each client's shards together."""
        sizes, assigned = self._assign(int(class_counts.sum()), clients, rng)
        total: Ints = sizes[assigned].sum(axis=1)
        return total

    def _assign(self, records: int, clients: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Returns the size of each shard, and the shards of each client."""
        path = f"data.split.classes_per_client = {self.classes_per_client}"
        _require(records, self.needs(clients), path, f"{self.needs(clients)} shards for {clients} clients")
        # The only draw, so `sizes` and `split` agree for equal generators.
        assigned = rng.permutation(self.needs(clients)).reshape(clients, self.classes_per_client)
        return _even_parts(records, self.needs(clients)), assigned


@dataclass(frozen=True, slots=True, kw_only=True)
class Dirichlet:
    """Each class is spread over the clients in proportions drawn from a Dirichlet distribution (Hsu et al., 2019).

    Attributes:
        alpha: small is skewed, large is even
        min_records: a client with fewer gets random records of the client with the most
    """

    alpha: Annotated[float, Gt(0)] = 0.5
    min_records: Annotated[int, Ge(1)] = 1

    def needs(self, clients: int) -> int:
        """Returns `min_records` for each client."""
        return clients * self.min_records

    def split(self, labels: Ints, clients: int, rng: np.random.Generator, client_column: Ints | None) -> list[Ints]:
        """Assigns every record; each client gets at least `min_records`."""
        path = f"data.split.min_records = {self.min_records}"
        _require(len(labels), self.needs(clients), path, f"{clients} clients")
        owner = np.empty(len(labels), dtype=np.int64)
        for label in np.unique(labels):
            # Permuted, since runs of neighbouring records go to one client.
            rows = rng.permutation(np.flatnonzero(labels == label))
            owner[rows] = _owners(len(rows), clients, self.alpha, rng)
        return _top_up(_by_owner(owner, clients), self.min_records, rng)

    def sizes(self, class_counts: Ints, clients: int, rng: np.random.Generator) -> Ints:
        """Returns the sizes of a split of any labels with these counts."""
        # Only the counts matter: rows of a class are permuted before they are divided.
        labels = np.repeat(np.arange(len(class_counts)), class_counts)
        return np.array([len(shard) for shard in self.split(labels, clients, rng, None)], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByClient:
    """As in the data: the `client` column of a file names each record's owner; surplus owners are dropped at random."""

    def needs(self, clients: int) -> int:
        """Returns one record for each client."""
        return clients

    def split(self, labels: Ints, clients: int, rng: np.random.Generator, client_column: Ints | None) -> list[Ints]:
        """Returns the records of `clients` random owners, in the order of the owners."""
        if client_column is None:
            raise _no_owners()
        owners, owner = np.unique(client_column, return_inverse=True)
        if len(owners) < clients:
            raise UserError(
                f"data.split = by_client: {clients} clients need as many owners, the data has {len(owners)};"
                f" set clients to at most {len(owners)}"
            )
        # Sorted, so that clients are in the order of owners whatever the draw was.
        chosen = np.sort(rng.choice(len(owners), clients, replace=False))
        rows = _by_owner(owner.astype(np.int64), len(owners))
        return [rows[index] for index in chosen]

    def sizes(self, class_counts: Ints, clients: int, rng: np.random.Generator) -> Ints:
        """Raises UserError: data whose classes are known beforehand has no owners."""
        raise _no_owners()


SPLITS: dict[str, type[DataSplit]] = {"iid": Iid, "shards": Shards, "dirichlet": Dirichlet, "by_client": ByClient}


def _no_owners() -> UserError:
    return UserError("data.split = by_client: the data has no client column; name it with `data.client`")


def _require(available: int, needed: int, path: str, what: str) -> None:
    if available < needed:
        raise UserError(
            f"{path}: {what} need at least {needed} records, the data has {available}; use fewer clients or more data"
        )


def _even_parts(records: int, parts: int) -> Ints:
    """Returns sizes that differ by at most one, the larger ones first."""
    sizes = np.full(parts, records // parts, dtype=np.int64)
    sizes[: records % parts] += 1
    return sizes


def _owners(records: int, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Returns the client of each record: consecutive runs in Dirichlet proportions."""
    # Normalised gamma draws are a Dirichlet draw. For a tiny alpha all of them can underflow to zero; everything
    # then goes to one client, which is the distribution's limit.
    gammas = rng.standard_gamma(alpha, clients)
    if not gammas.sum() > 0:
        gammas[rng.integers(clients)] = 1.0
    ends = np.cumsum(gammas) / gammas.sum() * records
    # Midpoints round each boundary to the nearest record; the clip guards against a last end rounded below `records`.
    return np.searchsorted(ends, np.arange(records) + 0.5).clip(max=clients - 1).astype(np.int64)


def _by_owner(owner: Ints, owners: int) -> list[Ints]:
    # Stable, so that each owner's records stay in their order.
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.cumsum(np.bincount(owner, minlength=owners))[:-1])


def _top_up(shards: list[Ints], least: int, rng: np.random.Generator) -> list[Ints]:
    """Moves random records from the largest shards to those with fewer than `least`."""
    sizes = np.array([len(shard) for shard in shards])
    for small in np.flatnonzero(sizes < least):
        while sizes[small] < least:
            # The largest shard exceeds `least` here, since there are enough records in total (`_require`).
            # Asked again after each move: the largest may have become another one.
            large = int(sizes.argmax())
            moved = int(rng.integers(sizes[large]))
            shards[small] = np.append(shards[small], shards[large][moved])
            shards[large] = np.delete(shards[large], moved)
            sizes[small] += 1
            sizes[large] -= 1
    return [np.sort(shard) for shard in shards]
