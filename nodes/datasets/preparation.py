"""From a data set to clients' records, and what that preparation takes from the records of several clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nodes.datasets.client_split import Dirichlet, Shards
from nodes.datasets.dataset import Dataset, Ints
from nodes.datasets.generated import ConditionalGan
from nodes.datasets.original_formats import resolve_data_dir
from nodes.datasets.reserved import NOTHING_RESERVED, Reserved, ReservedRecords, split_records
from nodes.datasets.standardisation import standardise_each
from p2p.random_streams import stream

_ASSIGNMENT = "which client holds which record: drawn by label, before the run"


def client_records(
    data: Any, clients: int, data_dir: Path | None, seed: int, reserved: Reserved = NOTHING_RESERVED
) -> tuple[Dataset, list[Ints]]:
    """Loads a data set and returns it with the record indices of each client."""
    loaded, shards, _ = all_records(data, clients, data_dir, seed, reserved)
    return loaded, shards


def all_records(
    data: Any, clients: int, data_dir: Path | None, seed: int, reserved: Reserved
) -> tuple[Dataset, list[Ints], ReservedRecords]:
    """Returns what `client_records` does, and the records that are kept out of training."""
    loaded: Dataset = data.load(resolve_data_dir(data_dir), seed)
    # Split first: moments per client are of the records that the client has in the end.
    shards, kept_out = split_records(data, loaded, clients, seed, reserved)
    return standardise_each(loaded, shards), shards, kept_out


def record_counts(
    data: Any, clients: int, data_dir: Path | None, seed: int, reserved: Reserved = NOTHING_RESERVED
) -> Ints:
    """Returns the number of records of each client, as `client_records` assigns them.

    Reads the data only if its classes are not known beforehand, as in a plug-in or a user's file, or if records are
    reserved.
    """
    counts = data.class_counts() if hasattr(data, "class_counts") and reserved == NOTHING_RESERVED else None
    # A plug-in's split may have no `sizes`; then only splitting tells.
    if counts is None or not hasattr(data.split, "sizes"):
        _, shards = client_records(data, clients, data_dir, seed, reserved)
        return np.array([len(shard) for shard in shards], dtype=np.int64)
    sizes: Ints = data.split.sizes(np.array(counts, dtype=np.int64), clients, stream(seed, "split"))
    return sizes


def pooled_releases(data: Any) -> list[str]:
    """Returns what the preparation computes from several clients' records without noise, in sentences.

    Such a figure enters every client's training, so a client's records influence the updates of others, and no bound on
    the client's own update covers that.
    """
    if not hasattr(data, "pooled"):
        name = type(data).__qualname__
        return [f"the data set {name} does not say whether it pools clients' records; add pooled() -> tuple[str, ...]"]
    return list(data.pooled())


def mixed_records(data: Any) -> list[str]:
    """Returns what the preparation computes from several records of one client without noise, in sentences.

    Through such a figure one record changes others, so that no bound on its own gradient covers it.
    """
    if getattr(data, "standardise", None) == "per_client":
        return ["a client's feature means and deviations, which depend on the record, enter its other records"]
    # Own data sets say so by an attribute or field `record_wise`.
    if not (type(data).__module__.startswith("nodes.datasets.") or getattr(data, "record_wise", False)):
        name = type(data).__qualname__
        return [f"the data set {name} does not say that it prepares every record by itself; add record_wise = True"]
    return []


def generator_of(data: Any) -> ConditionalGan | None:
    """Returns the settings of the generators whose records are used; None if none are."""
    settings: ConditionalGan | None = getattr(data, "generated", None)
    return settings if settings is not None and settings.share > 0 else None


def public_facts(data: Any) -> list[str]:
    """Returns what depends on records of several clients and is taken as known: neighbouring data sets agree on it."""
    declared = list(data.public()) if hasattr(data, "public") else []
    # Clients of a real system hold their records from the beginning; here a draw decides who they are.
    by_label = isinstance(getattr(data, "split", None), Shards | Dirichlet)
    settings = generator_of(data)
    public = [] if settings is None else list(settings.public())
    return [*declared, *public, *([_ASSIGNMENT] if by_label else [])]
